#include "trainer/ranks/replicas.h"

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/ranks/communicator.h"
#include "trainer/ranks/forked_ranks.h"

namespace trainwreck {
namespace {

using testing::ElementsAre;

const NamedTensors kTensors = {{"a", at::ones({3})}, {"b", at::ones({2})}};

TEST(FindDesyncTest, EqualRanksAreInStep) {
  EXPECT_FALSE(FindDesync({{7, 8}, {7, 8}}, kTensors));
  EXPECT_FALSE(FindDesync({{7, 8}, {7, 8}, {7, 8}}, kTensors));
}

TEST(FindDesyncTest, WithTwoRanksRankZeroIsTheReference) {
  const auto found = FindDesync({{7, 8}, {7, 9}}, kTensors);
  ASSERT_TRUE(found);
  EXPECT_THAT(found->ranks, ElementsAre(1));
  EXPECT_THAT(found->tensors, ElementsAre("b"));
  EXPECT_EQ(found->reference, "rank 0");
}

TEST(FindDesyncTest, AMajorityOutvotesRankZero) {
  const auto found = FindDesync({{5, 8}, {7, 8}, {7, 8}}, kTensors);
  ASSERT_TRUE(found);
  EXPECT_THAT(found->ranks, ElementsAre(0));
  EXPECT_THAT(found->tensors, ElementsAre("a"));
  EXPECT_EQ(found->reference, "majority");
}

TEST(FindDesyncTest, WithoutAMajorityOfEachTensorRankZeroIsTheReference) {
  const auto found = FindDesync({{5, 8}, {5, 9}, {7, 9}, {7, 9}}, kTensors);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->reference, "rank 0");
  EXPECT_THAT(found->ranks, ElementsAre(1, 2, 3));
  EXPECT_THAT(found->tensors, ElementsAre("a", "b"));
}

TEST(ReplicasTest, RanksCompareAndRepair) {
  ScratchFolder folder;
  const auto ends = RunForked(3, [&](int rank) -> std::string {
    const auto communicator = MakeGlooCommunicator(
        {.rank = rank, .world_size = 3, .rendezvous_file = folder.File("meet"), .timeout_s = 20});
    NamedTensors tensors = {{"a", at::ones({3})}, {"b", at::ones({2, 2})}};
    std::string said = CompareReplicas(*communicator, tensors) ? "apart " : "equal ";
    if (rank == 2) tensors[1].second[1][0] = 2;
    const auto found = CompareReplicas(*communicator, tensors);
    if (found) said += std::to_string(found->ranks.at(0)) + found->tensors.at(0) + found->reference;
    BroadcastState(*communicator, {{"a", tensors[0].second}, {"b", tensors[1].second}}, 0);
    said += CompareReplicas(*communicator, tensors) ? " apart" : " equal";
    communicator->Barrier();
    return said + (tensors[1].second[1][0].item<float>() == 1 ? "" : " not rank 0's");
  });
  for (const RankEnd& end : ends) EXPECT_EQ(end.output, "equal 2bmajority equal");
}

// Apart after step 11 in b; a too after step 12; b is equal again after step 13.
TEST(KeptDigestsTest, TheFirstStepAndItsTensorsAreNamed) {
  ScratchFolder folder;
  const auto ends = RunForked(2, [&](int rank) -> std::string {
    const auto communicator = MakeGlooCommunicator(
        {.rank = rank, .world_size = 2, .rendezvous_file = folder.File("meet"), .timeout_s = 20});
    NamedTensors tensors = {{"a", at::ones({3})}, {"b", at::ones({2, 2})}};
    KeptDigests kept;
    kept.Keep(9, tensors);
    kept.Keep(10, tensors);
    if (kept.FirstApart(*communicator, tensors)) return "apart too early";
    if (rank == 1) tensors[1].second[1][0] = 2;
    kept.Keep(11, tensors);
    if (rank == 1) tensors[0].second[0] = 2;
    kept.Keep(12, tensors);
    tensors[1].second[1][0] = 1;
    kept.Keep(13, tensors);
    const auto apart = kept.FirstApart(*communicator, tensors);
    if (!apart) return "not found";
    kept.Forget();
    const bool is_forgotten = !kept.FirstApart(*communicator, tensors);
    communicator->Barrier();
    return std::to_string(apart->step) + apart->desync.tensors.at(0) +
           std::to_string(apart->desync.tensors.size()) + (is_forgotten ? "" : " kept");
  });
  for (const RankEnd& end : ends) EXPECT_EQ(end.output, "11b1");
}

TEST(ReplicasTest, OneRankHasNobodyToDifferFrom) {
  EXPECT_FALSE(CompareReplicas(*MakeLocalCommunicator(), kTensors));
}

}  // namespace
}  // namespace trainwreck
