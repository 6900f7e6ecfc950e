#include <cstring>
#include <memory>

#include "kernels/backends.h"
#include "kernels/corrupt_cuda.h"
#include "kernels/cuda_calls.h"
#include "kernels/cuda_ring.h"
#include "kernels/digest_cuda.h"
#include "kernels/tensor_stats_cuda.h"

namespace trainwreck::kernels {
namespace {

using cuda::Buffer;

// A copy in device memory, as far from an aligned address as the original.
class OnDevice {
 public:
  explicit OnDevice(const TensorView& tensor)
      : view_{nullptr, tensor.count, tensor.dtype},
        bytes_(static_cast<std::size_t>(tensor.bytes())) {
    constexpr std::size_t kAlignment = 64;
    const std::size_t offset = reinterpret_cast<std::uintptr_t>(tensor.data) % kAlignment;
    view_.data = static_cast<char*>(device_.Reserve(bytes_ + offset + 1)) + offset;
    if (bytes_ == 0) return;
    std::memcpy(host_.Reserve(bytes_), tensor.data, bytes_);
    cuda::CopyAsync(view_.data, host_.as<void>(), bytes_, nullptr);
  }

  const MutableTensorView& view() const { return view_; }

  void CopyTo(void* data) {
    if (bytes_ == 0) return;
    cuda::CopyAsync(host_.as<void>(), view_.data, bytes_, nullptr);
    cuda::WaitForStream(nullptr);
    std::memcpy(data, host_.as<void>(), bytes_);
  }

 private:
  Buffer device_{Buffer::Kind::kDevice}, host_{Buffer::Kind::kPinned};
  MutableTensorView view_;
  std::size_t bytes_;
};

struct ListOnDevice {
  explicit ListOnDevice(std::span<const TensorView> tensors) {
    for (const TensorView& tensor : tensors) {
      copies.push_back(std::make_unique<OnDevice>(tensor));
      views.push_back(copies.back()->view());
    }
  }
  std::vector<std::unique_ptr<OnDevice>> copies;
  std::vector<TensorView> views;
};

std::vector<TensorStats> Stats(std::span<const TensorView> tensors) {
  const ListOnDevice list(tensors);
  CudaTensorStats statistics;
  statistics.Launch(list.views, 0, nullptr);
  return statistics.Wait()->stats;
}

std::vector<std::uint64_t> Digests(std::span<const TensorView> tensors) {
  const ListOnDevice list(tensors);
  CudaDigests digests;
  digests.Launch(list.views, 0, nullptr);
  return digests.Wait()->digests;
}

CorruptionReport CorruptOnDevice(const MutableTensorView& tensor, const Corruption& corruption) {
  OnDevice copy(tensor);
  CorruptionReport report = CudaCorruptor().Corrupt(copy.view(), corruption, nullptr);
  copy.CopyTo(tensor.data);
  return report;
}

// Nobody shall take the one for the other.
#ifdef TRAINWRECK_CUDA_ON_CPU
constexpr char kName[] = "cuda_on_cpu";
#else
constexpr char kName[] = "cuda";
#endif

}  // namespace

std::vector<Backend> CudaBackends() {
  return {{kName, cuda::WhyUnusable, false, Stats, Digests, CorruptOnDevice}};
}

}  // namespace trainwreck::kernels
