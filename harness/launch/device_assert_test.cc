#include "harness/launch/device_assert.h"

#include <gtest/gtest.h>

#include "harness/launch/fake_runs.h"

namespace trainwreck {
namespace device_assert_test {

RunResult Failed(const std::string& last_words) {
  RunResult result;
  result.end = RunEnd::kFailed;
  result.exits = {{.rank = 0, .code = 0}, {.rank = 1, .code = 1, .last_words = last_words}};
  return result;
}

TEST(DeviceAssertTest, IsSeenInTheLastWordsOfAProgramWithoutEvents) {
  EXPECT_EQ(RankWithDeviceAssert(
                Failed("torch.AcceleratorError: CUDA error: device-side assert triggered")),
            1);
  EXPECT_EQ(RankWithDeviceAssert(Failed("CUDA error: out of memory")), std::nullopt);
  RunResult survived = Failed("RuntimeError: CUDA error: device-side assert triggered");
  survived.end = RunEnd::kCompleted;  // by a restart
  EXPECT_EQ(RankWithDeviceAssert(survived), std::nullopt);
}

TEST(DeviceAssertTest, IsMadeOnceMoreWithoutRestarts) {
  trainwreck::Run run = FakeRun("a/b", "completes");
  run.policy.max_restarts = 3;
  run.environment["OWN"] = "1";
  const trainwreck::Run again = WithBlockingLaunches(run);
  EXPECT_EQ(again.id, "a/b/blocking");
  EXPECT_EQ(again.policy.max_restarts, 0);
  EXPECT_EQ(again.environment,
            (std::map<std::string, std::string>{{"CUDA_LAUNCH_BLOCKING", "1"}, {"OWN", "1"}}));
}

TEST(DeviceAssertTest, ARepetitionThatDoesNotFailSaysSoAndNoMore) {
  RunResult result = Failed("CUDA error: device-side assert triggered");
  result.detail = "rank 1 exited with code 1";
  RunResult repeated;
  repeated.end = RunEnd::kCompleted;
  AddDeviceAssert(repeated, result);
  EXPECT_EQ(result.detail,
            "rank 1 exited with code 1; made once more with CUDA_LAUNCH_BLOCKING=1, it did not "
            "fail so");
  EXPECT_TRUE(result.trace.events.empty());
}

}  // namespace device_assert_test
}  // namespace trainwreck
