// One step's statistics of all gradients of a gpt, as people take them with LibTorch and as the
// kernels do, in one run: bazel run -c opt //kernels:torch_benchmark [-- --device=cuda]
//
// Only ours and six_ops give all of count, non-finite, zeros, largest, sum and sum of squares;
// norm_item and foreach_norm give norms alone. One thread. On a GPU, .item() waits for the device
// and ours does not.
#include <ATen/Parallel.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/max.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/norm.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/std.h>
#include <ATen/ops/sum.h>
#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/cuda_calls.h"
#include "kernels/kernel_testing.h"
#include "kernels/tensor_stats.h"
#include "kernels/tensor_stats_cuda.h"

namespace trainwreck::kernels {
namespace {

at::Device device(at::kCPU);

struct Gradients {
  explicit Gradients(const std::vector<std::int64_t>& sizes) {
    for (std::int64_t size : sizes) {
      tensors.push_back(at::randn({size}).to(device));
      views.push_back({tensors.back().const_data_ptr(), size, DType::kFloat32});
    }
  }
  std::vector<at::Tensor> tensors;
  std::vector<TensorView> views;
};

void Ours(benchmark::State& state, const std::vector<std::int64_t>& sizes) {
  const Gradients gradients(sizes);
  if (device.is_cpu()) {
    std::vector<TensorStats> stats(sizes.size());
    for (auto _ : state) ComputeTensorStats(gradients.views, stats);
    benchmark::DoNotOptimize(stats.data());
    return;
  }
  cuda::WaitForStream(nullptr);
  CudaTensorStats statistics(8);
  for (auto _ : state) {
    while (!statistics.Launch(gradients.views, 0, nullptr)) statistics.Poll();
  }
  while (statistics.Wait()) continue;
}

void NormItem(benchmark::State& state, const std::vector<std::int64_t>& sizes) {
  const Gradients gradients(sizes);
  for (auto _ : state) {
    for (const at::Tensor& x : gradients.tensors) benchmark::DoNotOptimize(x.norm().item<double>());
  }
}

void SixOps(benchmark::State& state, const std::vector<std::int64_t>& sizes) {
  const Gradients gradients(sizes);
  for (auto _ : state) {
    for (const at::Tensor& x : gradients.tensors) {
      const double results[] = {
          x.mean().item<double>(),
          x.std().item<double>(),
          x.abs().max().item<double>(),
          x.norm().item<double>(),
          static_cast<double>(x.eq(0).sum().item<std::int64_t>()),
          static_cast<double>(x.isfinite().logical_not().sum().item<std::int64_t>())};
      benchmark::DoNotOptimize(results[0]);
    }
  }
}

void ForeachNorm(benchmark::State& state, const std::vector<std::int64_t>& sizes) {
  const Gradients gradients(sizes);
  for (auto _ : state) {
    const std::vector<at::Tensor> norms = at::_foreach_norm(gradients.tensors, 2);
    benchmark::DoNotOptimize(at::stack(norms).to(at::kCPU).const_data_ptr());
  }
}

void RegisterAll() {
  using Body = void (*)(benchmark::State&, const std::vector<std::int64_t>&);
  const std::pair<const char*, Body> bodies[] = {
      {"ours", Ours}, {"foreach_norm", ForeachNorm}, {"norm_item", NormItem}, {"six_ops", SixOps}};
  const std::pair<const char*, std::vector<std::int64_t>> lists[] = {
      {"/gpt_0.1M", GptSizes(2, 64, 64, 64)}, {"/gpt_0.8M", GptSizes(4, 128, 64, 64)}};
  for (const auto& [list, sizes] : lists) {
    for (const auto& [name, body] : bodies) {
      auto* registered =
          benchmark::RegisterBenchmark((std::string(name) + list).c_str(), body, sizes)
              ->Unit(benchmark::kMicrosecond);
      if (!device.is_cpu()) registered->UseRealTime();
    }
  }
}

// Loads LibTorch's CUDA half, which a CPU machine does not have.
bool UseCuda() {
  if (const std::string why = cuda::WhyUnusable(); !why.empty()) {
    std::printf("SKIPPED: %s\n", why.c_str());
    return false;
  }
  if (dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    std::printf("SKIPPED: %s\n", dlerror());
    return false;
  }
  device = at::Device(at::kCUDA, 0);
  std::printf("# device: %s\n", cuda::DeviceName().c_str());
  return true;
}

}  // namespace
}  // namespace trainwreck::kernels

int main(int argc, char** argv) {
  at::set_num_threads(1);
  if (argc > 1 && std::strcmp(argv[1], "--device=cuda") == 0) {
    if (!trainwreck::kernels::UseCuda()) return 0;
    argv[1] = argv[0];
    ++argv;
    --argc;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  trainwreck::kernels::RegisterAll();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
