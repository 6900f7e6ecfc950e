// The kernels on one core, by version, against what the core can read at all (measured in the same
// run, on the same data): bazel run -c opt //kernels:kernels_benchmark
//
// Columns: GB/s counts the bytes read once; of_read is their share of a plain reading loop over the
// same data, measured right before. For 44 MB both are of the best pass, since neighbours slow the
// others.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "kernels/digest.h"
#include "kernels/kernel_testing.h"
#include "kernels/memory_bandwidth.h"
#include "kernels/versions.h"

namespace trainwreck::kernels {
namespace {

using Kernel = std::function<void(const TensorView&)>;

// One tensor of 44 MB (11 million float32): from memory.
constexpr std::int64_t kLargeBytes = 44'000'000;

void OverLarge(benchmark::State& state, DType dtype, const Kernel& kernel) {
  TestTensor tensor(dtype, kLargeBytes / ItemBytes(dtype));
  tensor.FillNormal(1);
  const TensorView view = tensor.view();
  const double read = ReadBandwidth(view.data, view.bytes());
  double best_s = 1e9;
  for (auto _ : state) {
    const double start = ThreadSeconds();
    kernel(view);
    best_s = std::min(best_s, ThreadSeconds() - start);
  }
  const double bytes = static_cast<double>(view.bytes());
  state.counters["GB/s"] = bytes / best_s * 1e-9;
  state.counters["of_read"] = bytes / best_s * 1e-9 / read;
}

// The gradients of a gpt, as a step leaves them: partly in the second-level cache.
void OverList(benchmark::State& state, const std::vector<std::int64_t>& sizes,
              const Kernel& kernel) {
  std::vector<TestTensor> tensors;
  std::vector<TensorView> views;
  double bytes = 0;
  for (std::int64_t size : sizes) {
    tensors.emplace_back(DType::kFloat32, size);
    tensors.back().FillNormal(1);
    views.push_back(tensors.back().view());
    bytes += static_cast<double>(views.back().bytes());
  }
  for (auto _ : state) {
    for (const TensorView& view : views) kernel(view);
  }
  bytes *= static_cast<double>(state.iterations());
  state.counters["GB/s"] = benchmark::Counter(bytes * 1e-9, benchmark::Counter::kIsRate);
}

void Register(const std::string& name, bool all_types, const Kernel& kernel) {
  const std::map<std::string, std::vector<std::int64_t>> lists = {
      {"gpt_0.1M", GptSizes(2, 64, 64, 64)}, {"gpt_0.8M", GptSizes(4, 128, 64, 64)}};
  for (const auto& [list, sizes] : lists) {
    benchmark::RegisterBenchmark((name + "/" + list).c_str(), [sizes = sizes,
                                                               kernel](benchmark::State& state) {
      OverList(state, sizes, kernel);
    })->Unit(benchmark::kMicrosecond);
  }
  for (DType dtype : kFloatTypes) {
    if (dtype != DType::kFloat32 && !all_types) continue;
    benchmark::RegisterBenchmark(
        (name + "/44MB/" + DTypeName(dtype)).c_str(),
        [dtype, kernel](benchmark::State& state) { OverLarge(state, dtype, kernel); })
        ->Unit(benchmark::kMicrosecond);
  }
}

void RegisterAll() {
  Register("tensor_stats/v1_naive", true,
           [](const TensorView& view) { benchmark::DoNotOptimize(NaiveStats(view)); });
  int version = 2;
  for (InstructionSet set : AvailableInstructionSets()) {
    Register(
        "tensor_stats/v" + std::to_string(version++) + "_" + std::string(Name(set)), true,
        [set](const TensorView& view) { benchmark::DoNotOptimize(ComputeTensorStats(view, set)); });
  }
  version = 1;
  for (InstructionSet set : AvailableInstructionSets()) {
    Register("digest/v" + std::to_string(version++) + "_" + std::string(Name(set)), false,
             [set](const TensorView& view) {
               benchmark::DoNotOptimize(DigestPart(view.data, view.bytes(), 0, set));
             });
  }
  version = 1;
  for (InstructionSet set : AvailableInstructionSets()) {
    // Compares the first half with the second, so the bytes are those of both.
    Register("compare/v" + std::to_string(version++) + "_" + std::string(Name(set)), false,
             [set](const TensorView& view) {
               const float* values = static_cast<const float*>(view.data);
               const std::int64_t half = view.count / 2;
               benchmark::DoNotOptimize(CompareTensors(values, values + half, half, set));
             });
  }
}

}  // namespace
}  // namespace trainwreck::kernels

int main(int argc, char** argv) {
  trainwreck::kernels::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
