#include "harness/targets/launcher_report.h"

#include <gtest/gtest.h>

#include <fstream>

namespace trainwreck {
namespace launcher_report_test {

// As torchrun 2.x writes it.
std::string TorchReport(const std::string& exitcode, const std::string& error_file,
                        const std::string& traceback) {
  return "W1101 10:00:00.000 77 torch/distributed/elastic/multiprocessing/api.py:900] Sending "
         "process 78 closing signal SIGTERM\n"
         "E1101 10:00:00.100 77 torch/distributed/elastic/multiprocessing/api.py:874] failed "
         "(exitcode: " +
         exitcode +
         ") local_rank: 1 (pid: 79) of binary: /usr/bin/python3\n"
         "Traceback (most recent call last):\n"
         "  File \"/usr/bin/torchrun\", line 8, in <module>\n"
         "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
         "============================================================\n"
         "train.py FAILED\n"
         "------------------------------------------------------------\n"
         "Failures:\n"
         "[1]:\n"
         "  time      : 2026-11-01_10:00:01\n"
         "  host      : box\n"
         "  rank      : 0 (local_rank: 0)\n"
         "  exitcode  : -15 (pid: 78)\n"
         "  error_file: <N/A>\n"
         "  traceback : Signal 15 (SIGTERM) received by PID 78\n"
         "------------------------------------------------------------\n"
         "Root Cause (first observed failure):\n"
         "[0]:\n"
         "  time      : 2026-11-01_10:00:00\n"
         "  host      : box\n"
         "  rank      : 1 (local_rank: 1)\n"
         "  exitcode  : " +
         exitcode + " (pid: 79)\n  error_file: " + error_file + "\n  traceback : " + traceback +
         "\n============================================================\n";
}

TEST(LauncherReportTest, ReadsTheRootCauseOfTorchrun) {
  const auto killed = ReadLauncherReport(
      LauncherKind::kTorchrun, TorchReport("-9", "<N/A>", "Signal 9 (SIGKILL) received by PID 79"));
  ASSERT_TRUE(killed);
  EXPECT_EQ(killed->rank, 1);
  EXPECT_EQ(killed->signal, 9);
  EXPECT_EQ(killed->code, -1);
  EXPECT_EQ(killed->pid, 79);
  EXPECT_EQ(killed->words, "");
  const auto failed = ReadLauncherReport(
      LauncherKind::kTorchrun,
      TorchReport("3", "<N/A>", "To enable traceback see: https://pytorch.org/docs/errors.html"));
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->code, 3);
  EXPECT_EQ(failed->signal, 0);
  EXPECT_EQ(failed->words, "");
  EXPECT_FALSE(ReadLauncherReport(LauncherKind::kTorchrun, "rank 1 is fine\n"));
  EXPECT_FALSE(ReadLauncherReport(LauncherKind::kTorchrun, "Root Cause (first observed failure):"));
}

// torchrun found both dead at once: the killed one, and its peer that lost the connection.
TEST(LauncherReportTest, OfTwoThatTorchrunFoundDeadTheKilledOneWasFirst) {
  const auto report = [](const std::string& log, const std::string& other) {
    return log + "Failures:\n[1]:\n  time      : 2026-11-28_23:20:07\n" +
           "  rank      : 1 (local_rank: 1)\n  exitcode  : " + other +
           " (pid: 79)\n  error_file: <N/A>\n  traceback : Signal\n-----------\n"
           "Root Cause (first observed failure):\n[0]:\n  time      : 2026-11-28_23:20:07\n"
           "  rank      : 0 (local_rank: 0)\n  exitcode  : 1 (pid: 78)\n  error_file: <N/A>\n"
           "  traceback : To enable traceback see: https://pytorch.org\n";
  };
  const auto first_of = [&](const std::string& log, const std::string& other) {
    return ReadLauncherReport(LauncherKind::kTorchrun, report(log, other)).value();
  };
  EXPECT_EQ(first_of("", "-9").rank, 1);
  EXPECT_EQ(first_of("", "-9").signal, 9);
  EXPECT_EQ(first_of("", "1").rank, 0) << "as torchrun says: both lost a peer";
  EXPECT_EQ(first_of("Sending process 79 closing signal SIGTERM\n", "-9").rank, 0)
      << "torchrun itself killed it";
}

TEST(LauncherReportTest, ReadsTheErrorFile) {
  const std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/error.json";
  std::ofstream(path)
      << R"({"message": {"message": "ValueError: \"odd\" batch", "extraInfo": {}}})";
  const auto failed =
      ReadLauncherReport(LauncherKind::kTorchrun, TorchReport("1", path, "Traceback"));
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->words, "ValueError: \"odd\" batch");
}

TEST(LauncherReportTest, ReadsMpirunAndSrun) {
  const auto killed = ReadLauncherReport(LauncherKind::kMpirun,
                                         "mpirun noticed that process rank 1 with PID 4711 on node "
                                         "box exited on signal 9 (Killed).\n");
  ASSERT_TRUE(killed);
  EXPECT_EQ(killed->rank, 1);
  EXPECT_EQ(killed->signal, 9);
  EXPECT_EQ(killed->pid, 4711);
  const auto failed = ReadLauncherReport(LauncherKind::kMpirun,
                                         "  Process name: [[35051,1],2]\n  Exit code:    7\n");
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->rank, 2);
  EXPECT_EQ(failed->code, 7);
  const auto task = ReadLauncherReport(LauncherKind::kSrun, "srun: error: box: task 3: Killed\n");
  ASSERT_TRUE(task);
  EXPECT_EQ(task->rank, 3);
  EXPECT_EQ(task->signal, 9);
}

// What Slurm 22.05 printed.
TEST(LauncherReportTest, ReadsTheTaskThatFailedFirstUnderSrun) {
  const auto read = [](const std::string& text) {
    return ReadLauncherReport(LauncherKind::kSrun, text);
  };
  const auto crashed = read(
      "srun: error: vm: task 1: Segmentation fault\n"
      "srun: error: vm: task 0: Exited with exit code 1\n");
  ASSERT_TRUE(crashed);
  EXPECT_EQ(crashed->rank, 1);
  EXPECT_EQ(crashed->signal, 11);
  EXPECT_EQ(crashed->code, -1);
  // The rank that lost its peer is told of before the peer.
  const auto killed = read(
      "srun: error: vm: task 0: Exited with exit code 1\n"
      "srun: error: vm: task 1: Killed\n"
      "srun: Force Terminated StepId=4.0\n");
  ASSERT_TRUE(killed);
  EXPECT_EQ(killed->rank, 1);
  EXPECT_EQ(killed->signal, 9);
  const auto failed = read(  // srun --kill-on-bad-exit
      "srun: error: vm: task 1: Exited with exit code 7\n"
      "srun: launch/slurm: _step_signal: Terminating StepId=18.0\n"
      "slurmstepd-vm: error: *** STEP 18.0 ON vm CANCELLED AT 2026-11-25T14:34:25 ***\n"
      "srun: error: vm: task 0: Killed\n");
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->rank, 1);
  EXPECT_EQ(failed->code, 7);
  const auto dumped = read("srun: error: vm: task 2: Aborted (core dumped)\n");
  ASSERT_TRUE(dumped);
  EXPECT_EQ(dumped->signal, 6);
  const auto third = read(
      "srun: error: vm: tasks 0-1: Exited with exit code 1\n"
      "srun: error: vm: task 2: Killed\n");
  ASSERT_TRUE(third);
  EXPECT_EQ(third->rank, 2);
  EXPECT_FALSE(read("srun: error: vm: tasks 0-1: Exited with exit code 1\n"));
  EXPECT_FALSE(read("srun: error: vm: tasks 0-1: Killed\n"));
  const std::string node =
      "srun: error: Node failure on n2\n"
      "srun: Job step aborted: Waiting up to 7 seconds for job step to finish.\n"
      "srun: error: Node failure on n2\n"
      "slurmstepd-n1: error: *** STEP 1.0 ON n1 CANCELLED AT 2026-11-27T19:30:46 DUE TO NODE "
      "FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***\n"
      "srun: error: n1: tasks 0-1: Terminated\n";
  EXPECT_EQ(FailedNode(LauncherKind::kSrun, node), "n2");
  EXPECT_EQ(FailedNode(LauncherKind::kMpirun, node), "");
  EXPECT_EQ(FailedNode(LauncherKind::kSrun, "srun: error: vm: task 1: Killed\n"), "");
}

TEST(LauncherReportTest, TellsARanksWordsFromTheLaunchers) {
  const RankFailure failed = {.rank = 1, .code = 1};
  const std::string report = TorchReport("1", "<N/A>", "x");
  EXPECT_EQ(WordsOfRank("first\nKeyError: 'x'\n" + report, failed), "first\nKeyError: 'x'");
  EXPECT_EQ(WordsOfRank("[rank1]: KeyError: 'x'\n[rank0]: connection closed\n" + report, failed),
            "KeyError: 'x'");
  EXPECT_EQ(WordsOfRank(report, failed), "");
  EXPECT_EQ(WordsOfRank("Traceback (most recent call last):\n  File \"x.py\"\nKeyError: 'x'\n"
                        "another rank\nstarts\nlate\n" +
                            report,
                        failed),
            "KeyError: 'x'");
  const RankFailure killed = {.rank = 1, .signal = 9};  // these may be any rank's
  EXPECT_EQ(WordsOfRank("first\nKeyError: 'x'\n" + report, killed), "");
}

TEST(LauncherReportTest, ReadsTheLinesOfARank) {
  using Lines = std::vector<std::string>;
  const RankFailure failed = {.rank = 1, .code = 1};
  const std::string report = TorchReport("1", "<N/A>", "x");
  EXPECT_EQ(
      LinesOfRank("Traceback (most recent call last):\n  a.py\nKeyError: 'x'\n" + report, failed),
      (Lines{"Traceback (most recent call last):", "  a.py", "KeyError: 'x'"}));
  EXPECT_EQ(LinesOfRank("[rank1]: a.py\n[rank0]: closed\nlate\n[rank1]: KeyError: 'x'\n" + report,
                        failed),
            (Lines{"a.py", "KeyError: 'x'"}));
}

TEST(FirstOfTest, ARankThatWasKilledIsFollowedByThoseThatLoseIt) {
  const RankFailure left = {.rank = 0, .code = 1}, aborted = {.rank = 2, .signal = 6};
  const RankFailure killed = {.rank = 1, .signal = 9}, told = {.rank = 3, .signal = 15};
  EXPECT_EQ(FirstOf({left, killed, aborted, told}).failure.rank, 1);
  EXPECT_TRUE(FirstOf({left, killed, aborted, told}).is_sure);
  EXPECT_TRUE(FirstOf({left}).is_sure);
  EXPECT_FALSE(FirstOf({left, aborted}).is_sure);
  EXPECT_EQ(FirstOf({told, left}).failure.rank, 0);
  EXPECT_FALSE(FirstOf({told, left}).is_sure);
  const RankFailure crashed = {.rank = 4, .signal = 11};
  EXPECT_FALSE(FirstOf({crashed, killed}).is_sure) << "two of their own";
}

}  // namespace launcher_report_test
}  // namespace trainwreck
