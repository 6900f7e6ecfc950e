#include <gtest/gtest.h>

#include <algorithm>

#include "injectors/data/testing_data.h"
#include "injectors/data/testing_sampler.h"
#include "injectors/testing.h"

namespace trainwreck {
namespace {

using Ids = std::vector<std::int64_t>;

// 400 ids in order, as one batch.
Ids Counted() {
  Ids ids(400);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int64_t>(i);
  return ids;
}

class ManySamples : public TokenData {
 public:
  std::int64_t size() const override { return 400; }
};

Ids Drawn(FaultBench& bench, const std::string& seed) {
  const auto shuffle = bench.Make("data.own_shuffle", {{"seed", seed}});
  PartWrapper& wrapper = *shuffle;
  const auto data = wrapper.Wrap(std::unique_ptr<Dataset>(std::make_unique<ManySamples>()));
  const auto sampler = wrapper.Wrap(
      std::unique_ptr<Sampler>(std::make_unique<KnownBatches>(std::vector<Ids>{Counted()})));
  return sampler->Next();
}

TEST(OwnShuffle, IsAnotherOrderOfTheSameSamplesInEachProcess) {
  FaultBench bench;
  Ids first = Drawn(bench, "none"), second = Drawn(bench, "none");
  EXPECT_NE(first, Counted());
  EXPECT_NE(first, second);
  std::sort(first.begin(), first.end());
  EXPECT_EQ(first, Counted());
  ASSERT_EQ(bench.fired().size(), 2U);
  EXPECT_EQ(bench.fired()[0]["before"], Json(Counted()));
}

TEST(OwnShuffle, IsAnotherOrderOnEachRankAndTheSameInEachRun) {
  FaultBench zero(0, 2), one(1, 2);
  EXPECT_EQ(Drawn(zero, "rank"), Drawn(zero, "rank"));
  EXPECT_NE(Drawn(zero, "rank"), Drawn(one, "rank"));
}

TEST(OwnShuffle, LeavesARunWithoutAShuffleAlone) {
  FaultBench bench;
  bench.recipe["sampler.shuffle"] = false;
  EXPECT_EQ(Drawn(bench, "none"), Counted());
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
