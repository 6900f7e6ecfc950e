#include "trainer/devices/nvtx_ranges.h"

#include <nvtx3/nvToolsExt.h>

#include <utility>

namespace trainwreck {

NvtxRanges::~NvtxRanges() {
  if (has_range_) nvtxRangePop();
}

void NvtxRanges::Begin(const char* name) {
  if (std::exchange(has_range_, true)) nvtxRangePop();
  nvtxRangePushA(name);
}

}  // namespace trainwreck
