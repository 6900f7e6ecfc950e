// What the user can do next where a comparison leaves a question open.
#pragma once

#include <string>

#include "harness/history/comparison.h"
#include "harness/history/history.h"

namespace trainwreck {

// Where both code and environment differ, names a run that differs from B in one of them: a run of
// `history`, or how to make one. Else names the missing seeds. Empty where nothing is open. `b` is
// the user's word for B. `history` may be null; a damaged one is as good as none.
std::string HintFor(const Comparison& comparison, const std::string& b, RunHistory* history);

}  // namespace trainwreck
