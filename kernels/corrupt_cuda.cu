// Version 1: a thread for each chosen element, with the arithmetic of the CPU.
#include <algorithm>

#include "kernels/corrupt_cuda.h"
#include "kernels/corrupt_plan.h"
#include "kernels/cuda_device.h"
#include "kernels/cuda_ring.h"

namespace trainwreck::kernels {
namespace cuda {
namespace {

constexpr unsigned kThreads = 256;

struct Shown {
  std::int64_t index;
  std::uint64_t before, after;
};

struct Evidence {
  unsigned long long changed;
  Shown shown[CorruptionReport::kShown];
};

// One element a thread: all chosen elements differ.
__global__ void __launch_bounds__(kThreads)
    CorruptElements(char* data, DType dtype, Selection selection, Change change,
                    Evidence* evidence) {
  const std::int64_t j = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (j >= selection.elements) return;
  const std::int64_t index = selection.Index(j);
  const bool wide = dtype == DType::kFloat32;
  std::uint32_t* wide_at = reinterpret_cast<std::uint32_t*>(data) + index;
  std::uint16_t* narrow_at = reinterpret_cast<std::uint16_t*>(data) + index;
  const std::uint64_t before = wide ? *wide_at : *narrow_at;
  const std::uint64_t after = CorruptBits(before, index, dtype, change);
  if (wide) {
    *wide_at = static_cast<std::uint32_t>(after);
  } else {
    *narrow_at = static_cast<std::uint16_t>(after);
  }
  if (before != after) atomicAdd(&evidence->changed, 1ull);
  if (j < CorruptionReport::kShown) evidence->shown[j] = {index, before, after};
}

}  // namespace
}  // namespace cuda

CorruptionReport CorruptCuda(const MutableTensorView& tensor, const Corruption& corruption,
                             void* stream) {
  using namespace cuda;
  const Selection selection = PlanCorruption(tensor, corruption);
  RequireAligned(tensor);
  CorruptionReport report;
  report.elements = selection.elements;
  if (selection.elements == 0) return report;
  Buffer device(Buffer::Kind::kDevice), host(Buffer::Kind::kPinned);
  auto* evidence = static_cast<Evidence*>(device.Reserve(sizeof(Evidence)));
  const auto* seen = static_cast<const Evidence*>(host.Reserve(sizeof(Evidence)));
  ClearAsync(evidence, sizeof(Evidence), stream);
  Launch(CorruptElements, (selection.elements + kThreads - 1) / kThreads, kThreads, stream,
         static_cast<char*>(tensor.data), tensor.dtype, selection,
         Change{corruption.kind, corruption.bit, corruption.value, corruption.seed}, evidence);
  CopyAsync(host.as<void>(), evidence, sizeof(Evidence), stream);
  WaitForStream(stream);
  report.changed = static_cast<std::int64_t>(seen->changed);
  for (std::int64_t j = 0; j < std::min(report.elements, CorruptionReport::kShown); ++j) {
    const Shown& shown = seen->shown[j];
    report.shown.push_back({shown.index, shown.before, shown.after,
                            Decode(shown.before, tensor.dtype), Decode(shown.after, tensor.dtype)});
  }
  return report;
}

}  // namespace trainwreck::kernels
