// The kernels by threads of the system under the thread sanitizer, which ends this program with an
// error when two of them race; and two kernels that race.
#include <gtest/gtest.h>

#include <vector>

#include "kernels/backends.h"
#include "kernels/cuda_on_cpu.h"
#include "kernels/cuda_ring.h"
#include "kernels/kernel_testing.h"

namespace trainwreck::kernels {
namespace {

constexpr unsigned kThreads = 64;

// Some chunks of each type, whole ones and an end; the second list has an odd address.
std::vector<TestTensor> Tensors(std::int64_t misaligned_bytes) {
  std::vector<TestTensor> tensors;
  for (const DType dtype : kFloatTypes) {
    for (const std::int64_t count : {1, 40, 5000}) {
      tensors.emplace_back(dtype, count, misaligned_bytes);
      tensors.back().FillNormal(static_cast<std::uint64_t>(count));
    }
  }
  return tensors;
}

std::vector<TensorView> ViewsOf(const std::vector<TestTensor>& tensors) {
  std::vector<TensorView> views;
  for (const TestTensor& tensor : tensors) views.push_back(tensor.view());
  return views;
}

class CudaRacesTest : public testing::Test {
 protected:
  const Backend backend_ = CudaBackends().front();
  const Backend portable_ = Backends().front();
};

TEST_F(CudaRacesTest, StatisticsAreThoseOfTheCpu) {
  for (const std::int64_t misaligned : {0, 4}) {
    const std::vector<TestTensor> tensors = Tensors(misaligned);
    const std::vector<TensorView> views = ViewsOf(tensors);
    const auto expected = portable_.stats(views), seen = backend_.stats(views);
    ASSERT_EQ(seen.size(), expected.size());
    for (std::size_t i = 0; i < seen.size(); ++i) {
      EXPECT_EQ(seen[i].sum, expected[i].sum);
      EXPECT_EQ(seen[i].sum_squares, expected[i].sum_squares);
      EXPECT_EQ(seen[i].max_abs, expected[i].max_abs);
      EXPECT_EQ(seen[i].zeros, expected[i].zeros);
    }
  }
}

TEST_F(CudaRacesTest, DigestsAreThoseOfTheCpu) {
  for (const std::int64_t misaligned : {0, 4}) {
    const std::vector<TestTensor> tensors = Tensors(misaligned);
    const std::vector<TensorView> views = ViewsOf(tensors);
    EXPECT_EQ(backend_.digests(views), portable_.digests(views));
  }
}

TEST_F(CudaRacesTest, CorruptionIsThatOfTheCpu) {
  Corruption corruption;
  corruption.elements = 700;
  std::vector<TestTensor> ours = Tensors(0), theirs = Tensors(0);
  const CorruptionReport seen = backend_.corrupt(ours.back().view(), corruption);
  const CorruptionReport expected = portable_.corrupt(theirs.back().view(), corruption);
  EXPECT_EQ(seen.changed, expected.changed);
  for (std::int64_t i = 0; i < ours.back().count(); ++i) {
    ASSERT_EQ(ours.back().bits(i), theirs.back().bits(i));
  }
}

namespace broken {
using namespace cuda;  // NOLINT(google-build-using-namespace): kernels are written in CUDA's words

__global__ void ReverseWithoutBarrier(int* out) {
  __shared__ int values[kThreads];
  values[threadIdx.x] = static_cast<int>(threadIdx.x);
  out[threadIdx.x] = values[kThreads - 1 - threadIdx.x];
}

// As if a shuffle were a barrier.
__global__ void ReverseAfterShuffle(int* out) {
  __shared__ int values[kThreads];
  values[threadIdx.x] = static_cast<int>(threadIdx.x);
  __shfl_xor_sync(kAllLanes, 0, 1);
  out[threadIdx.x] = values[threadIdx.x ^ 1];
}

__global__ void AddWithoutAtomic(int* out) { *out += 1; }

__global__ void Reverse(int* out) {
  __shared__ int values[kThreads];
  values[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = values[kThreads - 1 - threadIdx.x];
}
}  // namespace broken

int RunKernel(void (*kernel)(int*)) {
  cuda::Buffer device(cuda::Buffer::Kind::kDevice);
  auto* out = static_cast<int*>(device.Reserve(kThreads * sizeof(int)));
  cuda::ClearAsync(out, kThreads * sizeof(int), nullptr);
  cuda::Launch(kernel, 1, kThreads, nullptr, out);
  cuda::WaitForStream(nullptr);
  return 0;
}

TEST(CudaRacesDeathTest, ARaceIsSeen) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  constexpr char kRace[] = "WARNING: ThreadSanitizer: data race";
  EXPECT_EXIT(std::exit(RunKernel(broken::ReverseWithoutBarrier)), testing::ExitedWithCode(66),
              kRace);
  EXPECT_EXIT(std::exit(RunKernel(broken::ReverseAfterShuffle)), testing::ExitedWithCode(66),
              kRace);
  EXPECT_EXIT(std::exit(RunKernel(broken::AddWithoutAtomic)), testing::ExitedWithCode(66), kRace);
  EXPECT_EXIT(std::exit(RunKernel(broken::Reverse)), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace trainwreck::kernels
