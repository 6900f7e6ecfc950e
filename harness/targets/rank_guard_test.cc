#include "harness/targets/rank_guard.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "harness/process/rank_guards.h"
#include "harness/process/spawn.h"
#include "harness/targets/outside_faults.h"

namespace trainwreck {
namespace rank_guard_test {

namespace fs = std::filesystem;

// A guard in a process of its own, with a rank that never ends and has a helper.
class RankGuardTest : public testing::Test {
 protected:
  RankGuardTest() {
    const char* tmp = std::getenv("TEST_TMPDIR");
    std::string name = std::string(tmp != nullptr ? tmp : "/tmp") + "/guard-XXXXXX";
    run_ = mkdtemp(name.data());
    folder_ = GuardFolder(run_, "train", 0);
    fs::create_directories(folder_);
    std::ofstream(run_ + "/plan.json") << R"({"protocol": 1, "run": "r", "seed": 0, "recipe": {}})";
  }
  ~RankGuardTest() override {
    if (guard_ > 0) kill(guard_, SIGKILL);
    if (guard_ > 0) waitpid(guard_, nullptr, 0);
    for (const int pid : Processes()) kill(pid, SIGKILL);
  }

  void Start(const char* patience) {
    guard_ = fork();
    if (guard_ != 0) return;
    setenv(kRunVariable, run_.c_str(), 1);
    setenv("TRAINWRECK_PLAN", (run_ + "/plan.json").c_str(), 1);
    setenv("TRAINWRECK_GUARD_PATIENCE", patience, 1);
    setenv("RANK", "0", 1);
    setenv("WORLD_SIZE", "1", 1);
    _exit(RunRankGuard({"sh", "-c", "sleep 600 & wait"}));
  }

  // Those of the rank: the guard and its server had the variable only after they began.
  std::vector<int> Processes() const {
    return ProcessesWith({std::string(kRunVariable) + "=" + run_});
  }

  static bool Comes(const std::function<bool()>& condition) {
    using Clock = std::chrono::steady_clock;
    const auto deadline = Clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      if (Clock::now() > deadline) return false;
      poll(nullptr, 0, 10);
    }
    return true;
  }

  // The guard's exit code; empty: it does not end.
  std::optional<int> Code() {
    int status = 0;
    if (!Comes([&] { return waitpid(guard_, &status, WNOHANG) == guard_; })) return std::nullopt;
    guard_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  pid_t guard_ = 0;
  std::string run_, folder_;
};

TEST_F(RankGuardTest, EndsARankOfWhichNobodyKnows) {
  Start("2");
  ASSERT_TRUE(Comes([&] { return Processes().size() == 2; }));
  EXPECT_EQ(Code(), 1);
  EXPECT_TRUE(Processes().empty());
}

// As of a file server that is away: who opens the pipe waits for somebody who writes into it.
TEST_F(RankGuardTest, EndsItsRankWhileTheFolderDoesNotAnswer) {
  ASSERT_EQ(mkfifo((folder_ + "/orders.json").c_str(), 0644), 0);
  Start("2");
  ASSERT_TRUE(Comes([&] { return Processes().size() == 2; }));
  EXPECT_EQ(Code(), 1);
  EXPECT_TRUE(Processes().empty());
}

TEST_F(RankGuardTest, GoesOnWhenTheFolderAnswersAgain) {
  const std::string orders = folder_ + "/orders.json", pipe = run_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0644), 0);
  fs::create_hard_link(pipe, orders);
  Start("600");
  ASSERT_TRUE(Comes([&] { return Processes().size() == 2; }));
  ASSERT_TRUE(ReplaceFile(
      orders, R"({"beat": 1, "orders": [{"id": 0, "rank": 0, "signal": 9, "seconds": 0}]})"
              "\n"));
  std::ofstream{pipe};
  EXPECT_EQ(Code(), -SIGKILL);
  const auto said = ReadGuard(folder_, 0);
  ASSERT_TRUE(said && said->obeyed.size() == 1);
  EXPECT_EQ(said->obeyed[0].processes, 2);
  EXPECT_TRUE(Processes().empty());
}

// The launcher's side, after a launcher that failed.
TEST_F(RankGuardTest, IsHeardWhenItTellsTheEndLate) {
  GuardedRank rank{.host = "n7", .pid = 42, .beat = 1};
  ReplaceFile(GuardFile(folder_, 0), ToJson(rank).dump());
  RankGuards guards(folder_, 1);
  std::thread guard([&] {
    poll(nullptr, 0, 200);
    rank.state = "ended";
    ReplaceFile(GuardFile(folder_, 0), ToJson(rank).dump());
  });
  const Plan plan;
  OutsideFaults(plan, 0, 1, LauncherKind::kSrun, guards, run_, [](const Json&) {
  }).HearLastOfGuards(/*have_all_ended=*/false);
  guard.join();
  EXPECT_EQ(guards.ranks().at(0).state, "ended");
}

TEST(GuardPaceTest, FollowsTheVariable) {
  setenv("TRAINWRECK_GUARD_LOST_AFTER", "20", 1);
  const GuardPace slow(2);
  unsetenv("TRAINWRECK_GUARD_LOST_AFTER");
  EXPECT_EQ(slow.lost_after.count(), 20);
  EXPECT_EQ(slow.heard_after_failure.count(), 8);
  EXPECT_EQ(slow.stall_after.count(), 20.5);
  EXPECT_EQ(slow.patience.count(), 120);
  EXPECT_EQ(GuardPace(2).lost_after.count(), 5);
  EXPECT_EQ(GuardPace(1024).patience.count(), 60);
}

}  // namespace rank_guard_test
}  // namespace trainwreck
