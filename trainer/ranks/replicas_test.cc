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

TEST(ReplicasTest, OneRankHasNobodyToDifferFrom) {
  EXPECT_FALSE(CompareReplicas(*MakeLocalCommunicator(), kTensors));
}

}  // namespace
}  // namespace trainwreck
