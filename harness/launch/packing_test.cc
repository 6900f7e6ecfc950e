// Which runs a launcher starts at a time.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <string>
#include <vector>

#include "harness/launch/fake_runs.h"
#include "harness/launch/launcher.h"

namespace trainwreck {
namespace packing_test {

// The most that were on their way at once, of three such runs, on as many cores as each has ranks.
int MostAtOnce(const Run& run, RunEnd end, Isolation isolation) {
  std::list<Run> runs(3, run);
  int number = 0;
  for (Run& one : runs) one.id += std::to_string(number++);
  int most = 0;
  const auto see = [&](int running, int, int) { most = std::max(most, running + 1); };
  const auto adjust = [&](LauncherOptions& options) { options.cores = run.ranks; };
  for (const auto& [id, result] : RunFakes(runs, isolation, adjust, {}, see)) {
    EXPECT_EQ(result.end, end) << id << ": " << result.detail;
  }
  return most;
}

class PackingTest : public testing::TestWithParam<Isolation> {};

INSTANTIATE_TEST_SUITE_P(Isolation, PackingTest,
                         testing::Values(Isolation::kFork, Isolation::kExec), [](const auto& info) {
                           return info.param == Isolation::kFork ? "Fork" : "Exec";
                         });

TEST_P(PackingTest, LendsTheCoresOfRunsThatOnlyWait) {
  trainwreck::Run run = FakeRun("hangs", "hangs", {{"parallel.ranks", 2}});
  run.policy.stall_seconds = 2.5;
  EXPECT_EQ(MostAtOnce(run, RunEnd::kStalled, GetParam()), 3);
}

TEST_P(PackingTest, KeepsTheCoresOfRunsThatComputeInSilence) {
  trainwreck::Run run = FakeRun("spins", "spins");
  run.policy.stall_seconds = 0.8;
  EXPECT_LE(MostAtOnce(run, RunEnd::kStalled, GetParam()), 2);  // one that is over, and the next
}

// Steps that mostly sleep, as those of ranks behind a slow link.
TEST_P(PackingTest, LendsTheCoresOfRunsThatUseLittleOfThem) {
  const trainwreck::Run run =
      FakeRun("sleeps", "completes", {{"parallel.ranks", 2}, {"fake.step_ms", 100}});
  EXPECT_EQ(MostAtOnce(run, RunEnd::kCompleted, GetParam()), 3);
}

// Eight places on one core: four of nine that wait, and the one that computes, which ends first.
TEST(PackingOrderTest, RunsThatMayWaitStartFirstAndGetHalfOfThePlaces) {
  std::list<trainwreck::Run> runs = {FakeRun("computes", "completes")};
  runs.back().cost = 1000;
  for (int i = 0; i < 9; ++i) {
    runs.push_back(FakeRun(fmt::format("waits/{}", i), "hangs"));
    runs.back().policy.stall_seconds = 3;
    runs.back().may_wait_seconds = 3;
  }
  std::vector<int> beside;  // runs that go on when one ends
  const auto results = RunFakes(
      runs, Isolation::kFork, [](LauncherOptions& options) { options.cores = 1; }, {},
      [&](int running, int, int) { beside.push_back(running); });
  EXPECT_EQ(results.at("computes").end, RunEnd::kCompleted);
  ASSERT_EQ(beside.size(), 10u);
  EXPECT_EQ(beside.front(), 4);
  EXPECT_LE(*std::max_element(beside.begin(), beside.end()), 4);
}

// Loaded before anybody asks for the driver's, whose name it has.
const bool has_fake_driver = dlopen("harness/launch/libnvidia-ml-fake.so", RTLD_NOW) != nullptr;

// The most runs that there were at a time, of six with a device, on eight cores and one GPU.
int MostAtATime(const std::string& device, const DeviceInfo& gpu, const DeviceLimits& limits) {
  std::list<Run> runs;
  for (int i = 0; i < 6; ++i) {
    runs.push_back(FakeRun("gpu" + std::to_string(i), "completes", {{"fake.step_ms", 10}}));
    runs.back().device = device;
  }
  int most = 0;
  const auto results = RunFakes(
      runs, Isolation::kFork,
      [&](LauncherOptions& options) {
        options.cores = 8;
        options.target.devices = {gpu};
        options.target.device_limits = limits;
      },
      {}, [&](int running, int, int) { most = std::max(most, running + 1); });
  for (const auto& [id, result] : results) EXPECT_EQ(result.end, RunEnd::kCompleted) << id;
  EXPECT_EQ(results.size(), 6u);
  return most;
}

TEST(PackingDevicesTest, PacksRunsByTheGpusAsWellAsByTheCores) {
  const DeviceInfo gpu = {.kind = "cuda", .name = "Fake", .memory_bytes = 80LL << 30};
  EXPECT_EQ(MostAtATime("cuda", gpu, {.runs = 2}), 2);
  EXPECT_GT(MostAtATime("cpu", gpu, {.runs = 2}), 2);
}

TEST(PackingDevicesTest, LeavesOtherProgramsTheirMemory) {
  ASSERT_TRUE(has_fake_driver);
  DeviceInfo gpu = {.kind = "cuda", .name = "NVIDIA H200", .memory_bytes = 140LL << 30};
  const DeviceLimits limits = {.runs = 4, .run_bytes = 45LL << 30};
  EXPECT_EQ(MostAtATime("cuda", gpu, limits), 2) << "40 GiB are in use";
  gpu.name = "Fake";
  EXPECT_EQ(MostAtATime("cuda", gpu, limits), 3);
}

}  // namespace packing_test
}  // namespace trainwreck
