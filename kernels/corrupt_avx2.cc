// Version 3: four elements at once, with the shifts by differing amounts that rounding needs.
#include "kernels/corrupt_plan.h"

#if defined(__x86_64__)

#define CORRUPT_TARGET __attribute__((target("avx2,fma,f16c")))
#include "kernels/corrupt_blocks.h"

namespace trainwreck::kernels {
CorruptFunction Avx2Corrupt() { return ChangeTensor; }
}  // namespace trainwreck::kernels

#else

namespace trainwreck::kernels {
CorruptFunction Avx2Corrupt() { return nullptr; }
}  // namespace trainwreck::kernels

#endif
