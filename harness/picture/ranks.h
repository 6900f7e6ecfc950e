// The last collectives of a run of several ranks, for a timeline. Private to this package.
#pragma once

#include "harness/judge/verdict.h"
#include "harness/protocol/json.h"

namespace trainwreck {

// Of the first run of the arm that did not come to its end, else of its first run; null where no
// rank wrote its calls (launch/last_calls.h).
Json CallsOf(const std::map<int, RunResult>& by_seed);

}  // namespace trainwreck
