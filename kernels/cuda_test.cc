// What a step costs in calls, and the ring of results. The values are checked by the tests that run
// over all backends.
#include <gtest/gtest.h>

#include <vector>

#include "kernels/corrupt_cuda.h"
#include "kernels/cuda_calls.h"
#include "kernels/cuda_ring.h"
#include "kernels/digest.h"
#include "kernels/digest_cuda.h"
#include "kernels/kernel_testing.h"
#include "kernels/out_of_memory.h"
#include "kernels/tensor_stats_cuda.h"

namespace trainwreck::kernels {
namespace {

using cuda::Buffer;
using cuda::CallCounts;

#define SKIP_WITHOUT_CUDA()                                        \
  if (const std::string why = cuda::WhyUnusable(); !why.empty()) { \
    GTEST_SKIP() << "NOT VERIFIED on a GPU: " << why;              \
  }                                                                \
  static_assert(true)

// The parameters of a gpt in device memory; element i of every tensor is i % 7.
class Gpt {
 public:
  Gpt() {
    for (std::int64_t size : GptSizes(2, 16, 8, 8)) {
      const std::size_t bytes = static_cast<std::size_t>(size) * sizeof(float);
      auto* values = static_cast<float*>(host_.Reserve(1 << 20));
      for (std::int64_t i = 0; i < size; ++i) values[i] = static_cast<float>(i % 7);
      buffers_.push_back(std::make_unique<Buffer>(Buffer::Kind::kDevice));
      void* data = buffers_.back()->Reserve(bytes);
      cuda::CopyAsync(data, values, bytes, nullptr);
      cuda::WaitForStream(nullptr);
      views.push_back({data, size, DType::kFloat32});
    }
  }

  std::vector<TensorView> views;

 private:
  Buffer host_{Buffer::Kind::kPinned};
  std::vector<std::unique_ptr<Buffer>> buffers_;
};

CallCounts operator-(const CallCounts& a, const CallCounts& b) {
  return {a.launches - b.launches, a.copies - b.copies, a.synchronising - b.synchronising};
}

TEST(Cuda, AStepOfStatisticsMakesTwoLaunchesAndNeverWaits) {
  SKIP_WITHOUT_CUDA();
  const Gpt gpt;
  ASSERT_GT(gpt.views.size(), 25u);
  CudaTensorStats statistics(4);
  constexpr int kSteps = 12;
  const auto warm_up = [&] {  // every slot allocates once
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(statistics.Launch(gpt.views, i, nullptr));
    while (statistics.Wait()) continue;
  };
  warm_up();
  const CallCounts before = cuda::Counts();
  int got = 0;
  for (int step = 0; step < kSteps; ++step) {
    while (!statistics.Launch(gpt.views, step, nullptr)) got += statistics.Poll().has_value();
    got += statistics.Poll().has_value();
  }
  while (statistics.in_flight() > 0) got += statistics.Poll().has_value();
  const CallCounts spent = cuda::Counts() - before;
  EXPECT_EQ(got, kSteps);
  EXPECT_EQ(spent.synchronising, 0);
  EXPECT_EQ(spent.launches, 2 * kSteps);
  EXPECT_EQ(spent.copies, 2 * kSteps);
  // The counter itself can see a wait.
  cuda::WaitForStream(nullptr);
  EXPECT_EQ((cuda::Counts() - before).synchronising, 1);
}

TEST(Cuda, AStepOfDigestsMakesOneLaunchAndNeverWaits) {
  SKIP_WITHOUT_CUDA();
  const Gpt gpt;
  CudaDigests digests(1);
  ASSERT_TRUE(digests.Launch(gpt.views, 0, nullptr));
  const auto first = digests.Wait();
  const CallCounts before = cuda::Counts();
  ASSERT_TRUE(digests.Launch(gpt.views, 1, nullptr));
  std::optional<CudaDigests::Result> second;
  while (!second) second = digests.Poll();
  const CallCounts spent = cuda::Counts() - before;
  EXPECT_EQ(spent.synchronising, 0);
  EXPECT_EQ(spent.launches, 1);
  EXPECT_EQ(first->digests, second->digests);
}

TEST(Cuda, ASecondCorruptionAllocatesNothingAndWaitsOnce) {
  SKIP_WITHOUT_CUDA();
  constexpr std::int64_t kCount = 5000;
  Buffer device(Buffer::Kind::kDevice);
  const MutableTensorView all{device.Reserve(kCount * sizeof(float)), kCount, DType::kFloat32};
  cuda::ClearAsync(all.data, kCount * sizeof(float), nullptr);
  CudaCorruptor corruptor;
  const Corruption flip{.elements = all.count, .bit = 3};
  corruptor.Corrupt(all, flip, nullptr);
  const CallCounts before = cuda::Counts();
  const CorruptionReport report = corruptor.Corrupt(all, flip, nullptr);
  const CallCounts spent = cuda::Counts() - before;
  EXPECT_EQ(report.changed, all.count) << "the count of the call before is gone";
  EXPECT_EQ(spent.synchronising, 1);
  EXPECT_EQ(spent.launches, 1);
  EXPECT_EQ(spent.copies, 2);
}

TEST(Cuda, ResultsComeInOrderWithTheirTags) {
  SKIP_WITHOUT_CUDA();
  const Gpt gpt;
  CudaTensorStats statistics(3);
  EXPECT_FALSE(statistics.Poll());
  EXPECT_FALSE(statistics.Wait());
  for (std::int64_t tag : {10, 11, 12}) ASSERT_TRUE(statistics.Launch(gpt.views, tag, nullptr));
  EXPECT_EQ(statistics.in_flight(), 3);
  EXPECT_FALSE(statistics.Launch(gpt.views, 13, nullptr)) << "the ring has three slots";
  for (std::int64_t tag : {10, 11, 12}) {
    const auto result = statistics.Wait();
    ASSERT_TRUE(result);
    EXPECT_EQ(result->tag, tag);
    ASSERT_EQ(result->stats.size(), gpt.views.size());
    EXPECT_EQ(result->stats[0].max_abs, 6);
  }
  EXPECT_TRUE(statistics.Launch(gpt.views, 13, nullptr));
  EXPECT_EQ(statistics.Wait()->tag, 13);
}

// Lists that differ take turns over two slots: results that are read too early are another list's.
TEST(Cuda, ResultsAreReadOnlyWhenTheyAreThere) {
  SKIP_WITHOUT_CUDA();
  const Gpt gpt;
  const auto list = [&](std::int64_t tag) {
    return std::span(gpt.views).subspan(static_cast<std::size_t>(tag % 3), 10);
  };
  CudaTensorStats statistics(2);
  std::int64_t got = 0;
  const auto poll = [&] {
    const auto result = statistics.Poll();
    if (!result) return;
    EXPECT_EQ(result->tag, got++);
    for (std::size_t i = 0; i < 10; ++i) {
      EXPECT_EQ(result->stats[i].count, list(result->tag)[i].count);
    }
  };
  for (std::int64_t tag = 0; tag < 12; ++tag) {
    while (!statistics.Launch(list(tag), tag, nullptr)) poll();
    poll();
  }
  while (statistics.in_flight() > 0) poll();
  EXPECT_EQ(got, 12);
}

TEST(Cuda, SlotsGrowWithTheList) {
  SKIP_WITHOUT_CUDA();
  const Gpt gpt;
  CudaTensorStats statistics(2);
  for (std::size_t length : {std::size_t{1}, std::size_t{0}, gpt.views.size(), std::size_t{3}}) {
    ASSERT_TRUE(statistics.Launch(std::span(gpt.views).first(length), 0, nullptr));
    const auto result = statistics.Wait();
    ASSERT_EQ(result->stats.size(), length);
    for (std::size_t i = 0; i < length; ++i) EXPECT_EQ(result->stats[i].count, gpt.views[i].count);
  }
}

TEST(Cuda, ARefusedListLeavesTheRingUsable) {
  SKIP_WITHOUT_CUDA();
  const Gpt gpt;
  CudaTensorStats statistics(1);
  const TensorView wrong{nullptr, 0, DType::kInt64};
  EXPECT_THROW(statistics.Launch(std::span(&wrong, 1), 0, nullptr), std::invalid_argument);
  EXPECT_EQ(statistics.in_flight(), 0);
  EXPECT_TRUE(statistics.Launch(gpt.views, 1, nullptr));
  EXPECT_EQ(statistics.Wait()->tag, 1);
}

// LibTorch's next check would take it for its own.
TEST(Cuda, AFailedCallLeavesNoErrorBehind) {
  SKIP_WITHOUT_CUDA();
  constexpr std::size_t kTooMuch = std::size_t{1} << 60;
  EXPECT_THROW(cuda::AllocateDevice(kTooMuch), OutOfDeviceMemory);
  EXPECT_EQ(cuda::ErrorLeftBehind(), "");
  EXPECT_THROW(cuda::AllocatePinned(kTooMuch), std::exception) << "the driver may call it invalid";
  EXPECT_EQ(cuda::ErrorLeftBehind(), "");
  const Gpt gpt;
  CudaTensorStats statistics(1);
  ASSERT_TRUE(statistics.Launch(gpt.views, 1, nullptr));
  while (!statistics.Poll()) EXPECT_EQ(cuda::ErrorLeftBehind(), "") << "it is only not ready yet";
}

}  // namespace
}  // namespace trainwreck::kernels
