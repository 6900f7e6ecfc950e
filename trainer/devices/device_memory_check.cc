// What the kernels' buffers do on a GPU that is full: beside the other checks of
// communicator_nccl_check. For a second or two the whole memory of the GPU is taken.
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

TEST(CudaDevice, EmptiesTheCacheForABufferOfTheKernelsAndTriesOnce) {
  if (CountGpus() < 1) GTEST_SKIP() << "needs a GPU";
  const auto ends = RunForked(
      1, [](int) { return OnAFullDevice(); }, /*limit_s=*/120);
  EXPECT_EQ(ends[0].output, "right, emptied, refused, goes on") << "exit " << ends[0].exit_code;
}

}  // namespace
}  // namespace trainwreck
