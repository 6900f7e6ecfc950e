#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>

#include "injectors/testing.h"

namespace trainwreck {
namespace {

// Steps a child process through steps 0 to 4 under the fault; returns its wait status, and in
// `evidence` the `fired` event, which it writes to a pipe. A stopped child is let go on to its end,
// which must be exit code 42.
int RunChild(std::map<std::string, Json> with, Trigger trigger, std::string* evidence) {
  class PipeBench : public FaultBench {
   public:
    explicit PipeBench(int fd) : FaultBench(1, 2), fd_(fd) {}
    void Write(const std::string& name, Json fields) override {
      const std::string text = fields.dump();
      if (::write(fd_, text.data(), text.size()) < 0) ::_exit(43);
    }

   private:
    int fd_;
  };
  int pipe_fds[2];
  if (::pipe(pipe_fds) != 0) throw std::runtime_error("pipe");
  const pid_t child = ::fork();
  if (child == 0) {
    PipeBench bench(pipe_fds[1]);
    const auto injector = bench.Make("process.crash_rank", std::move(with), std::move(trigger));
    const auto hook = static_cast<PartWrapper&>(*injector).MakeHook();
    for (int step = 0; step < 5; ++step) {
      bench.clock.step = step;
      hook->OnStepBegin(step);
    }
    ::_exit(42);
  }
  ::close(pipe_fds[1]);
  int status = 0;
  ::waitpid(child, &status, WUNTRACED);
  if (WIFSTOPPED(status)) {
    ::kill(child, SIGCONT);
    int last = 0;
    ::waitpid(child, &last, 0);
    EXPECT_TRUE(WIFEXITED(last) && WEXITSTATUS(last) == 42);
  }
  char buffer[512];
  const ssize_t size = ::read(pipe_fds[0], buffer, sizeof buffer);
  ::close(pipe_fds[0]);
  evidence->assign(buffer, size > 0 ? size : 0);
  return status;
}

TEST(CrashRank, KillsItsProcess) {
  std::string evidence;
  const int status = RunChild({{"how", "sigkill"}}, {.at = 3, .ranks = {1}}, &evidence);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_EQ(Json::parse(evidence), Json({{"id", "it"},
                                         {"fault", "process.crash_rank"},
                                         {"how", "sigkill"},
                                         {"before", "running"},
                                         {"after", "killed"},
                                         {"signal", 9}}));
}

TEST(CrashRank, StopsItsProcessOnceAndLetsItGoOn) {
  std::string evidence;
  const int status = RunChild({{"how", "sigstop"}}, {.at = 3}, &evidence);
  ASSERT_TRUE(WIFSTOPPED(status));
  EXPECT_EQ(WSTOPSIG(status), SIGSTOP);
  EXPECT_EQ(Json::parse(evidence)["after"], "stopped");
}

TEST(CrashRank, ExitsWithItsCode) {
  std::string evidence;
  const int status = RunChild({{"how", "exit"}, {"code", 17}}, {.at = 3}, &evidence);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 17);
  EXPECT_EQ(Json::parse(evidence)["code"], 17);
}

TEST(CrashRank, LeavesOtherRanksAlone) {
  std::string evidence;
  const int status = RunChild({{"how", "sigkill"}}, {.at = 3, .ranks = {0}}, &evidence);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
  EXPECT_EQ(evidence, "");
}

TEST(CrashRank, ThrowsAtItsStepAndNotInTheNextAttempt) {
  FaultBench bench(1, 2);
  const auto injector = bench.Make("process.crash_rank", {}, {.at = 3, .attempt = 0});
  const auto hook = static_cast<PartWrapper&>(*injector).MakeHook();
  bench.clock.step = 2;
  EXPECT_NO_THROW(hook->OnStepBegin(2));
  bench.clock.step = 3;
  try {
    hook->OnStepBegin(3);
    FAIL() << "did not throw";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "injected exception at step 3 on rank 1");
  }
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["after"], "thrown");
  bench.clock.attempt = 1;
  EXPECT_NO_THROW(hook->OnStepBegin(3));
}

}  // namespace
}  // namespace trainwreck
