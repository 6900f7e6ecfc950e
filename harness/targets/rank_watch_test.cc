// Which rank is said to have failed first, where what was seen and the launcher's report differ.
#include "harness/targets/rank_watch.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "harness/process/spawn.h"

namespace trainwreck {
namespace rank_watch_test {

constexpr char kRun[] = "/run/of/rank_watch_test";

// A rank under Open MPI that does what the shell command says.
pid_t StartRank(int rank, const char* command) {
  const pid_t pid = fork();
  if (pid == 0) {
    setenv(kRunVariable, kRun, 1);
    setenv(RankVariable(LauncherKind::kMpirun), std::to_string(rank).c_str(), 1);
    execlp("sh", "sh", "-c", command, nullptr);
    _exit(127);
  }
  return pid;
}

constexpr int kExited = 137 << 8;  // what mpirun makes of a rank that was killed

// What is said in the end, where rank 0 is seen to end as its command does and rank 1 lives on.
Json SaidOf(const char* rank0, const std::string& report) {
  Json said;
  const std::vector<pid_t> ranks = {StartRank(0, rank0), StartRank(1, "exec sleep 600")};
  RankWatch watch(LauncherKind::kMpirun, 2, kRun, [&](const std::string& event, Json fields) {
    if (event == "rank_failed") said = std::move(fields);
  });
  for (int look = 0; look < 20; ++look) {
    watch.Look();
    poll(nullptr, 0, 50);
  }
  watch.Finish(kExited, report);
  for (const pid_t pid : ranks) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  return said;
}

TEST(RankWatchTest, BelievesAReportOfAKilledRankBeforeAnErrorThatWasSeen) {
  const Json said =
      SaidOf("sleep 0.5; exit 1",
             "mpirun noticed that process rank 1 with PID 0 on node vm exited on signal 9\n");
  EXPECT_EQ(said.at("rank"), 1);
  EXPECT_EQ(said.at("signal"), 9);
  EXPECT_EQ(said.at("by"), "report");
}

TEST(RankWatchTest, BelievesWhatWasSeenBeforeAReportOfAnotherError) {
  const std::string report = "Process name: [[1234,1],1]\nExit code:    1\n";
  const Json error = SaidOf("sleep 0.5; exit 1", report);
  EXPECT_EQ(error.at("rank"), 0);
  EXPECT_EQ(error.at("by"), "seen");
  const Json killed = SaidOf("sleep 0.5; kill -9 $$", report);
  EXPECT_EQ(killed.at("rank"), 0);
  EXPECT_EQ(killed.at("signal"), 9);
}

// What is said in the end, where rank 1 was killed and is seen to have been, the launcher has
// waited for rank 0, and its report names rank 0's exit code alone.
Json SaidOfBoth(bool is_rank0_gone_before) {
  Json said;
  const pid_t rank0 = StartRank(0, "exec sleep 600"), rank1 = StartRank(1, "exec sleep 600");
  RankWatch watch(LauncherKind::kMpirun, 2, kRun, [&](const std::string& event, Json fields) {
    if (event == "rank_failed") said = std::move(fields);
  });
  const auto look = [&] {
    for (int i = 0; i < 10; ++i) {
      watch.Look();
      poll(nullptr, 0, 50);
    }
  };
  look();
  kill(rank0, SIGKILL);
  waitpid(rank0, nullptr, 0);
  if (is_rank0_gone_before) look();
  kill(rank1, SIGKILL);
  poll(nullptr, 0, 50);
  look();
  watch.Finish(1 << 8, "Process name: [[1234,1],0]\nExit code:    1\n");
  waitpid(rank1, nullptr, 0);
  return said;
}

TEST(RankWatchTest, BelievesASeenKillBeforeAReportedErrorOfTheSameMoment) {
  const Json said = SaidOfBoth(/*is_rank0_gone_before=*/false);
  EXPECT_EQ(said.at("rank"), 1);
  EXPECT_EQ(said.at("signal"), 9);
  EXPECT_EQ(said.at("by"), "seen");
}

TEST(RankWatchTest, BelievesAReportOfARankThatWasGoneBefore) {
  const Json said = SaidOfBoth(/*is_rank0_gone_before=*/true);
  EXPECT_EQ(said.at("rank"), 0);
  EXPECT_EQ(said.at("by"), "report");
}

}  // namespace rank_watch_test
}  // namespace trainwreck
