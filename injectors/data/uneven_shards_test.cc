#include <gtest/gtest.h>

#include <stdexcept>

#include "injectors/testing.h"

namespace trainwreck {
namespace {

using Ids = std::vector<std::int64_t>;

// Rank r owns 100 r, 100 r + 1, ... + 7.
class EightEach : public Shards {
 public:
  Ids IdsOf(int rank, std::int64_t epoch) const override {
    Ids ids;
    for (int i = 0; i < 8; ++i) ids.push_back(100 * rank + i);
    return ids;
  }
};

struct Uneven {
  Uneven(FaultBench& bench, std::map<std::string, Json> with)
      : injector(bench.Make("data.uneven_shards", std::move(with))),
        shards(static_cast<PartWrapper&>(*injector).Wrap(std::make_unique<EightEach>())) {}
  std::unique_ptr<Injector> injector;
  std::unique_ptr<Shards> shards;
};

TEST(UnevenShards, TakesTheEndOfTheLastRanksShard) {
  FaultBench bench(1, 2);
  Uneven it(bench, {});
  EXPECT_EQ(it.shards->IdsOf(0, 0).size(), 8U);
  EXPECT_TRUE(bench.fired().empty());
  EXPECT_EQ(it.shards->IdsOf(1, 0), (Ids{100, 101, 102, 103, 104, 105}));
  EXPECT_EQ(it.shards->IdsOf(1, 1).size(), 6U);
  ASSERT_EQ(bench.fired().size(), 1U) << "once";
  EXPECT_EQ(bench.fired()[0], Json({{"id", "it"},
                                    {"fault", "data.uneven_shards"},
                                    {"epoch", 0},
                                    {"before", 8},
                                    {"after", 6}}));
}

TEST(UnevenShards, GivesExtraSamples) {
  FaultBench bench(0, 2);
  Uneven it(bench, {{"rank", 0}, {"drop", 0.0}, {"extra", 10}});
  const Ids ids = it.shards->IdsOf(0, 0);
  ASSERT_EQ(ids.size(), 18U);
  EXPECT_EQ(Ids(ids.begin() + 8, ids.end()), (Ids{0, 1, 2, 3, 4, 5, 6, 7, 0, 1}));
  EXPECT_EQ(it.shards->IdsOf(1, 0).size(), 8U);
  EXPECT_EQ(bench.fired().at(0)["after"], 18);
}

// Ranks that agree on a number of batches read each other's shards: all must see the same division.
TEST(UnevenShards, IsTheSameOnEveryRank) {
  FaultBench bench(0, 2);
  Uneven it(bench, {{"drop", 0.5}});
  EXPECT_EQ(it.shards->IdsOf(1, 0).size(), 4U);
  EXPECT_TRUE(bench.fired().empty()) << "the evidence is rank 1's";
}

TEST(UnevenShards, ChangesOneEpochOnRequest) {
  FaultBench bench(1, 2);
  Uneven it(bench, {{"epoch", 1}});
  EXPECT_EQ(it.shards->IdsOf(1, 0).size(), 8U);
  EXPECT_EQ(it.shards->IdsOf(1, 1).size(), 6U);
  EXPECT_EQ(it.shards->IdsOf(1, 2).size(), 8U);
  EXPECT_EQ(bench.fired().at(0)["epoch"], 1);
}

TEST(UnevenShards, CanTakeTheWholeShard) {
  FaultBench bench(1, 2);
  Uneven it(bench, {{"drop", 1.0}});
  EXPECT_TRUE(it.shards->IdsOf(1, 0).empty());
  EXPECT_EQ(bench.fired().at(0)["after"], 0);
}

TEST(UnevenShards, ShowsThatItChangedNothing) {
  FaultBench bench(1, 2);
  Uneven it(bench, {{"drop", 0.01}});
  EXPECT_EQ(it.shards->IdsOf(1, 0).size(), 8U);
  EXPECT_EQ(bench.fired().at(0)["before"], bench.fired().at(0)["after"]);
}

TEST(UnevenShards, RefusesARankThatIsNotThere) {
  FaultBench bench(0, 2);
  EXPECT_THROW(Uneven(bench, {{"rank", 2}}), std::runtime_error);
}

}  // namespace
}  // namespace trainwreck
