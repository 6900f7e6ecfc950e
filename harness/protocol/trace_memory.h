// Estimates the memory of a trace, well enough to bound it: a line of a hostile target may cost
// twenty times its length.
#pragma once

#include <cstdint>

#include "harness/protocol/json.h"
#include "harness/protocol/run_trace.h"

namespace trainwreck {

std::int64_t MemoryBytes(const Json& value);
std::int64_t MemoryBytes(const RunTrace& trace);

}  // namespace trainwreck
