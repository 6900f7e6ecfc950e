// The signals of memory, by their names.
#pragma once

#include <string>

namespace trainwreck {

inline constexpr char kPeakMemory[] = "memory_peak_bytes";            // of tensors, within the step
inline constexpr char kAllocatedMemory[] = "memory_allocated_bytes";  // by tensors, behind the step
inline constexpr char kResidentMemory[] = "memory_bytes";             // of the process

// "activations" of "memory_activations_bytes", a part of the peak; empty: it is of no owner.
std::string MemoryOwnerIn(const std::string& signal);

}  // namespace trainwreck
