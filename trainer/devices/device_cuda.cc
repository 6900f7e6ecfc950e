// NVIDIA GPUs as a kind of device. Linked only into trainwreck-trainer-cuda; registers itself.
// Run on one H200, not yet on several GPUs; docs/guide/devices.md says which parts have not run.
//
// A rank gets the GPU of its number on its machine and works on that GPU's default stream. Nothing
// here is called before a fork: a child cannot use a CUDA context of its parent (see WarmUp in
// main.cc).
#include <ATen/Context.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/core/AllocatorConfig.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "kernels/corrupt_cuda.h"
#include "kernels/digest_cuda.h"
#include "kernels/tensor_stats_cuda.h"
#include "trainer/devices/communicator_nccl.h"
#include "trainer/devices/device.h"
#include "trainer/devices/device_memory.h"
#include "trainer/devices/nvml.h"
#include "trainer/devices/nvtx_ranges.h"
#include "trainer/devices/rng.h"
#include "trainer/tensor_views.h"

namespace trainwreck {
namespace {

constexpr std::chrono::seconds kHealthInterval(
    1);  // sensors change slowly, and a read takes a while
// The driver learns of an error of the GPU about when the program does.
constexpr std::chrono::milliseconds kErrorPatience(100);
constexpr char kRngEntry[] = "rng.cuda";

// "00000000:3B:00.0", as NVML writes it: CUDA gives the domain 4 digits, NVML's newer name has 8.
std::string PciBusId(int index) {
  char id[32] = "";
  if (cudaDeviceGetPCIBusId(id, sizeof id, index) != cudaSuccess) return "";
  const std::string text(id);
  const std::size_t domain_digits = text.find(':');
  return domain_digits < 8 ? std::string(8 - domain_digits, '0') + text : text;
}

cudaDeviceProp PropertiesOf(int index) {
  cudaDeviceProp properties{};
  C10_CUDA_CHECK(cudaGetDeviceProperties(&properties, index));
  return properties;
}

DeviceMemoryNumbers NumbersOf(c10::DeviceIndex index) {
  const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(index);
  std::size_t free = 0, all = 0;
  C10_CUDA_CHECK(cudaMemGetInfo(&free, &all));
  return {stats.allocated_bytes[0].current, stats.reserved_bytes[0].current,
          static_cast<std::int64_t>(free), static_cast<std::int64_t>(all)};
}

DeviceCache CacheOfLibTorch() {
  return {[] { c10::cuda::CUDACachingAllocator::emptyCache(); },
          [] { return NumbersOf(c10::cuda::current_device()); }};
}

// LibTorch's own allocations that fail, for the report. `limit` is the device's memory or the share
// that LimitMemory allows.
void WatchRefusals() {
  static bool is_watched = false;
  if (std::exchange(is_watched, true)) return;
  c10::cuda::CUDACachingAllocator::attachOutOfMemoryObserver(
      [](std::int64_t device, std::size_t requested, std::size_t limit, std::size_t free) {
        DeviceMemoryNumbers numbers = NumbersOf(static_cast<c10::DeviceIndex>(device));
        numbers.free_bytes = static_cast<std::int64_t>(free);
        numbers.limit_bytes = static_cast<std::int64_t>(limit);
        RecordDeviceRefusal({static_cast<std::int64_t>(requested), numbers});
      });
}

class CudaGraph : public RecordedWork {
 public:
  // Numbers that are drawn on the device advance its generator in each replay.
  explicit CudaGraph(const std::function<void()>& queue) {
    const c10::cuda::CUDAStream before = c10::cuda::getCurrentCUDAStream();
    const c10::cuda::CUDAStream stream = c10::cuda::getStreamFromPool();  // the default one cannot
    stream.synchronize();
    before.synchronize();
    c10::cuda::CUDAStreamGuard guard(stream);
    // Other threads of the process, as NCCL's, may call the driver meanwhile.
    graph_.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    try {
      queue();
      graph_.capture_end();
    } catch (const std::exception& error) {
      throw std::runtime_error(std::string("cuda_graphs: something within the passes cannot be "
                                           "recorded, as what waits for the GPU cannot: ") +
                               error.what());
    }
  }
  void Replay() override { graph_.replay(); }

 private:
  at::cuda::CUDAGraph graph_;
};

// A batch on its way to the device.
struct Arriving {
  Batch from;
  std::vector<std::uint32_t> versions;  // of its tensors when the copy was started
  Batch to;
  at::cuda::CUDAEvent arrived;
};

std::vector<at::Tensor> TensorsOf(const Batch& batch) {
  std::vector<at::Tensor> tensors;
  for (const auto field : kBatchTensors) tensors.push_back(batch.*field);
  return tensors;
}

std::vector<std::uint32_t> VersionsOf(const Batch& batch) {
  std::vector<std::uint32_t> versions;
  for (const at::Tensor& tensor : TensorsOf(batch)) {
    versions.push_back(tensor.defined() ? static_cast<std::uint32_t>(tensor._version()) : 0);
  }
  return versions;
}

// Whether it is still the batch that is being copied: the same tensors, not written to since.
bool IsOf(const Batch& batch, const Arriving& arriving) {
  const std::vector<at::Tensor> now = TensorsOf(batch), then = TensorsOf(arriving.from);
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (!now[i].is_same(then[i])) return false;
  }
  return VersionsOf(batch) == arriving.versions;
}

class CudaDevice : public Device {
 public:
  explicit CudaDevice(const DevicePlace& place)
      : index_(static_cast<c10::DeviceIndex>(place.rank)) {
    if (place.deterministic) {
      // cuBLAS may else pick its work space, and with it the order of sums, by what runs beside it.
      setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
      at::globalContext().setDeterministicCuDNN(true);
    }
    if (place.expandable_segments) {  // before the first allocation
      c10::CachingAllocator::setAllocatorSettings(kExpandableSegments);
    }
    at::globalContext().setBenchmarkCuDNN(false);
    at::globalContext().lazyInitDevice(at::kCUDA);
    c10::cuda::set_device(index_);
    WatchRefusals();
    nvml_ = Nvml::Load();
    bus_id_ = PciBusId(index_);
    tells_of_xids_ = nvml_ != nullptr && !bus_id_.empty() && nvml_->Watch(bus_id_);
  }

  at::Device torch_device() const override { return at::Device(at::kCUDA, index_); }
  std::string name() const override { return PropertiesOf(index_).name; }

  std::unique_ptr<Communicator> MakeCommunicator(const GroupOptions& options) override {
    return MakeNcclCommunicator(options, torch_device());
  }

  Batch Move(const Batch& batch) const override {
    while (!arriving_.empty()) {
      const std::unique_ptr<Arriving> first = std::move(arriving_.front());
      arriving_.pop_front();
      if (!IsOf(batch, *first)) continue;
      const c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream();
      first->arrived.block(stream);
      for (const at::Tensor& tensor : TensorsOf(first->to)) {
        if (tensor.defined()) tensor.record_stream(stream);
      }
      return first->to;
    }
    return Copied(batch);
  }

  void CopyAhead(const Batch& batch) override {
    if (batch.inputs.is_cuda()) return;
    if (!copy_stream_) copy_stream_ = c10::cuda::getStreamFromPool();
    auto arriving =
        std::make_unique<Arriving>(Arriving{.from = batch, .versions = VersionsOf(batch)});
    c10::cuda::CUDAStreamGuard guard(*copy_stream_);
    arriving->to = Copied(batch);
    arriving->arrived.record(*copy_stream_);
    arriving_.push_back(std::move(arriving));
  }

  std::unique_ptr<RecordedWork> Record(const std::function<void()>& queue) override {
    return std::make_unique<CudaGraph>(queue);
  }

  void SaveRng(StateDict& state) const override {
    SaveTorchRng(state);
    at::Generator generator = at::cuda::detail::getDefaultCUDAGenerator(index_);
    std::lock_guard<std::mutex> lock(generator.mutex());
    state[kRngEntry] = generator.get_state();
  }

  void LoadRng(const StateDict& state) override {
    LoadTorchRng(state);
    const auto entry = state.find(kRngEntry);
    if (entry == state.end()) return;
    at::Generator generator = at::cuda::detail::getDefaultCUDAGenerator(index_);
    std::lock_guard<std::mutex> lock(generator.mutex());
    try {
      generator.set_state(entry->second);
    } catch (const std::exception& error) {
      throw std::runtime_error(std::string("no state of a CUDA generator: ") + error.what());
    }
  }

  std::optional<MemoryUse> Memory() const override {
    const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(index_);
    const auto& bytes = stats.allocated_bytes[0];  // of all pools
    return MemoryUse{.allocated_bytes = bytes.current,
                     .peak_bytes = bytes.peak,
                     .reserved_bytes = stats.reserved_bytes[0].current};
  }

  void LimitMemory(std::int64_t bytes) override {
    const auto all = static_cast<double>(PropertiesOf(index_).totalGlobalMem);
    c10::cuda::CUDACachingAllocator::setMemoryFraction(
        bytes > 0 ? std::min(1.0, static_cast<double>(bytes) / all) : 1.0, index_);
  }

  void ResetMemoryPeak() override { c10::cuda::CUDACachingAllocator::resetPeakStats(index_); }

  std::optional<DeviceHealth> Health() override {
    if (nvml_ == nullptr || bus_id_.empty()) return std::nullopt;
    const auto now = std::chrono::steady_clock::now();
    if (health_read_ && now - *health_read_ < kHealthInterval) return std::nullopt;
    health_read_ = now;
    return nvml_->Read(bus_id_);
  }

  std::optional<DeviceHealth> HealthAfterError() override {
    if (nvml_ == nullptr || bus_id_.empty()) return std::nullopt;
    return nvml_->Read(bus_id_, kErrorPatience);
  }

  bool TellsOfXids() const override { return tells_of_xids_; }

  void BeginRange(const char* name) override { ranges_.Begin(name); }

  void BeginTiming() override { Record(timing_begin_); }
  void EndTiming() override { Record(timing_end_); }
  std::optional<double> TimedSeconds() override {
    float milliseconds = 0;
    C10_CUDA_CHECK(cudaEventSynchronize(timing_end_));
    C10_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, timing_begin_, timing_end_));
    return milliseconds * 1e-3;
  }

 private:
  // Events of the process's life: it may end after the driver.
  static void Record(cudaEvent_t& event) {
    if (event == nullptr) C10_CUDA_CHECK(cudaEventCreate(&event));
    C10_CUDA_CHECK(cudaEventRecord(event, c10::cuda::getCurrentCUDAStream().stream()));
  }

  Batch Copied(const Batch& batch) const {
    Batch copied{.ids = batch.ids};
    for (const auto field : kBatchTensors) copied.*field = Copied(batch.*field);
    return copied;
  }

  // The host's allocator keeps pinned memory until the copies from it are done.
  at::Tensor Copied(const at::Tensor& tensor) const {
    if (!tensor.defined() || tensor.is_cuda()) return tensor;
    return tensor.pin_memory().to(torch_device(), /*non_blocking=*/true);
  }

  c10::DeviceIndex index_;
  std::optional<c10::cuda::CUDAStream> copy_stream_;
  mutable std::deque<std::unique_ptr<Arriving>> arriving_;  // in the order of training
  std::unique_ptr<Nvml> nvml_;
  std::string bus_id_;
  bool tells_of_xids_ = false;
  NvtxRanges ranges_;
  cudaEvent_t timing_begin_ = nullptr, timing_end_ = nullptr;
  std::optional<std::chrono::steady_clock::time_point> health_read_;
};

std::vector<DeviceInfo> ListGpus() {
  std::vector<DeviceInfo> gpus;
  for (int i = 0; i < c10::cuda::device_count(); ++i) {
    const cudaDeviceProp properties = PropertiesOf(i);
    gpus.push_back({ToString(DeviceChoice::kCuda), properties.name,
                    static_cast<std::int64_t>(properties.totalGlobalMem)});
  }
  return gpus;
}

// A launch and a wait for its result. `Kernel`s own memory of the device and of one thread; they
// are never freed, since a thread may end after the driver.
template <typename Kernel>
auto RunKernel(std::span<const kernels::TensorView> tensors) {
  static thread_local auto* kernel = new Kernel(/*slots=*/1);
  const auto launch = [&] {
    return kernel->Launch(tensors, /*tag=*/0, c10::cuda::getCurrentCUDAStream().stream());
  };
  const bool launched = CallWithDeviceMemory(CacheOfLibTorch(), launch);
  if (!launched) throw std::runtime_error("an earlier launch of this kernel has failed");
  return *kernel->Wait();
}

const RegisterDeviceKernels kernels_of_gpus(
    at::kCUDA,
    {.stats = [](auto tensors) { return RunKernel<kernels::CudaTensorStats>(tensors).stats; },
     .digests = [](auto tensors) { return RunKernel<kernels::CudaDigests>(tensors).digests; },
     .corrupt =
         [](const auto& tensor, const auto& corruption) {
           static thread_local auto* corruptor = new kernels::CudaCorruptor;  // as in RunKernel
           return CallWithDeviceMemory(CacheOfLibTorch(), [&] {
             return corruptor->Corrupt(tensor, corruption,
                                       c10::cuda::getCurrentCUDAStream().stream());
           });
         }});

const RegisterDeviceKind registration({
    .choice = DeviceChoice::kCuda,
    .backend = "nccl",
    .list = ListGpus,
    .open = [](const DevicePlace& place) { return std::make_unique<CudaDevice>(place); },
});

}  // namespace
}  // namespace trainwreck
