#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <set>
#include <thread>

#include "injectors/testing.h"

namespace trainwreck {
namespace {

// The steps that a process begins under the fault, each of `step_ms`, until it dies or has made 40.
int StepsBegun(std::uint64_t seed, Trigger trigger, int* signal) {
  int pipe_fds[2];
  EXPECT_EQ(::pipe(pipe_fds), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    FaultBench bench(0, 1, seed);
    const auto injector = bench.Make("process.kill_in_step", {}, std::move(trigger));
    const auto hook = static_cast<PartWrapper&>(*injector).MakeHook();
    for (int step = 0; step < 40; ++step) {
      bench.clock.step = step;
      if (::write(pipe_fds[1], "s", 1) != 1) ::_exit(43);
      hook->OnStepBegin(step);
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
    ::_exit(42);
  }
  ::close(pipe_fds[1]);
  int status = 0;
  ::waitpid(child, &status, 0);
  *signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  char steps[64];
  const ssize_t size = ::read(pipe_fds[0], steps, sizeof steps);
  ::close(pipe_fds[0]);
  return static_cast<int>(size);
}

TEST(KillInStep, KillsWithinTheTimeOfAStep) {
  int signal = 0;
  const int begun = StepsBegun(7, {.at = 10}, &signal);
  EXPECT_EQ(signal, SIGKILL);
  EXPECT_GE(begun, 11);
  EXPECT_LE(begun, 20) << "a busy machine may have had a long step before";
}

TEST(KillInStep, DrawsTheStepFromTheSeed) {
  std::set<int> begun;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    int signal = 0;
    const int steps = StepsBegun(seed, {.from = 5, .to = 29}, &signal);
    EXPECT_EQ(signal, SIGKILL);
    EXPECT_GE(steps, 6);
    begun.insert(steps);
  }
  EXPECT_GE(begun.size(), 4U);
}

TEST(KillInStep, LeavesTheNextAttemptAlone) {
  FaultBench bench;
  const auto injector = bench.Make("process.kill_in_step", {}, {.at = 1, .attempt = 0});
  const auto hook = static_cast<PartWrapper&>(*injector).MakeHook();
  bench.clock.attempt = 1;
  for (int step = 0; step < 3; ++step) hook->OnStepBegin(step);
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
