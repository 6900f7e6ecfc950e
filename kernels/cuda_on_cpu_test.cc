// Kernels that are broken, each in one way, and what runs them on the CPU says of it.
#include "kernels/cuda_on_cpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/cuda_ring.h"

namespace trainwreck::kernels::cuda {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr unsigned kThreads = 64;

class CudaOnCpuTest : public testing::Test {
 protected:
  ~CudaOnCpuTest() override { ResetDevice(); }

  // What the call that waits says.
  static std::string ErrorOfWait() {
    try {
      WaitForStream(nullptr);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  }

  // What the kernel writes, by one block, on `count` threads.
  template <typename Kernel>
  std::vector<int> Run(Kernel kernel, unsigned threads = kThreads) {
    auto* device = static_cast<int*>(device_.Reserve(kThreads * sizeof(int)));
    auto* host = static_cast<int*>(host_.Reserve(kThreads * sizeof(int)));
    ClearAsync(device, kThreads * sizeof(int), nullptr);
    Launch(kernel, 1, threads, nullptr, device);
    CopyAsync(host, device, kThreads * sizeof(int), nullptr);
    error_ = ErrorOfWait();
    return {host, host + kThreads};
  }

  Buffer device_{Buffer::Kind::kDevice}, host_{Buffer::Kind::kPinned};
  std::string error_;
};

__global__ void Reverse(int* out) {
  __shared__ int values[kThreads];
  values[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = values[kThreads - 1 - threadIdx.x];
}

__global__ void ReverseWithoutBarrier(int* out) {
  __shared__ int values[kThreads];
  values[threadIdx.x] = static_cast<int>(threadIdx.x);
  out[threadIdx.x] = values[kThreads - 1 - threadIdx.x];
}

TEST_F(CudaOnCpuTest, AMissingBarrierIsSeenInEveryOrder) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SetSchedule(seed);
    const std::vector<int> right = Run(Reverse);
    for (unsigned i = 0; i < kThreads; ++i) EXPECT_EQ(right[i], kThreads - 1 - i);
    EXPECT_NE(Run(ReverseWithoutBarrier), right) << "seed " << seed;
  }
}

__global__ void WriteOwnNumber(int* out) {
  static int turn = 0;
  out[turn++ % kThreads] = static_cast<int>(threadIdx.x);
}

TEST_F(CudaOnCpuTest, ASeedRepeatsAnOrder) {
  const auto order_of = [&](std::uint64_t seed) {
    SetSchedule(seed);
    return Run(WriteOwnNumber);
  };
  EXPECT_EQ(order_of(1), order_of(1));
  EXPECT_NE(order_of(1), order_of(2));
}

__global__ void ReadUnwrittenSharedMemory(int* out) {
  __shared__ float values[kThreads];
  if (threadIdx.x > 0) values[threadIdx.x] = 0;
  __syncthreads();
  out[threadIdx.x] = std::isnan(values[threadIdx.x]);
}

TEST_F(CudaOnCpuTest, SharedMemoryBeginsAsNan) {
  for (int i = 0; i < 2; ++i) {
    const std::vector<int> is_nan = Run(ReadUnwrittenSharedMemory);
    EXPECT_EQ(is_nan[0], 1) << "in every block";
    EXPECT_EQ(is_nan[1], 0);
  }
}

__global__ void BarrierInABranch(int*) {
  if (threadIdx.x < 10) __syncthreads();
}

__global__ void TwoBarriersInBranches(int*) {
  if (threadIdx.x < 10) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

TEST_F(CudaOnCpuTest, ABarrierIsForAllThreads) {
  Run(BarrierInABranch);
  EXPECT_THAT(error_, AllOf(HasSubstr("thread 0 waits at the barrier at cuda_on_cpu_test.cc:"),
                            HasSubstr("; thread 10 has ended")));
  ResetDevice();
  Run(TwoBarriersInBranches);
  EXPECT_THAT(error_, AllOf(HasSubstr("thread 0 waits at the barrier at"),
                            HasSubstr("; thread 10 waits at the barrier at")));
}

__global__ void SumOfNeighbours(int* out) {
  const int mine = static_cast<int>(threadIdx.x);
  out[threadIdx.x] = mine + __shfl_xor_sync(kAllLanes, mine, 1);
}

__global__ void ShuffleInABranch(int* out) {
  if (threadIdx.x % 32 < 8) out[threadIdx.x] = __shfl_xor_sync(kAllLanes, 1, 1);
}

__global__ void ShuffleOfAnother(int* out) {
  out[threadIdx.x] = __shfl_xor_sync(0xffff0000u, 1, 1);
}

__global__ void ShuffleOutOfTheMask(int* out) {
  if (threadIdx.x < 16) out[threadIdx.x] = __shfl_xor_sync(0x0000ffffu, 1, 16);
}

__global__ void ShuffleOfHalves(int* out) {
  const int mine = static_cast<int>(threadIdx.x);
  if (threadIdx.x % 32 < 16) {
    out[threadIdx.x] = __shfl_xor_sync(0x0000ffffu, mine, 8);
  } else {
    out[threadIdx.x] = __shfl_xor_sync(0xffff0000u, mine, 8);
  }
}

TEST_F(CudaOnCpuTest, ShufflesExchangeWithinTheirMask) {
  const std::vector<int> sums = Run(SumOfNeighbours);
  for (int i = 0; i < static_cast<int>(kThreads); ++i) EXPECT_EQ(sums[i], i + (i ^ 1));
  const std::vector<int> halves = Run(ShuffleOfHalves);
  for (int i = 0; i < static_cast<int>(kThreads); ++i) EXPECT_EQ(halves[i], i ^ 8);
  EXPECT_EQ(error_, "");
}

TEST_F(CudaOnCpuTest, ShufflesWantAMaskThatHoldsTheirLanes) {
  Run(ShuffleOfAnother);
  EXPECT_THAT(error_, HasSubstr("leaves out its caller, lane "));
  ResetDevice();
  Run(ShuffleOutOfTheMask);
  EXPECT_THAT(error_, HasSubstr("which its mask leaves out"));
}

TEST_F(CudaOnCpuTest, ShufflesWantAllLanesOfTheirMask) {
  Run(ShuffleInABranch);
  EXPECT_THAT(error_, AllOf(HasSubstr("waits at the shuffle at"), HasSubstr("has ended")));
  ResetDevice();
  Run(SumOfNeighbours, 40);
  EXPECT_THAT(error_, HasSubstr("waits at the shuffle at")) << "the second warp has 8 lanes";
}

TEST_F(CudaOnCpuTest, ErrorsAreLateAndSticky) {
  int* device = static_cast<int*>(device_.Reserve(64));
  EXPECT_NO_THROW(Launch(BarrierInABranch, 1, kThreads, nullptr, device)) << "it was only queued";
  EXPECT_THAT(ErrorOfWait(), HasSubstr("cudaErrorLaunchFailure: thread 0 waits"));
  EXPECT_THAT(ErrorOfWait(), HasSubstr("cudaErrorLaunchFailure: thread 0 waits"));
  EXPECT_THROW(ClearAsync(device, 4, nullptr), std::runtime_error);
  EXPECT_THROW(Launch(SumOfNeighbours, 1, kThreads, nullptr, device), std::runtime_error);
  EXPECT_THROW(AllocateDevice(1), std::runtime_error);
  ResetDevice();
  EXPECT_EQ(ErrorOfWait(), "");
}

TEST_F(CudaOnCpuTest, CopiesWantPinnedMemoryAndStayWithinABuffer) {
  void* device = device_.Reserve(8);
  void* pinned = host_.Reserve(8);
  int on_the_stack[2] = {};
  EXPECT_NO_THROW(CopyAsync(device, pinned, 8, nullptr));
  EXPECT_THROW(CopyAsync(device, on_the_stack, 8, nullptr), std::runtime_error);
  EXPECT_THROW(CopyAsync(device, pinned, 9, nullptr), std::runtime_error);
}

__global__ void WritePast(int* out) { out[kThreads] = 1; }
__global__ void WriteBefore(int* out) { out[-1] = 1; }
__global__ void ReadPast(int* out) { out[0] = out[kThreads]; }
__global__ void LoadMisaligned(int* out) {
  const auto* four = reinterpret_cast<const uint4*>(out + 1);
  out[0] = static_cast<int>(four->x);
}

using CudaOnCpuDeathTest = CudaOnCpuTest;

TEST_F(CudaOnCpuDeathTest, BuffersEndAtPagesThatCannotBeTouched) {
  EXPECT_DEATH(Run(WritePast), "");
  EXPECT_DEATH(Run(ReadPast), "");
  EXPECT_DEATH(
      {
        void* data = AllocateDevice(kThreads * sizeof(int));
        Launch(WriteBefore, 1, 1, nullptr, static_cast<int*>(data));
        FreeDevice(data);
      },
      "a buffer of 256 bytes was written outside of its bounds");
}

TEST_F(CudaOnCpuDeathTest, MemoryIsNotUsedAfterItsEnd) {
  EXPECT_DEATH(
      {
        void* data = AllocateDevice(64);
        FreeDevice(data);
        Launch(SumOfNeighbours, 1, 32, nullptr, static_cast<int*>(data));
        WaitForStream(nullptr);
      },
      "");
  EXPECT_DEATH(
      {
        void* data = AllocateDevice(64);
        FreeDevice(data);
        FreeDevice(data);
      },
      "freed before");
}

TEST_F(CudaOnCpuDeathTest, TheHostCannotTouchDeviceMemory) {
  auto* device = static_cast<volatile int*>(device_.Reserve(64));
  EXPECT_DEATH(static_cast<void>(device[0]), "");
  EXPECT_DEATH(device[0] = 1, "");
}

TEST_F(CudaOnCpuDeathTest, LoadsFitTheirAlignment) { EXPECT_DEATH(Run(LoadMisaligned), ""); }

}  // namespace
}  // namespace trainwreck::kernels::cuda
