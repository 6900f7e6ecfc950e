#include <gtest/gtest.h>

#include "injectors/data/testing_sampler.h"
#include "injectors/testing.h"

namespace trainwreck {
namespace {

using Ids = std::vector<std::int64_t>;

std::unique_ptr<Sampler> Sampled(Injector& injector) {
  return static_cast<PartWrapper&>(injector).Wrap(
      std::unique_ptr<Sampler>(std::make_unique<KnownBatches>(std::vector<Ids>{{3, 1, 2}, {5}})));
}

TEST(RearrangeBatch, ReversesEachBatchAndLeavesTheRest) {
  FaultBench bench;
  const auto injector = bench.Make("data.rearrange_batch");
  const auto sampler = Sampled(*injector);
  EXPECT_EQ(sampler->Next(), (Ids{2, 1, 3}));
  EXPECT_EQ(sampler->Next(), (Ids{5}));
  EXPECT_EQ(sampler->Next(), Ids{}) << "the end of an epoch stays one";
  EXPECT_EQ(sampler->epoch(), 1);
  StateDict state;
  sampler->Save(state);
  EXPECT_EQ(state.size(), 1U);
  state["more"] = at::Tensor();
  sampler->Load(state);
  EXPECT_EQ(sampler->epoch(), 2);
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["before"], Json({3, 1, 2}));
  EXPECT_EQ(bench.fired()[0]["after"], Json({2, 1, 3}));
}

TEST(RearrangeBatch, DoublesABatch) {
  FaultBench bench;
  const auto injector = bench.Make("data.rearrange_batch", {{"how", "doubled"}}, {.from = 1});
  const auto sampler = Sampled(*injector);
  EXPECT_EQ(sampler->Next(), (Ids{3, 1, 2})) << "not yet";
  bench.clock.step = 1;
  EXPECT_EQ(sampler->Next(), (Ids{5, 5}));
}

}  // namespace
}  // namespace trainwreck
