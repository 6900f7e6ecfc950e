// Version 4: eight elements at once, and 64-bit products in one instruction.
#include "kernels/corrupt_plan.h"

#if defined(__x86_64__)

#include "kernels/cpu.h"

#define CORRUPT_TARGET TRAINWRECK_AVX512
#include "kernels/corrupt_blocks.h"

namespace trainwreck::kernels {
CorruptFunction Avx512Corrupt() { return ChangeTensor; }
}  // namespace trainwreck::kernels

#else

namespace trainwreck::kernels {
CorruptFunction Avx512Corrupt() { return nullptr; }
}  // namespace trainwreck::kernels

#endif
