#include "harness/protocol/memory_signals.h"

#include <string_view>

namespace trainwreck {

std::string MemoryOwnerIn(const std::string& signal) {
  constexpr std::string_view kBefore = "memory_", kBehind = "_bytes";
  if (signal == kPeakMemory || signal == kAllocatedMemory || signal == kResidentMemory) return "";
  if (!signal.starts_with(kBefore) || !signal.ends_with(kBehind)) return "";
  return signal.substr(kBefore.size(), signal.size() - kBefore.size() - kBehind.size());
}

}  // namespace trainwreck
