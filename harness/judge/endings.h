// How a run may end: the class of an end that nobody claimed, and which claims are about the very
// end of a run.
#pragma once

#include <string>

#include "harness/formula/formula.h"
#include "harness/judge/verdict.h"

namespace trainwreck {

// The verdict class of a run that ended so; none where the end is as planned. A run that
// "completed" with fewer steps than planned is `incomplete`.
FailureClass ClassOfEnd(const RunResult& run, const TargetDescription& target);
// One sentence for people: "failed, rank 1 exited with code 3", "completed after 10 of 30 steps".
std::string SentenceOfEnd(const RunResult& run);

// Whether `formula` has its truth by the events of this run's end: without them it has another. A
// formula that holds because an event is absent does not rest on any end, nor does one about the
// end of an earlier attempt, or one that holds for another reason, too.
bool RestsOnEnd(const formula::Formula& formula, const formula::Runs& runs, RunEnd end,
                const TargetDescription& target);

}  // namespace trainwreck
