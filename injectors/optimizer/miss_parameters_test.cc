#include <gtest/gtest.h>

#include "injectors/optimizer/testing_optimizer.h"

namespace trainwreck {
namespace {

TEST(MissParameters, NeitherUpdatesNorClearsThem) {
  FaultBench bench;
  Broken it(bench, "optimizer.miss_parameters", {{"parameters", {"head"}}});
  it.Step();
  it.Step();
  EXPECT_EQ(it.model->head[0].item<double>(), 1);
  EXPECT_EQ(it.Gradient(it.model->head), 4);
  EXPECT_EQ(it.model->body[0].item<double>(), 0);
  EXPECT_EQ(it.Gradient(it.model->body), 1);
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0], Json({{"id", "it"},
                                    {"fault", "optimizer.miss_parameters"},
                                    {"parameters", {"head"}},
                                    {"elements", 3},
                                    {"before", "known"},
                                    {"after", "unknown"}}));
}

TEST(MissParameters, LeavesNoEvidenceWhereNothingMatches) {
  FaultBench bench;
  Broken it(bench, "optimizer.miss_parameters", {{"parameters", {"tail"}}});
  it.Step();
  EXPECT_EQ(it.model->head[0].item<double>(), 0);
  EXPECT_TRUE(bench.fired().empty());
}

TEST(MissParameters, PassesTheStateOn) {
  FaultBench bench;
  for (const char* fault : {"optimizer.miss_parameters", "optimizer.keep_gradients"}) {
    const bool misses = std::string(fault) == "optimizer.miss_parameters";
    Broken it(bench, fault,
              misses ? std::map<std::string, Json>{{"parameters", {"head"}}}
                     : std::map<std::string, Json>{});
    StateDict state;
    it.optimizer->Save(state);
    EXPECT_EQ(state.count("optimizer.saved"), 1U);
  }
}

}  // namespace
}  // namespace trainwreck
