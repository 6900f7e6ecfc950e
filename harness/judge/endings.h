// The ends of runs: the class of an end that nobody claimed, and which claims are about how a run
// ended.
#pragma once

#include <string>

#include "harness/formula/formula.h"
#include "harness/judge/arm_judge.h"
#include "harness/judge/verdict.h"

namespace trainwreck {

// The verdict class of a run that ended so; none where the end is as planned. A run that
// "completed" with fewer steps than planned is `incomplete`.
FailureClass ClassOfEnd(const RunResult& run, const TargetDescription& target);
// One sentence for people: "failed, rank 1 exited with code 3", "completed after 10 of 30 steps".
std::string SentenceOfEnd(const RunResult& run);

// Whether the truth of `formula` depends on the events of this run's end: without them it has
// another truth. This is not so for a formula that holds because an event is absent, for one about
// the end of an earlier attempt, or for one that also holds for another reason.
bool RestsOnEnd(const formula::Formula& formula, const formula::Runs& runs, RunEnd end,
                const TargetDescription& target);

// Whether the claim is about this end: its formula rests on it, or one of a symptom's alternatives
// (`or`) that holds does. A symptom that holds if the run crashes, and if its loss is NaN, also
// holds if it crashes because its loss is NaN.
bool IsAboutEnd(const Claim& claim, const formula::Runs& runs, RunEnd end,
                const TargetDescription& target);

}  // namespace trainwreck
