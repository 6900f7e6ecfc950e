// What happens when a device has no room, with a fake allocator.
#include "trainer/devices/device_memory.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>

namespace trainwreck {
namespace {

using testing::HasSubstr;

// A device of 1000 bytes; LibTorch's cache holds some of them.
class FakeDevice {
 public:
  explicit FakeDevice(std::int64_t cached) : cached_(cached) {}

  int Allocate(std::int64_t bytes) {
    ++allocations;
    if (bytes > kAll - kTensors - cached_) {
      throw kernels::OutOfDeviceMemory(static_cast<std::size_t>(bytes));
    }
    return 7;
  }

  DeviceCache cache() {
    return {
        [this] {
          ++emptied;
          cached_ = 0;
        },
        [this] {
          return DeviceMemoryNumbers{kTensors, kTensors + cached_, kAll - kTensors - cached_, kAll};
        }};
  }

  int allocations = 0, emptied = 0;

 private:
  static constexpr std::int64_t kAll = 1000, kTensors = 300;
  std::int64_t cached_;
};

int Allocate(FakeDevice& device, std::int64_t bytes) {
  return CallWithDeviceMemory(device.cache(), [&] { return device.Allocate(bytes); });
}

TEST(DeviceMemory, IsAskedOnceWhereThereIsRoom) {
  FakeDevice device(100);
  EXPECT_EQ(Allocate(device, 600), 7);
  EXPECT_EQ(device.allocations, 1);
  EXPECT_EQ(device.emptied, 0);
}

TEST(DeviceMemory, IsAskedAgainWhenTheCacheIsEmpty) {
  FakeDevice device(500);
  EXPECT_EQ(Allocate(device, 600), 7);
  EXPECT_EQ(device.allocations, 2);
  EXPECT_EQ(device.emptied, 1);
}

TEST(DeviceMemory, IsRefusedAfterTheSecondTimeWithTheDevicesNumbers) {
  FakeDevice device(500);
  try {
    Allocate(device, 701);
    FAIL() << "it was not refused";
  } catch (const c10::OutOfMemoryError& error) {
    EXPECT_THAT(error.what_without_backtrace(),
                HasSubstr("Tried to allocate 701 B for a kernel's buffer, and again with an empty "
                          "cache; of 1000 B, 700 B are free, 300 B are allocated by tensors and "
                          "300 B are reserved."));
  }
  EXPECT_EQ(device.allocations, 2);
  EXPECT_EQ(device.emptied, 1);
  const auto refusal = LastDeviceRefusal();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->requested_bytes, 701);
  EXPECT_EQ(refusal->numbers.free_bytes, 700);
  EXPECT_EQ(refusal->numbers.limit_bytes, 1000);
}

// The host's memory is none of its business, nor is another error.
TEST(DeviceMemory, LeavesOtherErrorsAlone) {
  FakeDevice device(0);
  const auto call = [&](auto error) {
    CallWithDeviceMemory(device.cache(), [&]() -> int { throw error; });
  };
  EXPECT_THROW(call(std::bad_alloc()), std::bad_alloc);
  EXPECT_THROW(call(std::runtime_error("x")), std::runtime_error);
  EXPECT_EQ(device.emptied, 0);
}

TEST(AllocatorSettingsTest, AreThoseOfTheEnvironmentAndTheRecipe) {
  unsetenv("PYTORCH_CUDA_ALLOC_CONF");
  unsetenv("PYTORCH_ALLOC_CONF");
  EXPECT_EQ(AllocatorSettings(false), "");
  EXPECT_EQ(AllocatorSettings(true), "expandable_segments:True");
  setenv("PYTORCH_ALLOC_CONF", "max_split_size_mb:64", 1);
  EXPECT_EQ(AllocatorSettings(false), "max_split_size_mb:64");
  EXPECT_EQ(AllocatorSettings(true), "max_split_size_mb:64,expandable_segments:True");
  setenv("PYTORCH_CUDA_ALLOC_CONF", "backend:native", 1);
  EXPECT_EQ(AllocatorSettings(false), "backend:native,max_split_size_mb:64");
  unsetenv("PYTORCH_CUDA_ALLOC_CONF");
  unsetenv("PYTORCH_ALLOC_CONF");
}

}  // namespace
}  // namespace trainwreck
