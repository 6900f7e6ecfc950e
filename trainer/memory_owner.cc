#include "trainer/memory_owner.h"

#include <algorithm>
#include <utility>

namespace trainwreck {
namespace {

thread_local MemoryOwner current = MemoryOwner::kOther;
thread_local std::size_t forward_part = 0;

}  // namespace

const char* ToString(MemoryOwner owner) {
  switch (owner) {
    case MemoryOwner::kOther:
      return "other";
    case MemoryOwner::kParameters:
      return "parameters";
    case MemoryOwner::kGradients:
      return "gradients";
    case MemoryOwner::kOptimizer:
      return "optimizer";
    case MemoryOwner::kActivations:
      return "activations";
    case MemoryOwner::kEvaluation:
      return "evaluation";
    case MemoryOwner::kLogging:
      return "logging";
  }
  return "";
}

MemoryOwner CurrentMemoryOwner() { return current; }

std::size_t CurrentForwardPart() { return forward_part; }
void SetForwardPart(std::size_t part) { forward_part = std::min(part, kForwardParts - 1); }

MemoryScope::MemoryScope(MemoryOwner owner) : before_(std::exchange(current, owner)) {}
MemoryScope::~MemoryScope() { current = before_; }

}  // namespace trainwreck
