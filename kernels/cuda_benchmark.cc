// The kernels on a GPU against its own copy bandwidth, measured in the same run, and what one step
// of telemetry costs the host: bazel run -c opt //kernels:kernels_cuda_benchmark, or copy the
// binary to the machine.
//
// Columns: GB/s counts the bytes read once, and the written ones where it writes; of_copy is their
// share of what a copy within the device's memory moves (bytes read plus bytes written). Several
// buffers take turns, so that no cache holds them.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/corrupt_cuda.h"
#include "kernels/cuda_calls.h"
#include "kernels/cuda_ring.h"
#include "kernels/digest_cuda.h"
#include "kernels/kernel_testing.h"
#include "kernels/tensor_stats_cuda.h"

namespace trainwreck::kernels {
namespace {

using cuda::Buffer;

constexpr std::int64_t kRotatedBytes = std::int64_t{512} << 20;  // several times any cache

// Buffers of `bytes` with numbers in them, at least kRotatedBytes in all.
class Rotation {
 public:
  explicit Rotation(std::int64_t bytes) {
    TestTensor pattern(DType::kFloat32, 1 << 18);
    pattern.FillNormal(1);
    const std::size_t pattern_bytes = static_cast<std::size_t>(pattern.count()) * sizeof(float);
    Buffer host(Buffer::Kind::kPinned);
    std::memcpy(host.Reserve(pattern_bytes), pattern.view().data, pattern_bytes);
    for (std::int64_t total = 0; total < kRotatedBytes || buffers_.size() < 2; total += bytes) {
      buffers_.push_back(std::make_unique<Buffer>(Buffer::Kind::kDevice));
      char* data = static_cast<char*>(buffers_.back()->Reserve(static_cast<std::size_t>(bytes)));
      for (std::int64_t at = 0; at < bytes; at += static_cast<std::int64_t>(pattern_bytes)) {
        const std::size_t left = static_cast<std::size_t>(bytes - at);
        cuda::CopyAsync(data + at, host.as<void>(), std::min(left, pattern_bytes), nullptr);
      }
    }
    cuda::WaitForStream(nullptr);
  }

  void* Next() { return buffers_[next_++ % buffers_.size()]->as<void>(); }

 private:
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::size_t next_ = 0;
};

double CopyBandwidth() {
  constexpr std::int64_t kBytes = kRotatedBytes;
  constexpr int kCopies = 20;
  Rotation buffers(kBytes);
  void* to = buffers.Next();
  void* from = buffers.Next();
  double best = 0;
  for (int pass = 0; pass < 3; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCopies; ++i) cuda::CopyAsync(to, from, kBytes, nullptr);
    cuda::WaitForStream(nullptr);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::max(best, 2.0 * kBytes * kCopies / took.count() * 1e-9);
  }
  return best;
}

template <typename Kernel>
void OverOne(benchmark::State& state, std::int64_t bytes, DType dtype, double copy_bandwidth) {
  Rotation buffers(bytes);
  Kernel kernel(8);
  for (auto _ : state) {
    const TensorView view{buffers.Next(), bytes / ItemBytes(dtype), dtype};
    while (!kernel.Launch(std::span(&view, 1), 0, nullptr)) kernel.Poll();
  }
  while (kernel.Wait()) continue;
  const double read = static_cast<double>(bytes) * static_cast<double>(state.iterations()) * 1e-9;
  state.counters["GB/s"] = benchmark::Counter(read, benchmark::Counter::kIsRate);
  state.counters["of_copy"] =
      benchmark::Counter(read / copy_bandwidth, benchmark::Counter::kIsRate);
}

// A region of all elements, each call waited for, as a fault does it. It writes what it reads, as a
// copy does: the bytes are both.
void OverRegion(benchmark::State& state, std::int64_t bytes, Corruption::Kind kind,
                double copy_bandwidth) {
  Rotation buffers(bytes);
  const Corruption corruption{
      .kind = kind, .where = Corruption::Where::kRegion, .elements = bytes, .bit = 3, .value = 1};
  CudaCorruptor corruptor;
  for (auto _ : state) {
    corruptor.Corrupt({buffers.Next(), bytes / 4, DType::kFloat32}, corruption, nullptr);
  }
  const double moved = 2e-9 * static_cast<double>(bytes) * static_cast<double>(state.iterations());
  state.counters["GB/s"] = benchmark::Counter(moved, benchmark::Counter::kIsRate);
  state.counters["of_copy"] =
      benchmark::Counter(moved / copy_bandwidth, benchmark::Counter::kIsRate);
}

// All gradients of a gpt, every step: calls and waits of a step beside its time.
void OverGpt(benchmark::State& state, const std::vector<std::int64_t>& sizes) {
  std::int64_t total = 0;
  for (std::int64_t size : sizes) total += size;
  Buffer device(Buffer::Kind::kDevice);
  float* data = static_cast<float*>(device.Reserve(static_cast<std::size_t>(total) * 4));
  cuda::ClearAsync(data, static_cast<std::size_t>(total) * 4, nullptr);
  std::vector<TensorView> views;
  for (std::int64_t size : sizes) {
    views.push_back({data, size, DType::kFloat32});
    data += size;
  }
  CudaTensorStats statistics(8);
  for (int i = 0; i < 8; ++i) statistics.Launch(views, 0, nullptr);  // allocates
  while (statistics.Wait()) continue;
  const cuda::CallCounts before = cuda::Counts();
  for (auto _ : state) {
    while (!statistics.Launch(views, 0, nullptr)) statistics.Poll();
  }
  const cuda::CallCounts after = cuda::Counts();
  while (statistics.Wait()) continue;
  const double steps = static_cast<double>(state.iterations());
  state.counters["tensors"] = static_cast<double>(sizes.size());
  state.counters["launches"] = static_cast<double>(after.launches - before.launches) / steps;
  state.counters["waits"] = static_cast<double>(after.synchronising - before.synchronising) / steps;
}

void RegisterAll(double copy_bandwidth) {
  for (std::int64_t mib : {1, 16, 64, 256, 1024}) {
    const std::int64_t bytes = mib << 20;
    const std::string size = "/" + std::to_string(mib) + "MiB";
    for (DType dtype : kFloatTypes) {
      benchmark::RegisterBenchmark(("tensor_stats/cuda" + size + "/" + DTypeName(dtype)).c_str(),
                                   OverOne<CudaTensorStats>, bytes, dtype, copy_bandwidth)
          ->Unit(benchmark::kMicrosecond)
          ->UseRealTime();
    }
    benchmark::RegisterBenchmark(("digest/cuda" + size).c_str(), OverOne<CudaDigests>, bytes,
                                 DType::kFloat32, copy_bandwidth)
        ->Unit(benchmark::kMicrosecond)
        ->UseRealTime();
    for (const auto& [name, kind] :
         {std::pair("flip", Corruption::Kind::kFlipBit), {"noise", Corruption::Kind::kAddNoise}}) {
      benchmark::RegisterBenchmark(("corrupt/cuda" + size + "/" + name).c_str(), OverRegion, bytes,
                                   kind, copy_bandwidth)
          ->Unit(benchmark::kMicrosecond)
          ->UseRealTime();
    }
  }
  benchmark::RegisterBenchmark("step/gpt_0.1M", OverGpt, GptSizes(2, 64, 64, 64))
      ->Unit(benchmark::kMicrosecond)
      ->UseRealTime();
  benchmark::RegisterBenchmark("step/gpt_0.8M", OverGpt, GptSizes(4, 128, 64, 64))
      ->Unit(benchmark::kMicrosecond)
      ->UseRealTime();
}

}  // namespace
}  // namespace trainwreck::kernels

int main(int argc, char** argv) {
  namespace kernels = trainwreck::kernels;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  if (const std::string why = kernels::cuda::WhyUnusable(); !why.empty()) {
    std::printf("SKIPPED: %s\n", why.c_str());
    return 0;
  }
  const double copy_bandwidth = kernels::CopyBandwidth();
  std::printf("# device: %s\n# copy within its memory: %.0f GB/s read plus written\n",
              kernels::cuda::DeviceName().c_str(), copy_bandwidth);
  std::fflush(stdout);
  kernels::RegisterAll(copy_bandwidth);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
