// The ways to run the kernels, so that each test body runs over all of them.
#pragma once

#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "kernels/corrupt.h"
#include "kernels/tensor.h"
#include "kernels/tensor_stats.h"

namespace trainwreck::kernels {

struct Backend {
  std::string name;
  // The reason why this machine cannot run it; empty: it can. A test that gets a reason skips.
  std::function<std::string()> why_unusable;
  bool any_alignment = true;  // else a multiple of the element's size
  // The kernels, over tensors in host memory.
  std::function<std::vector<TensorStats>(std::span<const TensorView>)> stats;
  std::function<std::vector<std::uint64_t>(std::span<const TensorView>)> digests;
  std::function<CorruptionReport(const MutableTensorView&, const Corruption&)> corrupt;
};

// One for each instruction set, and `cuda` where the test is linked with it.
std::vector<Backend> Backends();

// Defined by cuda_backend.cc or no_cuda_backend.cc.
std::vector<Backend> CudaBackends();

inline void PrintTo(const Backend& backend, std::ostream* out) { *out << backend.name; }

// For INSTANTIATE_TEST_SUITE_P.
template <typename Info>
std::string BackendName(const Info& info) {
  return info.param.name;
}

}  // namespace trainwreck::kernels

// First line of a test with a Backend as its parameter.
#define SKIP_IF_UNUSABLE(backend)                                        \
  if (const std::string why = (backend).why_unusable(); !why.empty()) {  \
    GTEST_SKIP() << "NOT VERIFIED on " << (backend).name << ": " << why; \
  }                                                                      \
  static_assert(true)
