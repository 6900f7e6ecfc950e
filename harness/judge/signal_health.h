// The built-in check of targets that cannot be trusted to say how they are: a program may exit with
// 0 after training on NaN, or log 0 in the place of it.
#pragma once

#include "harness/formula/formula.h"
#include "harness/protocol/description.h"
#include "harness/protocol/run_trace.h"

namespace trainwreck {

// True: every signal that the target offers was read, is finite, and positive where its scale says
// so. False: one is not. Unknown: one could not be read at all. `seen` names the signals.
formula::Reading ReadSignalHealth(const RunTrace& trace, const TargetDescription& target);

}  // namespace trainwreck
