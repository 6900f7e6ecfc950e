// What Slurm 22.05 prints of a job array, and what follows from it.
#include "harness/slurm/tasks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace trainwreck {
namespace {

TEST(SlurmTasks, ReadsTheQueue) {
  const std::vector<SlurmTask> tasks = ParseSqueue(
      "squeue: warning: something\n"
      "4|1|PENDING|0||BeginTime|\n"
      "4|2|RUNNING|0|n[2-3]|None|\n"
      "4|3|FAILED|768|n1|NonZeroExitCode|\n"
      "4|4|FAILED|9|n1||\n"
      "4|N/A|RUNNING|0|n1||\n"
      "5|1|NODE_FAIL|0|n1|NodeDown|\n");
  ASSERT_EQ(tasks.size(), 5u);
  EXPECT_EQ(tasks[0].job, 4);
  EXPECT_EQ(tasks[0].index, 1);
  EXPECT_EQ(tasks[0].state, "PENDING");
  EXPECT_EQ(tasks[0].nodes, "");
  EXPECT_EQ(tasks[0].reason, "BeginTime");
  EXPECT_EQ(tasks[1].nodes, "n[2-3]");
  EXPECT_EQ(tasks[1].reason, "");
  EXPECT_EQ(tasks[2].exit_status, 3);
  EXPECT_EQ(tasks[3].exit_status, 128 + 9);
  EXPECT_EQ(tasks[4].job, 5);
}

TEST(SlurmTasks, ReadsTheAccounts) {
  const std::vector<SlurmTask> tasks = ParseSacct(
      "Slurm accounting storage is disabled\n"
      "17_1|COMPLETED|0:0|n1\n"
      "17_2|CANCELLED by 1000|0:15|n2\n"
      "17_[3-4]|PENDING|0:0|None assigned\n"
      "18|RUNNING|0:0|n1\n");
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(tasks[1].job, 17);
  EXPECT_EQ(tasks[1].index, 2);
  EXPECT_EQ(tasks[1].state, "CANCELLED");
  EXPECT_EQ(tasks[1].exit_status, 128 + 15);
}

TEST(SlurmTasks, KnowsWhatHasEnded) {
  for (const char* state : {"COMPLETED", "FAILED", "TIMEOUT", "NODE_FAIL", "FORGOTTEN"}) {
    EXPECT_TRUE(HasEnded(state)) << state;
  }
  for (const char* state : {"PENDING", "RUNNING", "COMPLETING", "REQUEUED", "OF_THE_FUTURE"}) {
    EXPECT_FALSE(HasEnded(state)) << state;
  }
}

TEST(SlurmTasks, SubmitsAgainWhatANodeTookDown) {
  EXPECT_TRUE(IsSubmittedAgain("NODE_FAIL", {}));
  EXPECT_TRUE(IsSubmittedAgain("PREEMPTED", {"NODE_FAIL", "NODE_FAIL", "TIMEOUT"}));
  EXPECT_FALSE(IsSubmittedAgain("NODE_FAIL", {"NODE_FAIL", "PREEMPTED", "BOOT_FAIL"}));
  EXPECT_TRUE(IsSubmittedAgain("TIMEOUT", {"NODE_FAIL"}));
  EXPECT_FALSE(IsSubmittedAgain("TIMEOUT", {"TIMEOUT"}));
  EXPECT_FALSE(IsSubmittedAgain(kForgotten, {"TIMEOUT"}));
  for (const char* state : {"OUT_OF_MEMORY", "FAILED", "CANCELLED", "COMPLETED", "DEADLINE"}) {
    EXPECT_FALSE(IsSubmittedAgain(state, {})) << state;
  }
}

TEST(SlurmTasks, KnowsWhichStatusesComeWithVerdicts) {
  for (const int status : {0, 1, 5, 7}) EXPECT_TRUE(WritesVerdicts(status)) << status;
  for (const int status : {2, 3, 70, 127, 130, 137}) EXPECT_FALSE(WritesVerdicts(status)) << status;
}

TEST(SlurmTasks, WritesArraysShort) {
  EXPECT_EQ(ArrayText({1, 2, 3}), "1-3");
  EXPECT_EQ(ArrayText({2}), "2");
  EXPECT_EQ(ArrayText({1, 3, 4, 9}), "1,3-4,9");
}

TEST(SlurmTasks, SubmitsAsManyAsACommandLineHolds) {
  std::vector<int> together(100'000), scattered;
  std::iota(together.begin(), together.end(), 1);
  for (const int index : together) {
    if (index % 2 == 0) scattered.push_back(index);
  }
  EXPECT_EQ(FirstThatFit(together).size(), together.size());
  const std::vector<int> fitting = FirstThatFit(scattered);
  EXPECT_LE(ArrayText(fitting).size(), 100'000U);
  EXPECT_GE(fitting.size(), 10'000U);
  EXPECT_TRUE(std::equal(fitting.begin(), fitting.end(), scattered.begin()));
}

TEST(SlurmTasks, SaysWhatRunsAndWhatWaits) {
  EXPECT_EQ(Summary(ParseSqueue("4|1|RUNNING|0|n1||\n4|2|COMPLETED|0|n1||\n"
                                "4|3|PENDING|0||Priority|\n4|4|PENDING|0||Resources|\n")),
            "1 running, 2 waiting (Priority, Resources)");
  EXPECT_EQ(Summary({}), "");
  EXPECT_EQ(Summary(ParseSqueue("4|1|PENDING|0||launch failed requeued held|\n"
                                "7|2|PENDING|0||JobHeldUser|\n")),
            "2 waiting (JobHeldUser, launch failed requeued held), see 'scontrol release 4,7'");
}

}  // namespace
}  // namespace trainwreck
