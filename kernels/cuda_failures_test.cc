// What the kernels' classes do when memory is refused to them in the middle of a call, and when the
// device is lost beneath them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "kernels/corrupt_cuda.h"
#include "kernels/cuda_on_cpu.h"
#include "kernels/cuda_ring.h"
#include "kernels/digest.h"
#include "kernels/digest_cuda.h"
#include "kernels/kernel_testing.h"
#include "kernels/out_of_memory.h"
#include "kernels/tensor_stats_cuda.h"

namespace trainwreck::kernels {
namespace {

using cuda::Buffer;
using testing::HasSubstr;

// Tensors in host memory and their copies on the device.
class Tensors {
 public:
  explicit Tensors(const std::vector<std::int64_t>& sizes) {
    for (const std::int64_t size : sizes) {
      originals_.emplace_back(DType::kFloat32, size);
      originals_.back().FillNormal(static_cast<std::uint64_t>(size));
      const TensorView view = std::as_const(originals_.back()).view();
      const auto bytes = static_cast<std::size_t>(view.bytes());
      buffers_.push_back(std::make_unique<Buffer>(Buffer::Kind::kDevice));
      void* data = buffers_.back()->Reserve(bytes);
      Buffer staging(Buffer::Kind::kPinned);
      std::memcpy(staging.Reserve(bytes), view.data, bytes);
      cuda::CopyAsync(data, staging.as<void>(), bytes, nullptr);
      cuda::WaitForStream(nullptr);
      on_host.push_back(view);
      on_device.push_back({data, size, DType::kFloat32});
    }
  }

  std::vector<TensorView> on_host, on_device;

 private:
  std::vector<TestTensor> originals_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
};

std::string ErrorOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

class CudaFailuresTest : public testing::Test {
 protected:
  ~CudaFailuresTest() override {
    cuda::RefuseAllocation(0);
    cuda::ResetDevice();
  }

  void ExpectStats(CudaTensorStats& statistics, const Tensors& tensors) {
    ASSERT_TRUE(statistics.Launch(tensors.on_device, 7, nullptr));
    const auto result = statistics.Wait();
    ASSERT_TRUE(result);
    EXPECT_EQ(result->tag, 7);
    ASSERT_EQ(result->stats.size(), tensors.on_host.size());
    for (std::size_t i = 0; i < result->stats.size(); ++i) {
      const TensorStats expected = ComputeTensorStats(tensors.on_host[i]);
      EXPECT_EQ(result->stats[i].count, expected.count);
      EXPECT_EQ(result->stats[i].sum, expected.sum);
      EXPECT_EQ(result->stats[i].sum_squares, expected.sum_squares);
      EXPECT_EQ(result->stats[i].max_abs, expected.max_abs);
    }
  }

  static void ExpectDigests(CudaDigests& digests, const Tensors& tensors) {
    ASSERT_TRUE(digests.Launch(tensors.on_device, 7, nullptr));
    const auto result = digests.Wait();
    ASSERT_TRUE(result);
    std::vector<std::uint64_t> expected(tensors.on_host.size());
    ComputeDigests(tensors.on_host, expected);
    EXPECT_EQ(result->digests, expected);
  }

  // Calls `call` of an object of each attempt with one allocation after another refused, and then
  // `check` on the same object; returns how many allocations `call` makes.
  template <typename Object>
  static int RefuseEach(const std::function<std::unique_ptr<Object>()>& make,
                        const std::function<void(Object&)>& call,
                        const std::function<void(Object&)>& check) {
    for (int number = 1;; ++number) {
      SCOPED_TRACE("allocation " + std::to_string(number));
      const std::size_t before = cuda::LiveBuffers();
      {
        const std::unique_ptr<Object> object = make();
        cuda::RefuseAllocation(number);
        try {
          call(*object);
        } catch (const std::bad_alloc&) {
          EXPECT_TRUE(cuda::HasRefused());
        }
        const bool was_refused = cuda::HasRefused();
        cuda::RefuseAllocation(0);
        if (!was_refused) return number - 1;
        check(*object);
      }
      EXPECT_EQ(cuda::LiveBuffers(), before);
      EXPECT_EQ(cuda::ErrorLeftBehind(), "");
      if (HasFailure()) return number;
    }
  }

  const Tensors few_{{3, 5000}}, many_{{1, 40, 70000, 5000, 9}};
};

TEST_F(CudaFailuresTest, StatisticsGoOnAfterARefusal) {
  const int allocations = RefuseEach<CudaTensorStats>(
      [] { return std::make_unique<CudaTensorStats>(1); },
      [&](CudaTensorStats& statistics) { statistics.Launch(many_.on_device, 0, nullptr); },
      [&](CudaTensorStats& statistics) {
        EXPECT_EQ(statistics.in_flight(), 0);
        EXPECT_FALSE(statistics.Poll());
        ExpectStats(statistics, many_);
        ExpectStats(statistics, few_);
      });
  EXPECT_EQ(allocations, 5) << "each was refused once";
}

TEST_F(CudaFailuresTest, StatisticsWhoseBuffersCannotGrowGoOn) {
  const int allocations = RefuseEach<CudaTensorStats>(
      [&] {
        auto statistics = std::make_unique<CudaTensorStats>(1);
        ExpectStats(*statistics, few_);
        return statistics;
      },
      [&](CudaTensorStats& statistics) { statistics.Launch(many_.on_device, 0, nullptr); },
      [&](CudaTensorStats& statistics) {
        EXPECT_EQ(statistics.in_flight(), 0);
        ExpectStats(statistics, few_);
        ExpectStats(statistics, many_);
      });
  EXPECT_EQ(allocations, 5);
}

TEST_F(CudaFailuresTest, ARefusalLeavesWhatIsInFlight) {
  const int allocations = RefuseEach<CudaTensorStats>(
      [&] {
        auto statistics = std::make_unique<CudaTensorStats>(2);
        statistics->Launch(few_.on_device, 3, nullptr);
        return statistics;
      },
      [&](CudaTensorStats& statistics) { statistics.Launch(many_.on_device, 0, nullptr); },
      [&](CudaTensorStats& statistics) {
        EXPECT_EQ(statistics.in_flight(), 1);
        const auto result = statistics.Wait();
        ASSERT_TRUE(result);
        EXPECT_EQ(result->tag, 3);
        EXPECT_EQ(result->stats[1].sum, ComputeTensorStats(few_.on_host[1]).sum);
        ExpectStats(statistics, many_);
      });
  EXPECT_EQ(allocations, 5);
}

TEST_F(CudaFailuresTest, DigestsGoOnAfterARefusal) {
  for (const bool grows : {false, true}) {
    const int allocations = RefuseEach<CudaDigests>(
        [&] {
          auto digests = std::make_unique<CudaDigests>(1);
          if (grows) ExpectDigests(*digests, few_);
          return digests;
        },
        [&](CudaDigests& digests) { digests.Launch(many_.on_device, 0, nullptr); },
        [&](CudaDigests& digests) {
          EXPECT_EQ(digests.in_flight(), 0);
          ExpectDigests(digests, few_);
          ExpectDigests(digests, many_);
        });
    EXPECT_EQ(allocations, 4);
  }
}

TEST_F(CudaFailuresTest, ACorruptionThatWasRefusedChangesNothing) {
  const Corruption flip{.elements = 700, .bit = 3, .seed = 5};
  const Tensors fresh({5000});
  const MutableTensorView target{const_cast<void*>(fresh.on_device[0].data), 5000, DType::kFloat32};
  const int allocations = RefuseEach<CudaCorruptor>(
      [] { return std::make_unique<CudaCorruptor>(); },
      [&](CudaCorruptor& corruptor) { corruptor.Corrupt(target, flip, nullptr); },
      [&](CudaCorruptor& corruptor) {
        CudaDigests digests(1);
        ExpectDigests(digests, fresh);
        TestTensor expected(DType::kFloat32, 5000);
        expected.FillNormal(5000);
        const CorruptionReport of_cpu = Corrupt(expected.view(), flip);
        const CorruptionReport report = corruptor.Corrupt(target, flip, nullptr);
        EXPECT_EQ(report.changed, of_cpu.changed);
        EXPECT_EQ(report.shown[0].after_bits, of_cpu.shown[0].after_bits);
        corruptor.Corrupt(target, flip, nullptr);  // flips them back
      });
  EXPECT_EQ(allocations, 2);
}

TEST_F(CudaFailuresTest, TheTwoKindsOfMemoryAreToldApart) {
  cuda::RefuseAllocation(1);
  EXPECT_THROW(cuda::AllocatePinned(8), OutOfPinnedMemory);
  cuda::RefuseAllocation(2);
  Buffer pinned(Buffer::Kind::kPinned);
  pinned.Reserve(8);
  EXPECT_FALSE(cuda::HasRefused());
  try {
    cuda::AllocateDevice(24);
    ADD_FAILURE() << "it was not refused";
  } catch (const OutOfDeviceMemory& error) {
    EXPECT_EQ(error.bytes(), 24u);
  }
}

__global__ void BarrierInABranch(int*) {
  if (cuda::threadIdx.x < 10) cuda::__syncthreads();
}

TEST_F(CudaFailuresTest, ALostDeviceIsToldByEveryCallAndStopsNoDestructor) {
  constexpr char kWhy[] = "cudaErrorLaunchFailure: thread 0 waits at the barrier";
  const std::size_t before = cuda::LiveBuffers();
  {
    CudaTensorStats statistics(3);
    CudaDigests digests(2);
    CudaCorruptor corruptor;
    ASSERT_TRUE(statistics.Launch(few_.on_device, 1, nullptr));
    cuda::Launch(BarrierInABranch, 1, 64, nullptr, static_cast<int*>(nullptr));
    ASSERT_TRUE(statistics.Launch(few_.on_device, 2, nullptr)) << "nothing has run yet";
    ASSERT_TRUE(digests.Launch(few_.on_device, 1, nullptr));
    EXPECT_EQ(statistics.Wait()->tag, 1) << "this was done before the device was lost";
    EXPECT_THAT(ErrorOf([&] { statistics.Wait(); }), HasSubstr(kWhy));
    EXPECT_THAT(ErrorOf([&] { statistics.Wait(); }), HasSubstr(kWhy)) << "again";
    EXPECT_THAT(ErrorOf([&] { statistics.Poll(); }), HasSubstr(kWhy));
    EXPECT_THAT(ErrorOf([&] { statistics.Launch(few_.on_device, 3, nullptr); }), HasSubstr(kWhy));
    EXPECT_THAT(ErrorOf([&] { digests.Poll(); }), HasSubstr(kWhy));
    EXPECT_THAT(ErrorOf([&] { digests.Launch(few_.on_device, 3, nullptr); }), HasSubstr(kWhy));
    const MutableTensorView target{const_cast<void*>(few_.on_device[1].data), 5000,
                                   DType::kFloat32};
    EXPECT_THAT(ErrorOf([&] { corruptor.Corrupt(target, {}, nullptr); }), HasSubstr(kWhy));
    EXPECT_EQ(statistics.in_flight(), 1);
  }
  EXPECT_EQ(cuda::LiveBuffers(), before);
  EXPECT_THAT(cuda::ErrorLeftBehind(), HasSubstr("thread 0 waits")) << "for other code to see";
}

// Polling alone comes to the error, too: a loop that never waits must not go on for ever.
TEST_F(CudaFailuresTest, PollingComesToTheErrorOfALostDevice) {
  CudaTensorStats statistics(1);
  cuda::Launch(BarrierInABranch, 1, 64, nullptr, static_cast<int*>(nullptr));
  ASSERT_TRUE(statistics.Launch(few_.on_device, 1, nullptr));
  EXPECT_FALSE(statistics.Launch(few_.on_device, 2, nullptr));
  EXPECT_THAT(ErrorOf([&] {
                for (int i = 0; i < 10; ++i) statistics.Poll();
              }),
              HasSubstr("cudaErrorLaunchFailure"));
}

}  // namespace
}  // namespace trainwreck::kernels
