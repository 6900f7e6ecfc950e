// What is done and said where a GPU's memory does not suffice: beside the other checks of
// communicator_nccl_check. One of them takes the whole memory of the GPU for a second or two.
#include <ATen/ops/full.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/cuda_calls.h"
#include "kernels/out_of_memory.h"
#include "trainer/devices/count_gpus.h"
#include "trainer/devices/device.h"
#include "trainer/devices/device_memory.h"
#include "trainer/ranks/forked_ranks.h"
#include "trainer/tensor_views.h"

namespace trainwreck {
namespace {

constexpr std::size_t kMiB = 1 << 20;

bool HasRoom(std::size_t bytes) {
  try {
    kernels::cuda::FreeDevice(kernels::cuda::AllocateDevice(bytes));
    return true;
  } catch (const kernels::OutOfDeviceMemory&) {
    return false;
  }
}

// Takes the driver's memory until blocks of 16 MiB are refused. 8 MiB are left for the driver
// itself. The end of the process gives all back.
void FillUp() {
  void* const left = kernels::cuda::AllocateDevice(8 * kMiB);
  for (std::size_t bytes = std::size_t{16} << 30; bytes >= 16 * kMiB;) {
    try {
      kernels::cuda::AllocateDevice(bytes);
    } catch (const kernels::OutOfDeviceMemory&) {
      bytes /= 2;
    }
  }
  kernels::cuda::FreeDevice(left);
}

// `tensor`, and so many empty ones that the table of the list takes `bytes`: 32 for each.
std::vector<std::uint64_t> DigestsWithTableOf(std::size_t bytes, const at::Tensor& tensor) {
  std::vector<at::Tensor> list(bytes / 32);
  list[0] = tensor;
  return DigestsOf(list);
}

std::string OnAFullDevice() {
  const auto device = OpenDevice(DeviceChoice::kCuda, {});
  const auto on_device = at::TensorOptions(device->torch_device());
  const at::Tensor tensor = at::full({1000}, 2.5, on_device.dtype(at::kFloat));
  const std::uint64_t digest = DigestsOf({tensor})[0];  // loads the kernel, too
  at::full({64 * static_cast<std::int64_t>(kMiB)}, 1, on_device.dtype(at::kByte));  // now cached
  const std::int64_t reserved = device->Memory()->reserved_bytes.value();
  FillUp();
  if (HasRoom(32 * kMiB)) return "the device is not full";
  std::string said = DigestsWithTableOf(32 * kMiB, tensor)[0] == digest ? "right" : "wrong";
  said += device->Memory()->reserved_bytes.value() < reserved ? ", emptied" : ", not emptied";
  try {
    DigestsWithTableOf(256 * kMiB, tensor);
    return said + ", not refused";
  } catch (const c10::OutOfMemoryError&) {
    const auto refusal = LastDeviceRefusal();
    if (!refusal) return said + ", refused without a record";
    const DeviceMemoryNumbers& numbers = refusal->numbers;
    const bool are_true =
        refusal->requested_bytes >= static_cast<std::int64_t>(256 * kMiB) &&
        numbers.free_bytes < refusal->requested_bytes && numbers.limit_bytes > numbers.free_bytes &&
        numbers.allocated_bytes >= 4000 && numbers.reserved_bytes >= numbers.allocated_bytes;
    said += are_true ? ", refused" : ", refused with wrong numbers";
  }
  return said + (DigestsOf({tensor})[0] == digest ? ", goes on" : ", wrong then");
}

// LibTorch's own refusal, beyond the limit of a run.
std::string BeyondItsLimit() {
  constexpr std::int64_t kLimit = 1024 * kMiB, kAsked = 4096 * kMiB;
  const auto device = OpenDevice(DeviceChoice::kCuda, {});
  const auto bytes = at::TensorOptions(device->torch_device()).dtype(at::kByte);
  const at::Tensor held = at::full({128 * static_cast<std::int64_t>(kMiB)}, 1, bytes);
  device->LimitMemory(kLimit);
  try {
    at::full({kAsked}, 1, bytes);
    return "not refused";
  } catch (const c10::OutOfMemoryError&) {
    const auto refusal = LastDeviceRefusal();
    if (!refusal) return "refused without a record";
    const DeviceMemoryNumbers& numbers = refusal->numbers;
    const MemoryUse use = device->Memory().value();
    std::string wrong;
    const auto check = [&](const char* name, std::int64_t is, std::int64_t least,
                           std::int64_t most) {
      if (is < least || is > most) wrong += std::string(name) + " " + std::to_string(is) + " ";
    };
    const std::int64_t rounding = 32 * kMiB;  // of segments, and of the fraction
    check("requested", refusal->requested_bytes, kAsked, kAsked + rounding);
    check("allocated", numbers.allocated_bytes, use.allocated_bytes, use.allocated_bytes);
    check("held", numbers.allocated_bytes, held.numel(), held.numel() + rounding);
    check("reserved", numbers.reserved_bytes, use.reserved_bytes.value(), 2 * held.numel());
    check("limit", numbers.limit_bytes, kLimit - rounding, kLimit + rounding);
    check("free", numbers.free_bytes, 1, ListDevices().back().memory_bytes);
    return wrong.empty() ? "true numbers" : wrong;
  }
}

TEST(CudaDevice, SaysWithTrueNumbersThatMemoryDoesNotSuffice) {
  if (CountGpus() < 1) GTEST_SKIP() << "needs a GPU";
  const auto ends = RunForked(
      1, [](int) { return BeyondItsLimit(); }, /*limit_s=*/120);
  EXPECT_EQ(ends[0].output, "true numbers") << "exit " << ends[0].exit_code;
}

TEST(CudaDevice, EmptiesTheCacheForABufferOfTheKernelsAndTriesOnce) {
  if (CountGpus() < 1) GTEST_SKIP() << "needs a GPU";
  const auto ends = RunForked(
      1, [](int) { return OnAFullDevice(); }, /*limit_s=*/120);
  EXPECT_EQ(ends[0].output, "right, emptied, refused, goes on") << "exit " << ends[0].exit_code;
}

}  // namespace
}  // namespace trainwreck
