// The built-in check for targets that may not report their own failures: a program may exit with 0
// after training on NaN, or log 0 in its place.
#pragma once

#include "harness/formula/formula.h"
#include "harness/protocol/description.h"
#include "harness/protocol/run_trace.h"

namespace trainwreck {

// True: every signal of the target was read, is finite, and is positive if it has a log scale.
// False: a signal is not. Unknown: a signal could not be read at all. `seen` names the signals.
formula::Reading ReadSignalHealth(const RunTrace& trace, const TargetDescription& target);

}  // namespace trainwreck
