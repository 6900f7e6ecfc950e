#include "trainer/memory_owner.h"

#include <utility>

namespace trainwreck {
namespace {

thread_local MemoryOwner current = MemoryOwner::kOther;

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

MemoryScope::MemoryScope(MemoryOwner owner) : before_(std::exchange(current, owner)) {}
MemoryScope::~MemoryScope() { current = before_; }

}  // namespace trainwreck
