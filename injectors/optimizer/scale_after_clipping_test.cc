#include <gtest/gtest.h>

#include "injectors/optimizer/testing_optimizer.h"

namespace trainwreck {
namespace {

// The model's weights are 1, the gradients 1 (body) and 2 (head), the rate 0.5.
TEST(ScaleAfterClipping, ChangesWhatTheOptimizerIsGiven) {
  FaultBench bench;
  Broken it(bench, "optimizer.scale_after_clipping", {{"factor", 3.0}});
  it.Step();
  EXPECT_EQ(it.model->body[0].item<double>(), -0.5);
  EXPECT_EQ(it.Gradient(it.model->body), 3);
  EXPECT_EQ(bench.fired().at(0)["after"], 3.0);
}

}  // namespace
}  // namespace trainwreck
