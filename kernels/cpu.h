// Which instruction set the kernels use, decided once at run time.
#pragma once

#include <string_view>
#include <vector>

// Marks a function: compile it for AVX-512 with registers of full width. By default g++ would use
// half of the width; clang spells the option differently.
#if defined(__clang__)
#define TRAINWRECK_AVX512 \
  __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl"), min_vector_width(512)))
#else
#define TRAINWRECK_AVX512 \
  __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,prefer-vector-width=512")))
#endif

namespace trainwreck::kernels {

enum class InstructionSet { kPortable, kAvx2, kAvx512 };

std::string_view Name(InstructionSet set);  // "portable", "avx2", "avx512"

// The instruction sets of this processor, the widest last.
std::vector<InstructionSet> AvailableInstructionSets();

// The widest available one, or what the environment variable TRAINWRECK_CPU names. A name that is
// unknown or that this processor lacks throws std::runtime_error: a test that asks for a path must
// not get another.
InstructionSet ChosenInstructionSet();

}  // namespace trainwreck::kernels
