// Faults that are done to processes: at which steps, to which of them, and how they are found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <thread>

#include "harness/process/rank_processes.h"
#include "harness/process/spawn.h"
#include "harness/targets/outside_faults.h"
#include "harness/targets/outside_faults_testing.h"

namespace trainwreck {
namespace outside_faults_test {

// A process that waits for its end.
pid_t Sleeper() {
  const pid_t pid = fork();
  if (pid == 0) {
    for (;;) pause();
  }
  return pid;
}

int SignalThatEnded(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, WUNTRACED);
  if (WIFSIGNALED(status)) return WTERMSIG(status);
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  return 0;
}

TEST_F(OutsideFaultsTest, SignalsTheProcessOnceWhenItsStepIsReached) {
  for (const auto& [how, number] : {std::pair{"sigkill", SIGKILL}, {"sigterm", SIGTERM}}) {
    plan_.faults.clear();
    fired_.clear();
    Add("process.crash_rank", {{"how", how}}).trigger.at = 3;
    const pid_t pid = Sleeper();
    OutsideFaults faults = Make();
    faults.ActAtStep(0, 2, pid);
    EXPECT_THAT(fired_, IsEmpty()) << "too early";
    faults.ActAtStep(0, 5, pid);             // it is never seen at step 3 itself
    if (fired_.empty()) kill(pid, SIGSTOP);  // or it would be waited for
    EXPECT_EQ(SignalThatEnded(pid), number);
    faults.ActAtStep(0, 6, getpid());  // it has acted: or it would end this test
    ASSERT_EQ(fired_.size(), 1U);
    EXPECT_EQ(fired_[0]["step"], 5);
    EXPECT_EQ(fired_[0]["pid"], pid);
    EXPECT_EQ(fired_[0]["signal"], number);
  }
}

// The first look at it may find it some steps further.
TEST_F(OutsideFaultsTest, ARestartedProgramIsDueFromItsOwnFirstStepOn) {
  plan_.resume = true;
  plan_.attempt = 1;
  for (const auto& [first, is_due] : {std::pair{0, true}, {3, true}, {4, false}}) {
    plan_.faults.clear();
    fired_.clear();
    PlannedFault& fault = Add("process.crash_rank", {{"how", "sigkill"}});
    fault.trigger.at = 3;
    fault.trigger.attempt = 1;
    const pid_t pid = Sleeper();
    Make().ActAtStep(first, 9, pid);
    EXPECT_EQ(fired_.size(), is_due ? 1U : 0U) << first;
    kill(pid, SIGKILL);
    SignalThatEnded(pid);
  }
}

char StateOf(pid_t pid) { return ReadProcessEnd(pid).value_or(ProcessEnd{}).state; }

void WaitForState(pid_t pid, bool is_stopped) {
  for (int i = 0; i < 6000 && (StateOf(pid) == 'T') != is_stopped; ++i) usleep(10000);
  EXPECT_EQ(StateOf(pid) == 'T', is_stopped);
}

// Or the harness would find it, and say that the program left it behind.
TEST_F(OutsideFaultsTest, KillsARankWhenAllThatItStartedHasEnded) {
  Add("process.crash_rank", {{"how", "sigkill"}});
  int started[2];
  ASSERT_EQ(pipe(started), 0);
  const pid_t launcher = fork();
  if (launcher == 0) {
    const pid_t child = Sleeper();
    if (write(started[1], &child, sizeof child) != sizeof child) _exit(1);
    waitpid(child, nullptr, 0);
    _exit(0);  // it saw the end of its child, and says that all is well
  }
  pid_t child = 0;
  ASSERT_EQ(read(started[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  Make().ActAtStep(0, 0, launcher);
  const char state = StateOf(child);
  EXPECT_TRUE(state == 'Z' || state == 'X' || state == '?') << state;
  EXPECT_EQ(SignalThatEnded(launcher), SIGKILL);
}

TEST_F(OutsideFaultsTest, LetsARankGoOnAfterItsPause) {
  Add("process.suspend", {{"seconds", 0.2}}).trigger.from = 3;
  const pid_t pid = Sleeper();
  OutsideFaults faults = Make();
  faults.ActAtStep(0, 2, pid);
  EXPECT_FALSE(faults.EndPauses()) << "too early";
  faults.ActAtStep(0, 4, pid);
  EXPECT_TRUE(faults.EndPauses());
  WaitForState(pid, /*is_stopped=*/true);
  ASSERT_EQ(fired_.size(), 1U) << "steps 3 and 4 were made before it";
  EXPECT_EQ(fired_[0]["pid"], pid);
  EXPECT_EQ(fired_[0]["signal"], SIGSTOP);
  usleep(250000);
  EXPECT_FALSE(faults.EndPauses());
  WaitForState(pid, /*is_stopped=*/false);
  faults.ActAtStep(0, 5, pid);
  EXPECT_EQ(fired_.size(), 2U) << "a new pause";
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

// What a program does to save, and whether a fault that is due at step 3 acts then.
class KillWriterTest : public OutsideFaultsTest {
 protected:
  void Begin(int files) {
    Add("checkpoint.kill_writer", {{"files", files}}).trigger.at = 3;
    faults_.reset(new OutsideFaults(Make()));  // it cannot be moved
    faults_->WatchCheckpoints();
    pid_ = Sleeper();
  }
  ~KillWriterTest() override {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  bool ActsNow() {
    const std::size_t before = fired_.size();
    faults_->ActOnWrites(4);
    return fired_.size() > before;
  }

  std::unique_ptr<OutsideFaults> faults_;
  pid_t pid_ = -1;
};

TEST_F(KillWriterTest, KillsWhileAFileIsOpenAfterItsStepAlone) {
  Begin(/*files=*/0);
  std::ofstream early(folder_ + "/early");
  EXPECT_FALSE(ActsNow()) << "its step was not seen";
  early.close();
  EXPECT_FALSE(ActsNow());
  faults_->ActAtStep(0, 3, pid_);
  Write("whole", kBytes);
  EXPECT_FALSE(ActsNow()) << "it is too late for that file: it is closed";
  fs::create_directory(folder_ + "/new");
  EXPECT_FALSE(ActsNow()) << "a folder is no file";
  std::ofstream open(folder_ + "/new/file");
  EXPECT_TRUE(ActsNow());
  EXPECT_EQ(fired_[0]["file"], folder_ + "/new/file");
  EXPECT_EQ(SignalThatEnded(pid_), SIGKILL);
  open << "more" << std::flush;
  EXPECT_FALSE(ActsNow()) << "it has acted";
}

TEST_F(KillWriterTest, KillsWhenAFileThatWasWrittenElsewhereIsMovedIn) {
  Begin(/*files=*/0);
  faults_->ActAtStep(0, 3, pid_);
  fs::create_directory(folder_ + ".elsewhere");
  std::ofstream(folder_ + ".elsewhere/file") << kBytes;
  EXPECT_FALSE(ActsNow());
  fs::rename(folder_ + ".elsewhere/file", folder_ + "/file");
  EXPECT_TRUE(ActsNow());
  EXPECT_EQ(fired_[0]["file"], folder_ + "/file");
}

TEST_F(KillWriterTest, KillsAfterSoManyFiles) {
  Begin(/*files=*/2);
  faults_->ActAtStep(0, 3, pid_);
  Write("one", kBytes);
  EXPECT_FALSE(ActsNow());
  std::ofstream two(folder_ + "/two");
  EXPECT_FALSE(ActsNow());
  two.close();
  EXPECT_TRUE(ActsNow());
  EXPECT_EQ(SignalThatEnded(pid_), SIGKILL);
}

TEST_F(OutsideFaultsTest, DoesNotRepeatWhatWasDueBeforeAResume) {
  Add("process.crash_rank", {{"how", "sigkill"}}).trigger.at = 3;
  plan_.resume = true;
  Make().ActAtStep(10, 10, getpid());
  EXPECT_THAT(fired_, IsEmpty());
}

// A launcher whose ranks (0, 1, 11) wait for their end, told by their environment as mpirun's are,
// or srun's.
class FakeLauncher {
 public:
  explicit FakeLauncher(const char* variable = "OMPI_COMM_WORLD_RANK") : variable_(variable) {
    int started[2];
    if (pipe(started) != 0) return;
    pid_ = fork();
    if (pid_ == 0) Launch(started[1]);
    close(started[1]);
    char byte;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(read(started[0], &byte, 1), 1);
    close(started[0]);
  }
  ~FakeLauncher() {
    const std::vector<int> ranks = Descendants(pid_);
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    for (const int rank : ranks) kill(rank, SIGKILL);
  }
  pid_t pid() const { return pid_; }

 private:
  [[noreturn]] void Launch(int started) const {
    dup2(started, STDOUT_FILENO);
    for (const char* rank : {"0", "1", "11"}) {
      if (fork() != 0) continue;
      setenv(variable_, rank, 1);
      // Only what a program was started with can be read from outside, and not while it is being
      // replaced by another one: the shell itself stays.
      execl("/bin/sh", "sh", "-c", "echo; kill -STOP $$", nullptr);
      _exit(127);
    }
    while (wait(nullptr) > 0) continue;
    _exit(0);
  }

  const char* variable_;
  pid_t pid_ = -1;
};

TEST_F(OutsideFaultsTest, FindsTheRankBelowALauncher) {
  Add("process.crash_rank", {{"how", "sigkill"}}).trigger.ranks = {1};
  const FakeLauncher launcher;
  const std::vector<int> before = Descendants(launcher.pid());
  ASSERT_EQ(before.size(), 3U);
  Make(/*rank=*/0, /*ranks=*/2, LauncherKind::kMpirun).ActAtStep(0, 0, launcher.pid());
  ASSERT_EQ(fired_.size(), 1U);
  EXPECT_EQ(fired_[0]["rank"], 1);
  EXPECT_EQ(fired_[0]["pid"], before[1]);
  std::vector<int> after = before;
  for (int i = 0; i < 6000 && after.size() == before.size(); ++i) {
    usleep(10000);  // the launcher has yet to reap it
    after = Descendants(launcher.pid());
  }
  EXPECT_THAT(after, ElementsAre(before[0], before[2]));
}

TEST_F(OutsideFaultsTest, FindsTheRankThatADaemonStarted) {
  Add("process.crash_rank", {{"how", "sigkill"}}).trigger.ranks = {1};
  const FakeLauncher daemon("SLURM_PROCID");
  const std::vector<int> before = Descendants(daemon.pid());
  setenv(kRunVariable, "/another/run", 1);
  const FakeLauncher another("SLURM_PROCID");
  setenv(kRunVariable, folder_.c_str(), 1);
  const pid_t launcher = fork();  // the ranks are nobody's descendants here
  if (launcher == 0) {
    for (;;) pause();
  }
  Make(/*rank=*/0, /*ranks=*/2, LauncherKind::kSrun).ActAtStep(0, 0, launcher);
  kill(launcher, SIGKILL);
  waitpid(launcher, nullptr, 0);
  ASSERT_EQ(fired_.size(), 1U);
  EXPECT_EQ(fired_[0]["pid"], before[1]);
  EXPECT_EQ(Descendants(another.pid()).size(), 3U);
}

TEST_F(OutsideFaultsTest, HasNotFiredWhereThereIsNoSuchRank) {
  Add("process.crash_rank", {{"how", "sigkill"}}).trigger.ranks = {2};
  const FakeLauncher launcher;
  Make(/*rank=*/0, /*ranks=*/3, LauncherKind::kMpirun).ActAtStep(0, 0, launcher.pid());
  EXPECT_THAT(fired_, IsEmpty());
}

}  // namespace outside_faults_test
}  // namespace trainwreck
