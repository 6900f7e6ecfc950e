#include <gtest/gtest.h>

#include <thread>

#include "injectors/data/testing_data.h"
#include "injectors/testing.h"

namespace trainwreck {
namespace {

TEST(SlowFetch, TakesAtLeastTheSecondsAndChangesNoSample) {
  FaultBench bench;
  const auto slow = bench.Make("data.slow_fetch", {{"seconds", 0.02}});
  const auto data = Wrapped<LabelledData>(*slow);
  for (const std::int64_t id : {13, 27}) {
    const Sample sample = data->Get(id), expected = LabelledData().Get(id);
    EXPECT_EQ(sample.id, id);
    EXPECT_TRUE(sample.input.equal(expected.input));
    EXPECT_TRUE(sample.target.equal(expected.target));
    EXPECT_TRUE(sample.weight.equal(expected.weight));
  }
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["sample"], 13);
  const auto before = bench.fired()[0]["before"].get<double>();
  EXPECT_GE(bench.fired()[0]["after"].get<double>(), before + 0.02);
}

TEST(SlowFetch, ActsAtTheStepThatASampleIsFetchedFor) {
  FaultBench bench;
  const auto slow = bench.Make("data.slow_fetch", {{"seconds", 0.0}}, {.at = 5});
  const auto data = Wrapped<LabelledData>(*slow);
  data->Get(1);
  {
    AheadScope for_a_later_step(6);
    data->Get(2);
  }
  EXPECT_TRUE(bench.fired().empty());
  AheadScope for_the_step(5);
  std::thread([&] { data->Get(3); }).join();  // another thread: for the clock's step
  EXPECT_TRUE(bench.fired().empty());
  data->Get(4);
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["sample"], 4);
}

}  // namespace
}  // namespace trainwreck
