#include <gtest/gtest.h>

#include "injectors/data/testing_sampler.h"
#include "injectors/testing.h"

namespace trainwreck {
namespace {

TEST(RepeatBatches, GivesEachSeveralTimes) {
  FaultBench bench;
  const auto injector = bench.Make("data.repeat_batches", {{"times", 3}});
  const std::vector<std::vector<std::int64_t>> known = {{4, 1}, {2}};
  const auto sampler = static_cast<PartWrapper&>(*injector).Wrap(
      std::unique_ptr<Sampler>(std::make_unique<KnownBatches>(known)));
  for (const auto& batch : known) {
    for (int i = 0; i < 3; ++i) EXPECT_EQ(sampler->Next(), batch);
  }
  EXPECT_TRUE(sampler->Next().empty());
  EXPECT_EQ(sampler->epoch(), 1);
  EXPECT_EQ(sampler->Next(), known[0]);
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["before"], 1);
  EXPECT_EQ(bench.fired()[0]["after"], 3);
}

}  // namespace
}  // namespace trainwreck
