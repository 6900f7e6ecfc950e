// Which rank is said to have failed first, where what was seen and the launcher's report differ.
#include "harness/targets/rank_watch.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
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

constexpr char kWaits[] = "exec sleep 600";

// What mpirun reports of a rank that exited with 1.
std::string ErrorOf(int rank) {
  return "Process name: [[1234,1]," + std::to_string(rank) + "]\nExit code:    1\n";
}

// What is said in the end, where the ranks are seen to end as their commands do.
Json SaidOf(const char* rank0, const char* rank1, const std::string& report) {
  Json said;
  const std::vector<pid_t> ranks = {StartRank(0, rank0), StartRank(1, rank1)};
  const RankGuards none("/nowhere", 2);
  RankWatch watch(LauncherKind::kMpirun, 2, kRun, none, [&](const std::string& event, Json fields) {
    if (event == "rank_failed") said = std::move(fields);
  });
  for (int look = 0; look < 100; ++look) {
    watch.Look();
    poll(nullptr, 0, 20);
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
      SaidOf("sleep 0.5; exit 1", kWaits,
             "mpirun noticed that process rank 1 with PID 0 on node vm exited on signal 9\n");
  EXPECT_EQ(said.at("rank"), 1);
  EXPECT_EQ(said.at("signal"), 9);
  EXPECT_EQ(said.at("by"), "report");
}

TEST(RankWatchTest, BelievesWhatWasSeenBeforeAReportOfAnotherError) {
  const std::string report = ErrorOf(1);
  const Json error = SaidOf("sleep 0.5; exit 1", kWaits, report);
  EXPECT_EQ(error.at("rank"), 0);
  EXPECT_EQ(error.at("by"), "seen");
  const Json killed = SaidOf("sleep 0.5; kill -9 $$", kWaits, report);
  EXPECT_EQ(killed.at("rank"), 0);
  EXPECT_EQ(killed.at("signal"), 9);
}

// What is said in the end, where rank 1 was killed and is seen to have been, the launcher has
// waited for rank 0, and its report names rank 0's exit code alone.
Json SaidOfBoth(bool is_rank0_gone_before) {
  Json said;
  const pid_t rank0 = StartRank(0, kWaits), rank1 = StartRank(1, kWaits);
  const RankGuards none("/nowhere", 2);
  RankWatch watch(LauncherKind::kMpirun, 2, kRun, none, [&](const std::string& event, Json fields) {
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
  watch.Finish(1 << 8, ErrorOf(0));
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

TEST(RankWatchTest, BelievesAKillThatIsSeenSoonAfterAnError) {
  const Json said = SaidOf("sleep 1; exit 1", "sleep 1.1; kill -9 $$", ErrorOf(0));
  EXPECT_EQ(said.at("rank"), 1);
  EXPECT_EQ(said.at("signal"), 9);
  EXPECT_EQ(said.at("by"), "seen");
}

TEST(RankWatchTest, BelievesTheErrorThatIsSeenSoonBeforeAnother) {
  const Json said = SaidOf("sleep 1; exit 1", "sleep 1.1; exit 1", ErrorOf(1));
  EXPECT_EQ(said.at("rank"), 0);
  EXPECT_EQ(said.at("by"), "seen");
}

// What is said of ranks that guards start, on machines that nobody here can look into.
TEST(RankWatchTest, BelievesGuards) {
  const char* tmp = std::getenv("TEST_TMPDIR");
  std::string folder = std::string(tmp != nullptr ? tmp : "/tmp") + "/guards-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::vector<std::string> said;
  RankGuards guards(folder, 3);
  RankWatch watch(LauncherKind::kSrun, 3, kRun, guards, [&](const std::string& event, Json fields) {
    said.push_back(event + " " + std::to_string(fields.at("rank").get<int>()));
  });
  auto now = RankGuards::Clock::now() - std::chrono::minutes(1);
  const auto say = [&](int rank, std::int64_t beat, const std::string& state, int signal = 0,
                       std::vector<EndedLife> before = {}) {
    const GuardedRank guarded{.host = "n",
                              .pid = 1,
                              .state = state,
                              .code = signal != 0 ? -1 : 0,
                              .signal = signal,
                              .beat = beat,
                              .before = std::move(before)};
    ReplaceFile(GuardFile(folder, rank), ToJson(guarded).dump());
  };
  for (int rank = 0; rank < 3; ++rank) say(rank, 1, "running");
  guards.Look(now);
  EXPECT_TRUE(guards.IsLost(0));  // a minute ago
  EXPECT_FALSE(guards.IsLost(0, now + std::chrono::seconds(4)));
  say(0, 2, "stopped");
  say(1, 2, "ended", SIGKILL);
  say(2, 2, "ended");
  std::ofstream(GuardFile(folder, 5)) << "{\"beat\": 1, \"ho";  // half of a file says nothing
  now = RankGuards::Clock::now();
  guards.Look(now);
  EXPECT_EQ(guards.ranks().size(), 3U);
  watch.Look();
  watch.Look();
  EXPECT_EQ(said, (std::vector<std::string>{"stopped 0", "exited 1", "exited 2"}));
  // The launcher starts ranks again, one of them twice.
  said.clear();
  say(1, 3, "stopped", 0, {{1, -1, SIGKILL}});
  say(2, 3, "ended", SIGTERM, {{1, 0, 0}, {1, -1, SIGTERM}});
  guards.Read();
  watch.Look();
  watch.Look();
  EXPECT_EQ(said, (std::vector<std::string>{"stopped 1", "exited 2", "exited 2"}));
  watch.Finish(143 << 8, "");
  EXPECT_EQ(said.back(), "rank_failed 2");
}

TEST(RankWatchTest, AMachineThatIsNotHeardOfIsLost) {
  const char* tmp = std::getenv("TEST_TMPDIR");
  std::string folder = std::string(tmp != nullptr ? tmp : "/tmp") + "/guards-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  Json lost;
  RankGuards guards(folder, 3);
  RankWatch watch(LauncherKind::kSrun, 1, kRun, guards, [&](const std::string& event, Json fields) {
    EXPECT_EQ(event, "node_lost");
    EXPECT_TRUE(lost.is_null());  // said once
    lost = std::move(fields);
  });
  const GuardedRank guarded{.host = "n17", .pid = 1, .beat = 9};
  ReplaceFile(GuardFile(folder, 0), ToJson(guarded).dump());
  guards.Look(RankGuards::Clock::now() - std::chrono::minutes(1));
  watch.Look();
  watch.Look();
  EXPECT_EQ(lost, Json({{"rank", 0}, {"host", "n17"}, {"beat", 9}}));
}

TEST(RankWatchTest, ANodeThatSlurmGaveUpIsNamedBeforeThoseThatLostIt) {
  const char* tmp = std::getenv("TEST_TMPDIR");
  std::string folder = std::string(tmp != nullptr ? tmp : "/tmp") + "/guards-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::vector<Json> said;
  RankGuards guards(folder, 3);
  RankWatch watch(LauncherKind::kSrun, 3, kRun, guards, [&](const std::string& event, Json fields) {
    fields["event"] = event;
    said.push_back(std::move(fields));
  });
  const GuardedRank complains{
      .host = "n1", .pid = 1, .state = "ended", .code = 1, .signal = 0, .beat = 1};
  const GuardedRank gone{.host = "n2", .pid = 9, .beat = 1};
  ReplaceFile(GuardFile(folder, 0), ToJson(complains).dump());
  for (const int rank : {1, 2}) ReplaceFile(GuardFile(folder, rank), ToJson(gone).dump());
  guards.Look();
  watch.Look();
  watch.Finish(
      1 << 8,
      "srun: error: n1: task 0: Exited with exit code 1\nsrun: error: Node failure on n2\n");
  ASSERT_EQ(said.size(), 2U);
  EXPECT_EQ(said[0].at("event"), "exited");
  EXPECT_EQ(said[0].at("rank"), 0);
  EXPECT_EQ(said[1].at("event"), "rank_failed");
  EXPECT_EQ(said[1].at("rank"), 1);
  EXPECT_EQ(said[1].at("last_words"), "Node failure on n2");
}

}  // namespace rank_watch_test
}  // namespace trainwreck
