#include "harness/launch/device_room.h"

#include <gtest/gtest.h>

namespace trainwreck {
namespace device_room_test {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

std::vector<DeviceInfo> Gpus(int count, std::int64_t memory_bytes) {
  std::vector<DeviceInfo> devices = {{.kind = "cpu"}};
  for (int i = 0; i < count; ++i) {
    devices.push_back({.kind = "cuda", .name = "Fake", .memory_bytes = memory_bytes});
  }
  return devices;
}

Run RunOn(const std::string& device, int ranks = 1, std::int64_t limit_bytes = 0) {
  Run run;
  run.device = device;
  run.ranks = ranks;
  run.plan.recipe = {{"device", device}, {"memory.limit_bytes", limit_bytes}};
  return run;
}

// How many of such runs fit together, of 100.
int HowMany(DeviceRoom& room, const Run& run) {
  int count = 0;
  for (; count < 100 && room.Fits(run); ++count) room.Take(run);
  return count;
}

TEST(DeviceRoom, CountsTheMemoryOfAGpu) {
  DeviceRoom room(Gpus(1, 16 * kGiB), {.runs = 50, .run_bytes = 5 * kGiB});
  EXPECT_EQ(HowMany(room, RunOn("cuda")), 3);
  room.Give(RunOn("cuda"), {0});
  EXPECT_TRUE(room.Fits(RunOn("cuda")));
}

TEST(DeviceRoom, TakesTheRecipesLimitAndAContext) {
  DeviceRoom room(Gpus(1, 16 * kGiB), {.runs = 50, .run_bytes = 5 * kGiB});
  EXPECT_EQ(HowMany(room, RunOn("cuda", 1, 3 * kGiB)), 4);
}

TEST(DeviceRoom, LimitsTheRunsOnAGpu) {
  DeviceRoom room(Gpus(1, 1000 * kGiB), {.runs = 6, .run_bytes = kGiB});
  EXPECT_EQ(HowMany(room, RunOn("cuda")), 6);
  DeviceRoom unknown(Gpus(1, 0), {.runs = 2, .run_bytes = kGiB});
  EXPECT_EQ(HowMany(unknown, RunOn("cuda")), 2) << "its memory is not known";
}

TEST(DeviceRoom, LeavesRunsOnTheCpuAlone) {
  DeviceRoom room(Gpus(1, 16 * kGiB), {.runs = 1});
  EXPECT_EQ(HowMany(room, RunOn("cpu")), 100);
  EXPECT_EQ(HowMany(room, RunOn("")), 100);
  DeviceRoom none({}, {.runs = 1});
  EXPECT_EQ(HowMany(none, RunOn("cuda")), 100) << "the target knows what it does";
}

TEST(DeviceRoom, ARunOfSeveralRanksTakesSeveralGpus) {
  DeviceRoom room(Gpus(2, 16 * kGiB), {.runs = 2, .run_bytes = kGiB});
  EXPECT_EQ(room.Take(RunOn("cuda", 2)), (std::vector{0, 1}));
  EXPECT_EQ(room.Take(RunOn("cuda")), std::vector{0});
  EXPECT_FALSE(room.Fits(RunOn("cuda", 2))) << "the first GPU is full";
  room.Give(RunOn("cuda"), {0});
  EXPECT_TRUE(room.Fits(RunOn("cuda", 2)));
  EXPECT_TRUE(room.Fits(RunOn("cuda", 3))) << "it has to say itself that it has too few";
}

TEST(DeviceRoom, RunsAreSpreadOverTheGpus) {
  DeviceRoom room(Gpus(3, 16 * kGiB), {.runs = 2, .run_bytes = kGiB});
  EXPECT_EQ(room.Take(RunOn("cuda")), std::vector{0});
  EXPECT_EQ(room.Take(RunOn("cuda", 2)), (std::vector{1, 2}));
  room.Give(RunOn("cuda"), {0});
  room.Take(RunOn("cuda"));
  EXPECT_EQ(room.Take(RunOn("cuda", 2)), (std::vector{0, 1}));
  EXPECT_EQ(room.Take(RunOn("cuda")), std::vector{2});
  EXPECT_FALSE(room.Fits(RunOn("cuda")));
  EXPECT_TRUE(room.Take(RunOn("cpu")).empty());
}

TEST(DeviceRoom, ARunSeesTheGpusThatItHasGot) {
  const DeviceRoom room(Gpus(3, 16 * kGiB), {});
  EXPECT_EQ(room.Visible({1, 2}, ""), "1,2");
  EXPECT_EQ(room.Visible({1, 2}, "4,GPU-5f,7"), "GPU-5f,7");
  EXPECT_EQ(room.Visible({0, 1, 2}, "4,5,7"), "") << "all";
  EXPECT_EQ(room.Visible({}, "4,5,7"), "");
  EXPECT_EQ(DeviceRoom(Gpus(1, 16 * kGiB), {}).Visible({0}, ""), "");
}

TEST(DeviceRoom, ARunThatFitsNowhereRunsAlone) {
  DeviceRoom room(Gpus(1, 16 * kGiB), {.runs = 4, .run_bytes = 100 * kGiB});
  EXPECT_EQ(HowMany(room, RunOn("cuda")), 1);
}

}  // namespace device_room_test
}  // namespace trainwreck
