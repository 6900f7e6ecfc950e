// When a run may be stopped early: everything that will be asked about it is known.
#include <algorithm>

#include "harness/judge/arm_judge.h"
#include "harness/judge/verdict.h"

namespace trainwreck {
namespace {

bool Mentions(const Check& check, const std::string& arm) {
  return check.formula.arms().contains(arm);
}

// Other arms' checks may look at this one, at any of its steps.
bool IsReferredTo(const Scenario& scenario, const std::string& arm) {
  auto mentions = [&](const Check& check) { return Mentions(check, arm); };
  return std::any_of(scenario.healthy.begin(), scenario.healthy.end(), mentions) ||
         std::any_of(scenario.symptoms.begin(), scenario.symptoms.end(), mentions) ||
         (scenario.quality && mentions(*scenario.quality));
}

}  // namespace

bool IsDecided(const Case& plan, const Run& run, const RunTrace& trace,
               const std::map<std::string, const RunTrace*>& finished_arms,
               const TargetDescription& target) {
  // Control and reference are what others are compared with; a remedy must also come to its end.
  if (run.kind != ArmKind::kFault && run.kind != ArmKind::kDecoy) return false;
  if (IsReferredTo(*plan.scenario, run.arm)) return false;
  // After a restart or in a later phase a step may be run again, and its later record counts.
  if (run.policy.max_restarts > 0 || run.phases.size() > 1) return false;
  // A later record may still change an earlier step.
  if (target.HasFeature("late-signals")) return false;
  auto arm = std::find_if(plan.arms.begin(), plan.arms.end(),
                          [&](const ArmPlan& candidate) { return candidate.name == run.arm; });
  if (arm == plan.arms.end()) return false;
  const std::vector<Claim> claims = ClaimsOf(plan, *arm);
  if (claims.empty()) return false;
  for (const InjectedFault& fault : plan.scenario->faults) {
    if (!HasFired(trace, fault)) return false;
  }
  // An arm that is not finished is not there, and what depends on it is unknown.
  formula::Runs runs;
  runs.self = &trace;
  runs.arms = finished_arms;
  return std::all_of(claims.begin(), claims.end(), [&](const Claim& claim) {
    const formula::Reading reading = claim.check->formula.Evaluate(runs, target);
    if (reading.truth == formula::Truth::kUnknown) return false;
    const bool holds = (reading.truth == formula::Truth::kTrue) == claim.expected;
    return !holds || !claim.has_to_be_clear ||
           ClearanceOf(*claim.check, reading) != Clearance::kUnknown;
  });
}

}  // namespace trainwreck
