#include "harness/process/process_status.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <thread>

namespace trainwreck {
namespace {

double ProcessorSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

TEST(ProcessStatusTest, DemandGrowsWithWorkAndNotWithSleep) {
  const auto before = ReadProcessorDemand(getpid());
  ASSERT_TRUE(before.has_value());
  const double begin = ProcessorSeconds();
  while (ProcessorSeconds() < begin + 0.2) {
  }
  const auto worked = ReadProcessorDemand(getpid());
  ASSERT_TRUE(worked.has_value());
  EXPECT_GE(*worked - *before, 0.19);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const auto slept = ReadProcessorDemand(getpid());
  ASSERT_TRUE(slept.has_value());
  EXPECT_LT(*slept - *worked, 0.25);
}

TEST(ProcessStatusTest, KnowsNothingOfAProcessThatIsGone) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(ReadProcessorDemand(child).has_value());
  EXPECT_FALSE(ReadProcess(child).has_value());
}

TEST(ProcessStatusTest, SaysThatAProcessHasChildren) {
  const pid_t child = fork();
  if (child == 0) pause();
  const auto status = ReadProcess(getpid());
  const auto of_child = ReadProcess(child);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  ASSERT_TRUE(status.has_value());
  EXPECT_TRUE(status->has_children);
  ASSERT_TRUE(of_child.has_value());
  EXPECT_FALSE(of_child->has_children);
}

}  // namespace
}  // namespace trainwreck
