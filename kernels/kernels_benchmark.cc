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
#include <utility>
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

// Each kind over a region of the whole 44 MB, and over a thousandth of its elements, scattered;
// items are the elements. The bytes are those read; as many are written.
void OverChosen(benchmark::State& state, Corruption corruption,
                const std::function<void(const MutableTensorView&, const Corruption&)>& corrupt) {
  TestTensor tensor(DType::kFloat32, kLargeBytes / 4);
  tensor.FillNormal(1);
  const MutableTensorView view = tensor.view();
  const bool is_region = corruption.where == Corruption::Where::kRegion;
  corruption.elements = is_region ? tensor.count() : tensor.count() / 1000;
  const double read = ReadBandwidth(view.data, kLargeBytes);
  double best_s = 1e9;
  for (auto _ : state) {
    const double start = ThreadSeconds();
    corrupt(view, corruption);
    best_s = std::min(best_s, ThreadSeconds() - start);
  }
  const double elements = static_cast<double>(corruption.elements);
  state.counters["M/s"] = elements / best_s * 1e-6;
  state.counters["GB/s"] = 4 * elements / best_s * 1e-9;
  state.counters["of_read"] = 4 * elements / best_s * 1e-9 / read;
}

template <typename Function>
void RegisterCorrupt(const std::string& version, const Function& corrupt) {
  using Kind = Corruption::Kind;
  using Where = Corruption::Where;
  for (const auto& [kind_name, kind] : {std::pair("flip", Kind::kFlipBit),
                                        {"set", Kind::kSetValue},
                                        {"scale", Kind::kScale},
                                        {"noise", Kind::kAddNoise},
                                        {"zero", Kind::kZero}}) {
    for (const auto& [where_name, where] :
         {std::pair("region", Where::kRegion), {"scattered", Where::kScattered}}) {
      const Corruption corruption{
          .kind = kind, .where = where, .bit = 3, .value = 1.0000001, .seed = 7};
      benchmark::RegisterBenchmark(
          ("corrupt/" + version + "/" + kind_name + "/" + where_name).c_str(),
          [corruption, corrupt](benchmark::State& state) {
            OverChosen(state, corruption, corrupt);
          })
          ->Unit(benchmark::kMicrosecond);
    }
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
  RegisterCorrupt("v1_naive", NaiveCorrupt);
  version = 2;
  for (InstructionSet set : AvailableInstructionSets()) {
    RegisterCorrupt("v" + std::to_string(version++) + "_" + std::string(Name(set)),
                    [set](const MutableTensorView& view, const Corruption& corruption) {
                      benchmark::DoNotOptimize(Corrupt(view, corruption, set));
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
