#include "harness/launch/watchdog.h"

#include <gtest/gtest.h>

namespace trainwreck {
namespace watchdog_test {

constexpr RankState kRunning = RankState::kRunning;

// `calls[rank]` all-reduces on each rank, one a step.
RunTrace TraceWith(const std::vector<int>& calls) {
  RunTrace trace;
  trace.world_size = static_cast<int>(calls.size());
  for (int rank = 0; rank < trace.world_size; ++rank) {
    for (int call = 0; call < calls[rank]; ++call) {
      trace.collectives[rank].push_back({call, call, "all_reduce", "[8]", "float32"});
      if (call > 0) trace.time_s[rank].Set(call - 1, 0.0);
    }
  }
  return trace;
}

TEST(DescribeStallTest, NamesTheFewestAndTheMostCalls) {
  const Json fields = DescribeStall(TraceWith({5, 7, 6}), {kRunning, kRunning, kRunning}, 3);
  EXPECT_EQ(fields["lagging_rank"], 0);
  EXPECT_EQ(fields["lagging_call"], 4);
  EXPECT_EQ(fields["waiting_rank"], 1);
  EXPECT_EQ(fields["waiting_call"], 6);
  EXPECT_EQ(StallSentence(fields),
            "no progress for 3.0 s: rank 1 waits at all_reduce (call 6, step 6); rank 0 (running) "
            "came to all_reduce (call 4, step 4)");
}

TEST(DescribeStallTest, BlamesADeadOrStoppedRankThoughOthersHaveFewerCalls) {
  for (const RankState state : {RankState::kDied, RankState::kStopped, RankState::kCutOff}) {
    const Json fields = DescribeStall(TraceWith({5, 7, 7}), {kRunning, kRunning, state}, 3);
    EXPECT_EQ(fields["lagging_rank"], 2);
    EXPECT_EQ(fields["lagging_state"], ToString(state));
    EXPECT_EQ(fields["waiting_rank"], 1);
  }
}

TEST(DescribeStallTest, BlamesALostRankBeforeThoseThatDiedOfIt) {
  const Json fields = DescribeStall(TraceWith({7, 7, 7, 7}),
                                    {RankState::kDied, kRunning, RankState::kLost, kRunning}, 6);
  EXPECT_EQ(fields["lagging_rank"], 2);
  EXPECT_EQ(fields["lagging_state"], "lost");
}

TEST(DescribeStallTest, SaysWhoGetsNoAnswer) {
  const Json fields = DescribeStall(TraceWith({5, 5, 5}), {kRunning, RankState::kCutOff, kRunning},
                                    6, "rank 0 on n1 gets no answer from rank 1 on n2");
  EXPECT_EQ(StallSentence(fields),
            "no progress for 6.0 s: rank 0 waits at all_reduce (call 4, step 4); rank 1 (cut off) "
            "came to all_reduce (call 4, step 4); rank 0 on n1 gets no answer from rank 1 on n2");
}

// Of a call that both had come to, one rank got the other's answer before the link was cut.
TEST(DescribeStallTest, NobodyLagsByACallThatADeadLinkHoldsUp) {
  for (const auto& [dead_link, lagging] : {std::pair{"", 1}, {"rank 0 gets no answer", -1}}) {
    const Json fields = DescribeStall(TraceWith({6, 5}), {kRunning, kRunning}, 6, dead_link);
    EXPECT_EQ(fields["lagging_rank"], lagging) << dead_link;
    EXPECT_EQ(fields["waiting_rank"], 0) << dead_link;
  }
}

TEST(DescribeStallTest, TheWaitingRankIsAlive) {
  const Json fields =
      DescribeStall(TraceWith({9, 7, 5}), {RankState::kFinished, kRunning, kRunning}, 3);
  EXPECT_EQ(fields["waiting_rank"], 1);
  EXPECT_EQ(fields["lagging_rank"], 2);
}

TEST(DescribeStallTest, EqualCallsAreToldByTheirSteps) {
  RunTrace trace = TraceWith({5, 5});
  trace.time_s[0].Set(4, 0.0);  // rank 0 has finished step 4, rank 1 has not
  const Json fields = DescribeStall(trace, {kRunning, kRunning}, 3);
  EXPECT_EQ(fields["waiting_rank"], 0);
  EXPECT_EQ(fields["lagging_rank"], 1);
}

// One of them hangs, and nothing says which: a healthy rank must not be blamed.
TEST(DescribeStallTest, NoRankLagsWhereAllHaveComeAsFar) {
  const Json fields = DescribeStall(TraceWith({5, 5, 5}), {kRunning, kRunning, kRunning}, 3);
  EXPECT_EQ(fields["lagging_rank"], -1);
  EXPECT_EQ(fields["lagging_state"], "");
  EXPECT_EQ(StallSentence(fields),
            "no progress for 3.0 s: rank 1 came to all_reduce (call 4, step 4), and no rank is "
            "known to lag");
}

TEST(DescribeStallTest, ASilentRankIsNotBlamed) {
  constexpr RankState kSilent = RankState::kSilent;
  RunTrace trace;
  trace.time_s[0].Set(11, 0.0);
  const Json fields = DescribeStall(trace, {kRunning, kSilent, kSilent}, 2.5);
  EXPECT_EQ(fields["lagging_rank"], -1);
  EXPECT_EQ(fields["waiting_rank"], 0);
  const Json died = DescribeStall(trace, {kRunning, kSilent, RankState::kDied}, 2.5);
  EXPECT_EQ(died["lagging_rank"], 2);
  EXPECT_EQ(died["waiting_rank"], 0);
  EXPECT_EQ(DescribeStall(RunTrace(), {kRunning, kSilent}, 1)["waiting_rank"], 0);
}

TEST(DescribeStallTest, WorksWithoutCollectives) {
  RunTrace trace;
  trace.time_s[0].Set(11, 0.0);
  const Json fields = DescribeStall(trace, {kRunning}, 2.5);
  EXPECT_EQ(fields["waiting_rank"], 0);
  EXPECT_EQ(fields["lagging_rank"], 0);
  EXPECT_EQ(fields["lagging_op"], "");
  EXPECT_EQ(StallSentence(fields), "no progress for 2.5 s: rank 0 is running at step 11");
}

TEST(CollectiveComparerTest, FindsTheFirstDifferenceOnce) {
  for (const auto& change : {+[](Collective& call) { call.op = "broadcast"; },
                             +[](Collective& call) { call.shape = "[9]"; },
                             +[](Collective& call) { call.dtype = "int32"; }}) {
    RunTrace trace = TraceWith({6, 6, 4});
    change(trace.collectives[1][3]);
    change(trace.collectives[1][4]);
    CollectiveComparer comparer;
    const auto mismatch = comparer.Next(trace);
    ASSERT_TRUE(mismatch.has_value());
    EXPECT_EQ((*mismatch)["call"], 3);
    EXPECT_EQ((*mismatch)["rank_a"], 0);
    EXPECT_EQ((*mismatch)["rank_b"], 1);
    EXPECT_FALSE(comparer.Next(trace).has_value());
  }
}

TEST(CollectiveComparerTest, StepsMayDiffer) {
  RunTrace trace = TraceWith({6, 6});
  trace.collectives[1][3].step = 9;
  CollectiveComparer comparer;
  EXPECT_FALSE(comparer.Next(trace).has_value());
}

TEST(CollectiveComparerTest, SeesCallsThatComeLater) {
  RunTrace trace = TraceWith({6, 2});
  CollectiveComparer comparer;
  EXPECT_FALSE(comparer.Next(trace).has_value());
  trace.collectives[1].push_back({2, 2, "broadcast", "[8]", "float32"});
  const auto mismatch = comparer.Next(trace);
  ASSERT_TRUE(mismatch.has_value());
  EXPECT_EQ((*mismatch)["call"], 2);
}

TEST(CollectiveComparerTest, StartsAnewForTheNextAttempt) {
  RunTrace trace = TraceWith({6, 6});
  CollectiveComparer comparer;
  EXPECT_FALSE(comparer.Next(trace).has_value());
  trace = TraceWith({3, 3});
  trace.collectives[0][0].op = "gather";
  comparer.Restart();
  EXPECT_TRUE(comparer.Next(trace).has_value());
}

}  // namespace watchdog_test
}  // namespace trainwreck
