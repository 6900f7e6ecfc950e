#include "kernels/backends.h"

#include <algorithm>

#include "kernels/digest.h"
#include "kernels/versions.h"

namespace trainwreck::kernels {
namespace {

Backend CpuBackend(InstructionSet set) {
  Backend backend;
  backend.name = std::string(Name(set));
  backend.why_unusable = [set]() -> std::string {
    const std::vector<InstructionSet> available = AvailableInstructionSets();
    if (std::find(available.begin(), available.end(), set) != available.end()) return "";
    return "this processor lacks " + std::string(Name(set));
  };
  backend.stats = [set](std::span<const TensorView> tensors) {
    std::vector<TensorStats> stats;
    for (const TensorView& tensor : tensors) stats.push_back(ComputeTensorStats(tensor, set));
    return stats;
  };
  backend.digests = [set](std::span<const TensorView> tensors) {
    std::vector<std::uint64_t> digests;
    for (const TensorView& tensor : tensors) {
      digests.push_back(FinishDigest(DigestPart(tensor.data, tensor.bytes(), 0, set),
                                     tensor.bytes(), tensor.dtype));
    }
    return digests;
  };
  backend.corrupt = [set](const MutableTensorView& tensor, const Corruption& corruption) {
    return Corrupt(tensor, corruption, set);
  };
  return backend;
}

}  // namespace

std::vector<Backend> Backends() {
  std::vector<Backend> backends = {CpuBackend(InstructionSet::kPortable),
                                   CpuBackend(InstructionSet::kAvx2),
                                   CpuBackend(InstructionSet::kAvx512)};
  for (Backend& backend : CudaBackends()) backends.push_back(std::move(backend));
  return backends;
}

}  // namespace trainwreck::kernels
