// Version 2: blocks of elements instead of version 1's one after another, so that the arithmetic of
// several overlaps, in the vectors that every processor of this kind has.
#define CORRUPT_TARGET
#include "kernels/corrupt_blocks.h"

namespace trainwreck::kernels {
CorruptFunction PortableCorrupt() { return ChangeTensor; }
}  // namespace trainwreck::kernels
