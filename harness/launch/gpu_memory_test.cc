#include "harness/launch/gpu_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace trainwreck {
namespace gpu_memory_test {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
const DeviceInfo kCpu = {.kind = "cpu"};
const DeviceInfo kH200 = {.kind = "cuda", .name = "NVIDIA H200", .memory_bytes = 140 * kGiB};
const DeviceInfo kA100 = {.kind = "cuda", .name = "NVIDIA A100", .memory_bytes = 39 * kGiB};

constexpr char kLibrary[] = "harness/launch/libnvidia-ml-fake.so";

TEST(ReadGpuMemory, AsksTheDriver) {
  const std::vector<GpuMemory> gpus = ReadGpuMemory(kLibrary);
  ASSERT_EQ(gpus.size(), 3U);
  EXPECT_EQ(gpus[0].name, "NVIDIA H200");
  EXPECT_EQ(gpus[1].uuid, "GPU-7c21");
  EXPECT_EQ(gpus[1].free_bytes, 39 * kGiB);
  EXPECT_EQ(gpus[2].name, "") << "it does not tell";
}

TEST(ReadGpuMemory, WithoutADriverNothingIsKnown) {
  EXPECT_THAT(ReadGpuMemory("libnvidia-ml-of-nobody.so.1"), IsEmpty());
  EXPECT_THAT(ReadGpuMemory("libc.so.6"), IsEmpty()) << "it lacks the functions";
  setenv("FAKE_NVML", "driver", 1);
  EXPECT_THAT(ReadGpuMemory(kLibrary), IsEmpty());
  unsetenv("FAKE_NVML");
}

TEST(UsedByOthers, IsWhatATargetSeesAndCannotHave) {
  const std::vector<GpuMemory> gpus = ReadGpuMemory(kLibrary);
  EXPECT_THAT(UsedByOthers({kCpu, kH200, kA100, kH200}, gpus, nullptr),
              ElementsAre(0, 40 * kGiB, 0, 0));
  EXPECT_THAT(UsedByOthers({kCpu, kH200}, {}, nullptr), ElementsAre(0, 0));
  EXPECT_THAT(UsedByOthers({kH200, kH200, kA100}, gpus, nullptr), ElementsAre(40 * kGiB, 0, 0))
      << "CUDA numbers them otherwise";
}

TEST(UsedByOthers, GoesByTheGpusThatAreVisible) {
  const std::vector<GpuMemory> gpus = ReadGpuMemory(kLibrary);
  EXPECT_THAT(UsedByOthers({kA100, kH200}, gpus, "1,0"), ElementsAre(0, 40 * kGiB));
  EXPECT_THAT(UsedByOthers({kA100, kH200}, gpus, "GPU-7,GPU-5f"), ElementsAre(0, 40 * kGiB));
  for (const char* visible : {"", "2", "9", "-1", "MIG-5f0b", "GPU-0", ",0"}) {
    EXPECT_THAT(UsedByOthers({kH200}, gpus, visible), ElementsAre(0)) << visible;
  }
}

TEST(UsedByOthers, AsksNoDriverForDevicesThatAreNoGpus) {
  EXPECT_THAT(UsedByOthers({kCpu}), ElementsAre(0));
  EXPECT_THAT(UsedByOthers(std::vector<DeviceInfo>()), IsEmpty());
}

TEST(LessOthers, LeavesTheRestOfTheMemory) {
  const std::vector<DeviceInfo> left =
      LessOthers({kCpu, kH200, kA100, {.kind = "cuda"}}, {0, 40 * kGiB, 39 * kGiB, 0});
  EXPECT_EQ(left[1].memory_bytes, 100 * kGiB);
  EXPECT_EQ(left[2].memory_bytes, 1) << "0 would mean that it is not known";
  EXPECT_EQ(left[3].memory_bytes, 0);
}

TEST(SayOthers, TellsOfWhatIsMoreThanADriversOwn) {
  EXPECT_EQ(SayOthers(kH200, 20 * kGiB), "other programs use 20.0 of its 140.0 GiB");
  EXPECT_EQ(SayOthers(kH200, kGiB / 2), "");
  EXPECT_EQ(SayOthers(kCpu, 0), "");
}

}  // namespace gpu_memory_test
}  // namespace trainwreck
