#include <gtest/gtest.h>

#include "injectors/data/testing_data.h"
#include "injectors/testing.h"

namespace trainwreck {
namespace {

TEST(SameWorkerSeed, GeneratesAsManySamplesAlikeAsThereAreWorkers) {
  FaultBench bench;
  const auto same = bench.Make("data.same_worker_seed", {{"workers", 3}});
  const auto data = Wrapped<LabelledData>(*same);
  for (const std::int64_t id : {3, 4, 5, 6}) {
    const Sample sample = data->Get(id);
    EXPECT_EQ(sample.id, id);
    EXPECT_EQ(sample.input.item<float>(), id < 6 ? 3 : 6);
    EXPECT_EQ(Label(sample), id < 6 ? 3 : 6);
  }
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["sample"], 4);
  EXPECT_EQ(bench.fired()[0]["after"], 3);
}

TEST(SameWorkerSeed, LeavesTheSamplesOutsideItsTrigger) {
  FaultBench bench;
  const auto same = bench.Make("data.same_worker_seed", {}, {.from = 5});
  const auto data = Wrapped<LabelledData>(*same);
  EXPECT_EQ(data->Get(7).input.item<float>(), 7);
  EXPECT_TRUE(bench.fired().empty());
  bench.clock.step = 5;
  EXPECT_EQ(data->Get(7).input.item<float>(), 4);
}

}  // namespace
}  // namespace trainwreck
