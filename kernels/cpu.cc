#include "kernels/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace trainwreck::kernels {
namespace {

constexpr InstructionSet kAll[] = {InstructionSet::kPortable, InstructionSet::kAvx2,
                                   InstructionSet::kAvx512};

#if defined(__x86_64__)
// Not every compiler's __builtin_cpu_supports knows this one.
bool HasF16c() {
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

bool Has(InstructionSet set) {
  if (set == InstructionSet::kPortable) return true;
#if defined(__x86_64__)
  if (set == InstructionSet::kAvx2) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && HasF16c();
  }
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

InstructionSet Choose() {
  const char* wanted = std::getenv("TRAINWRECK_CPU");
  const std::vector<InstructionSet> available = AvailableInstructionSets();
  if (wanted == nullptr || *wanted == 0) return available.back();
  for (InstructionSet set : available) {
    if (Name(set) == wanted) return set;
  }
  throw std::runtime_error("TRAINWRECK_CPU=" + std::string(wanted) +
                           ": not portable, avx2 or avx512, or this processor lacks it");
}

}  // namespace

std::string_view Name(InstructionSet set) {
  switch (set) {
    case InstructionSet::kPortable:
      return "portable";
    case InstructionSet::kAvx2:
      return "avx2";
    case InstructionSet::kAvx512:
      return "avx512";
  }
  return "";
}

std::vector<InstructionSet> AvailableInstructionSets() {
  std::vector<InstructionSet> sets;
  std::copy_if(std::begin(kAll), std::end(kAll), std::back_inserter(sets), Has);
  return sets;
}

InstructionSet ChosenInstructionSet() {
  static const InstructionSet chosen = Choose();
  return chosen;
}

}  // namespace trainwreck::kernels
