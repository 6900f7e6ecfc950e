#include "trainer/data/sampler.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "trainer/data/shards.h"
#include "trainer/devices/rng.h"
#include "trainer/ranks/communicator.h"
#include "trainer/ranks/forked_ranks.h"

namespace trainwreck {
namespace {

// Shards of given lengths: rank r has 100 * r, 100 * r + 1, ...
class UnevenShards : public Shards {
 public:
  explicit UnevenShards(std::vector<int> lengths) : lengths_(std::move(lengths)) {}
  std::vector<std::int64_t> IdsOf(int rank, std::int64_t) const override {
    std::vector<std::int64_t> ids;
    for (int i = 0; i < lengths_[rank]; ++i) ids.push_back(100 * rank + i);
    return ids;
  }

 private:
  std::vector<int> lengths_;
};

// Lengths that the order of ids says nothing about.
std::int64_t LengthOf(std::int64_t id) { return id * 37 % 101; }

SamplerOptions Bucketed(std::int64_t bucket_batches) {
  return {.batch_size = 4, .seed = 3, .bucket_batches = bucket_batches, .length = LengthOf};
}

using Batches = std::vector<std::vector<std::int64_t>>;

Batches EpochOf(Sampler& sampler) {
  Batches batches;
  for (auto ids = sampler.Next(); !ids.empty(); ids = sampler.Next()) batches.push_back(ids);
  return batches;
}

std::int64_t PaddingIn(const Batches& batches) {
  std::int64_t padding = 0;
  for (const auto& batch : batches) {
    std::int64_t longest = 0;
    for (const std::int64_t id : batch) longest = std::max(longest, LengthOf(id));
    for (const std::int64_t id : batch) padding += longest - LengthOf(id);
  }
  return padding;
}

std::vector<std::int64_t> SortedIds(const Batches& batches) {
  std::vector<std::int64_t> ids;
  for (const auto& batch : batches) ids.insert(ids.end(), batch.begin(), batch.end());
  std::sort(ids.begin(), ids.end());
  return ids;
}

TEST(Buckets, HoldSimilarLengthsAndEachSampleOnce) {
  const auto alone = MakeLocalCommunicator();
  UnevenShards shards({90});
  EpochSampler plain(shards, *alone, Bucketed(0)), bucketed(shards, *alone, Bucketed(8));
  const Batches before = EpochOf(plain), after = EpochOf(bucketed);
  ASSERT_EQ(after.size(), 23u);
  EXPECT_EQ(after.back().size(), 2u) << "what fills no batch stays at the end";
  EXPECT_EQ(SortedIds(after), SortedIds(before));
  EXPECT_LT(PaddingIn(after), PaddingIn(before) / 3);
}

TEST(Buckets, StillComeInANewOrderEachEpochAndTheSameForASeed) {
  const auto alone = MakeLocalCommunicator();
  UnevenShards shards({90});
  EpochSampler one(shards, *alone, Bucketed(8)), same(shards, *alone, Bucketed(8));
  const Batches first = EpochOf(one), second = EpochOf(one);
  EXPECT_EQ(first, EpochOf(same));
  EXPECT_NE(first, second);
  std::vector<std::int64_t> lengths;
  for (const auto& batch : first) lengths.push_back(LengthOf(batch.front()));
  EXPECT_FALSE(std::is_sorted(lengths.begin(), lengths.end()));
}

TEST(Buckets, GoOnAfterAResumeWhereTheyWere) {
  const auto alone = MakeLocalCommunicator();
  UnevenShards shards({90});
  EpochSampler whole(shards, *alone, Bucketed(8)), cut(shards, *alone, Bucketed(8));
  for (int i = 0; i < 30; ++i) cut.Next();
  StateDict state;
  cut.Save(state);
  EpochSampler resumed(shards, *alone, Bucketed(8));
  resumed.Load(state);
  for (int i = 0; i < 30; ++i) whole.Next();
  EXPECT_EQ(EpochOf(resumed), EpochOf(whole));
}

std::string Text(const std::vector<std::int64_t>& ids) {
  std::string text;
  for (std::int64_t id : ids) text += (text.empty() ? "" : ",") + std::to_string(id);
  return text;
}

// What a rank draws in `epochs` epochs: batches apart by spaces, "~" a shadow, "|" the end of an
// epoch.
std::string Draw(Sampler& sampler, int epochs) {
  std::string text;
  while (sampler.epoch() < epochs) {
    const auto ids = sampler.Next();
    text += !ids.empty() ? Text(ids) : sampler.is_shadow() ? "~" : "|";
    text += ' ';
  }
  return text;
}

std::vector<std::string> DrawOnRanks(std::vector<int> lengths, UnevenMode mode, int epochs = 2,
                                     bool shuffle = false) {
  ScratchFolder folder;
  const int world_size = static_cast<int>(lengths.size());
  const auto ends = RunForked(world_size, [&](int rank) {
    auto communicator = MakeGlooCommunicator({.rank = rank,
                                              .world_size = world_size,
                                              .rendezvous_file = folder.File("rendezvous"),
                                              .timeout_s = 10});
    UnevenShards shards(lengths);
    EpochSampler sampler(
        shards, *communicator,
        {.rank = rank, .batch_size = 2, .seed = 7, .shuffle = shuffle, .uneven = mode});
    const std::string text = Draw(sampler, epochs);
    communicator->Barrier();
    return text;
  });
  std::vector<std::string> texts;
  for (const RankEnd& end : ends) {
    EXPECT_EQ(end.exit_code, 0) << end.output;
    texts.push_back(end.output);
  }
  return texts;
}

using Drawn = std::vector<std::string>;

TEST(Uneven, NoneLeavesRanksWithDifferentNumbersOfBatches) {
  EXPECT_EQ(DrawOnRanks({5, 2}, UnevenMode::kNone, 1), (Drawn{"0,1 2,3 4 | ", "100,101 | "}));
}

TEST(Uneven, DropLastStopsAllRanksAtTheShortest) {
  EXPECT_EQ(DrawOnRanks({7, 5}, UnevenMode::kDropLast),
            (Drawn{"0,1 2,3 | 0,1 2,3 | ", "100,101 102,103 | 100,101 102,103 | "}));
}

TEST(Uneven, PadRepeatsSamplesOfTheShortRank) {
  EXPECT_EQ(DrawOnRanks({5, 2}, UnevenMode::kPad, 1),
            (Drawn{"0,1 2,3 4 | ", "100,101 100,101 100 | "}));
}

TEST(Uneven, JoinShadowsUntilAllRanksAreDone) {
  EXPECT_EQ(DrawOnRanks({5, 2}, UnevenMode::kJoin),
            (Drawn{"0,1 2,3 4 | 0,1 2,3 4 | ", "100,101 ~ ~ | 100,101 ~ ~ | "}));
}

TEST(Uneven, JoinTakesAnEmptyShard) {
  EXPECT_EQ(DrawOnRanks({3, 0}, UnevenMode::kJoin, 1), (Drawn{"0,1 2 | ", "~ ~ | "}));
}

TEST(Uneven, ModesAgreeOnEvenShards) {
  const auto expected = DrawOnRanks({6, 6}, UnevenMode::kNone, 2, true);
  for (UnevenMode mode : {UnevenMode::kDropLast, UnevenMode::kPad, UnevenMode::kJoin}) {
    EXPECT_EQ(DrawOnRanks({6, 6}, mode, 2, true), expected);
  }
}

class OneRank : public ::testing::Test {
 protected:
  EpochSampler Make(std::uint64_t seed, UnevenMode mode = UnevenMode::kNone, int size = 11) {
    shards_ = std::make_unique<EqualShards>(size, 1);
    return EpochSampler(
        *shards_, *communicator_,
        {.rank = 0, .batch_size = 4, .seed = seed, .shuffle = true, .uneven = mode});
  }
  std::unique_ptr<Communicator> communicator_ = MakeLocalCommunicator();
  std::unique_ptr<Shards> shards_;
};

TEST_F(OneRank, SameSeedSameOrderOtherSeedOtherOrder) {
  EpochSampler first = Make(1);
  const std::string order = Draw(first, 3);
  EpochSampler again = Make(1);
  EXPECT_EQ(Draw(again, 3), order);
  EpochSampler other = Make(2);
  EXPECT_NE(Draw(other, 3), order);
}

TEST_F(OneRank, EveryEpochSeesEverySampleOnceInAnotherOrder) {
  EpochSampler sampler = Make(1);
  std::vector<std::vector<std::int64_t>> epochs;
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<std::int64_t> seen;
    for (auto ids = sampler.Next(); !ids.empty(); ids = sampler.Next()) {
      seen.insert(seen.end(), ids.begin(), ids.end());
    }
    EXPECT_EQ(sampler.epoch(), epoch + 1);
    EXPECT_EQ(std::set<std::int64_t>(seen.begin(), seen.end()).size(), 11u);
    EXPECT_EQ(seen.size(), 11u);
    epochs.push_back(seen);
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
}

TEST_F(OneRank, ResumesAtEveryPositionAsIfItHadNeverStopped) {
  EpochSampler whole = Make(3);
  std::vector<std::vector<std::int64_t>> batches;
  std::vector<StateDict> states;
  for (int i = 0; i < 12; ++i) {
    states.emplace_back();
    whole.Save(states.back());
    batches.push_back(whole.Next());
  }
  for (int stop = 0; stop < 12; ++stop) {
    EpochSampler resumed = Make(3);
    resumed.Next();
    resumed.Load(states[stop]);
    for (int i = stop; i < 12; ++i) EXPECT_EQ(resumed.Next(), batches[i]) << stop << " " << i;
  }
}

TEST_F(OneRank, MissingEntriesKeepTheirValues) {
  EpochSampler sampler = Make(3);
  const auto first = sampler.Next();
  sampler.Load({});
  EXPECT_NE(sampler.Next(), first);
  StateDict state;
  sampler.Save(state);
  EXPECT_EQ(state.at("sampler.position").item<std::int64_t>(), 8);
  EXPECT_EQ(state.at("sampler.epoch").item<std::int64_t>(), 0);
}

TEST_F(OneRank, AnEpochWithoutABatchIsAnError) {
  EpochSampler sampler = Make(1, UnevenMode::kDropLast, 3);
  EXPECT_THROW(sampler.Next(), std::runtime_error);
  UnevenShards empty({0});
  for (UnevenMode mode : {UnevenMode::kNone, UnevenMode::kPad, UnevenMode::kJoin}) {
    EpochSampler none(empty, *communicator_, {.uneven = mode});
    EXPECT_THROW(none.Next(), std::runtime_error);
  }
}

TEST(EqualShards, AreDisjointAndOfOneSize) {
  for (Split split : {Split::kStrided, Split::kContiguous}) {
    EqualShards shards(11, 3, split);
    std::set<std::int64_t> all;
    for (int rank = 0; rank < 3; ++rank) {
      const auto ids = shards.IdsOf(rank, 0);
      EXPECT_EQ(ids.size(), 3u);
      EXPECT_EQ(ids, shards.IdsOf(rank, 5));
      for (std::int64_t id : ids) {
        EXPECT_LT(id, 11);
        EXPECT_TRUE(all.insert(id).second) << "sample " << id << " is on two ranks";
      }
    }
  }
  EXPECT_EQ(EqualShards(6, 2).IdsOf(1, 0), (std::vector<std::int64_t>{1, 3, 5}));
  EXPECT_EQ(EqualShards(6, 2, Split::kContiguous).IdsOf(1, 0),
            (std::vector<std::int64_t>{3, 4, 5}));
  EXPECT_THROW(EqualShards(1, 2), std::invalid_argument);
}

TEST(Rng, SplitMixGivesThePublishedNumbers) {
  // Reference values of the authors' C code for the seed 1234567.
  SplitMix64 random(1234567);
  EXPECT_EQ(random.Next(), 6457827717110365317ULL);
  EXPECT_EQ(random.Next(), 3203168211198807973ULL);
  EXPECT_EQ(random.Next(), 9817491932198370423ULL);
}

TEST(Rng, BoundedNumbersAreUniform) {
  SplitMix64 random(5);
  std::map<std::uint64_t, int> counts;
  for (int i = 0; i < 60000; ++i) ++counts[random.Below(6)];
  ASSERT_EQ(counts.size(), 6u);
  double chi_square = 0;
  for (const auto& [value, count] : counts) chi_square += (count - 1e4) * (count - 1e4) / 1e4;
  EXPECT_LT(chi_square, 25.7);  // 5 degrees of freedom, p = 1e-4; the seed is fixed
  for (int i = 0; i < 1000; ++i) {
    const double uniform = random.Uniform();
    EXPECT_GE(uniform, 0);
    EXPECT_LT(uniform, 1);
  }
}

TEST(Rng, PermutationsOfThreeAreEquallyLikely) {
  std::map<std::vector<std::int64_t>, int> counts;
  for (int seed = 0; seed < 6000; ++seed) ++counts[Permutation(seed, 0, 3)];
  ASSERT_EQ(counts.size(), 6u);
  double chi_square = 0;
  for (const auto& [order, count] : counts) chi_square += (count - 1e3) * (count - 1e3) / 1e3;
  EXPECT_LT(chi_square, 25.7);
  EXPECT_TRUE(Permutation(1, 0, 0).empty());
}

// The samples of the first steps are the same, whatever the number of ranks.
TEST(DealtShards, DealOneOrderOut) {
  for (const bool shuffle : {false, true}) {
    const auto first_of = [&](int ranks, std::int64_t epoch) {
      const DealtShards shards(50, ranks, 7, shuffle);
      std::vector<std::int64_t> ids;
      for (std::int64_t i = 0; i < 50 / ranks; ++i) {
        for (int rank = 0; rank < ranks; ++rank) ids.push_back(shards.IdsOf(rank, epoch).at(i));
      }
      return ids;
    };
    const std::vector<std::int64_t> order = first_of(1, 3);
    EXPECT_EQ(std::set<std::int64_t>(order.begin(), order.end()).size(), 50u);
    for (const int ranks : {2, 3, 4, 8}) {
      const std::vector<std::int64_t> dealt = first_of(ranks, 3);
      EXPECT_EQ(dealt.size(), 50u / ranks * ranks);
      EXPECT_TRUE(std::equal(dealt.begin(), dealt.end(), order.begin())) << ranks;
    }
    EXPECT_EQ(first_of(2, 4) == first_of(2, 3), !shuffle);
  }
  EXPECT_THROW(DealtShards(3, 4, 7, true), std::invalid_argument);
}

TEST(Rng, TorchStateComesBack) {
  StateDict state;
  SaveTorchRng(state);
  const at::Tensor first = at::rand({5});
  const at::Tensor second = at::rand({5});
  EXPECT_FALSE(at::equal(first, second));
  LoadTorchRng(state);
  EXPECT_TRUE(at::equal(at::rand({5}), first));
  EXPECT_TRUE(at::equal(at::rand({5}), second));
  LoadTorchRng({});
  EXPECT_FALSE(at::equal(at::rand({5}), first)) << "without an entry it goes on";
  state = {{"rng.torch", at::rand({5})}};
  EXPECT_THROW(LoadTorchRng(state), std::runtime_error);
}

}  // namespace
}  // namespace trainwreck
