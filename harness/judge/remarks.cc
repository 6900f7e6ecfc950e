#include "harness/judge/remarks.h"

#include <algorithm>

#include "harness/judge/arm_judge.h"
#include "harness/launch/steps_done.h"
#include "harness/launch/trace_bits.h"

namespace trainwreck {
namespace {

using Runs = std::map<int, RunResult>;  // by seed

// The same signals with the same bits, over the steps that both have: a run that was stopped early
// has fewer.
bool SameBits(const RunTrace& a, const RunTrace& b) {
  bool compared = false;
  for (const auto& [key, series] : a.series) {
    if (IsTimeOrMemory(key.first)) continue;
    const Series* other = b.Find(key.first, key.second);
    if (other == nullptr) return false;
    const std::size_t steps = std::min(series.values.size(), other->values.size());
    if (FirstDifference(series, *other, static_cast<int>(steps)) >= 0) return false;
    compared = true;  // a series has a sample
  }
  return compared;
}

// What a crash cut off could have differed.
bool CameToItsEnd(const RunResult& run) {
  return run.end == RunEnd::kCompleted || run.end == RunEnd::kDecided;
}

bool SameInEverySeed(const Runs& a, const Runs& b) {
  return !a.empty() && std::all_of(a.begin(), a.end(), [&](const auto& entry) {
    const auto other = b.find(entry.first);
    return other != b.end() && CameToItsEnd(entry.second) && CameToItsEnd(other->second) &&
           SameBits(entry.second.trace, other->second.trace);
  });
}

bool AllSeedsAreTheSame(const Runs& runs) {
  return runs.size() > 1 &&
         std::all_of(std::next(runs.begin()), runs.end(), [&](const auto& entry) {
           return SameBits(entry.second.trace, runs.begin()->second.trace);
         });
}

// Those that ended by themselves without a step, although control shows that steps are seen.
bool EndedBeforeTheFirstStep(const Runs& runs, const Runs& control) {
  const auto has_steps = [](const auto& entry) {
    return CountStepsDone(entry.second.trace).has_value();
  };
  return std::any_of(control.begin(), control.end(), has_steps) &&
         std::any_of(runs.begin(), runs.end(), [&](const auto& entry) {
           return entry.second.end == RunEnd::kFailed && !has_steps(entry);
         });
}

std::vector<std::string> RemarksOnClaims(const Case& plan, const TargetDescription& target) {
  std::vector<std::string> remarks;
  if (plan.is_control_only) remarks.push_back("only what is claimed of control was judged");
  if (!ClaimsHealthOfControl(plan, target)) {
    remarks.push_back(
        "no `healthy` check says anything of control: only its end, its signals and the absence of "
        "the symptoms are checked");
  }
  for (const ArmPlan& arm : plan.arms) {
    if (arm.is_undo || (arm.remedy == nullptr && arm.decoy == nullptr)) continue;
    const std::vector<Claim> claims = ClaimsOf(plan, arm);
    const auto count = [&](bool expected) {
      return std::count_if(claims.begin(), claims.end(),
                           [&](const Claim& claim) { return claim.expected == expected; });
    };
    if (arm.decoy != nullptr && claims.empty()) {
      remarks.push_back("decoy '" + arm.name + "' keeps no symptom here: nothing of it is checked");
    } else if (arm.remedy != nullptr && count(false) == 0) {
      remarks.push_back("remedy '" + arm.name + "' resolves no symptom here");
    } else if (arm.remedy != nullptr && count(true) == 0) {
      remarks.push_back("remedy '" + arm.name +
                        "' waives all that is healthy: only the absence of symptoms is checked");
    }
  }
  return remarks;
}

}  // namespace

std::vector<std::string> RemarksOn(const CaseResults& results, const TargetDescription& target,
                                   const std::vector<int>& tolerated_seeds) {
  std::vector<std::string> remarks = RemarksOnClaims(*results.plan, target);
  const auto runs_of = [&](const std::string& arm) -> const Runs& {
    static const Runs kNone;
    const auto found = results.runs.find(arm);
    return found == results.runs.end() ? kNone : found->second;
  };
  for (const ArmPlan& arm : results.plan->arms) {
    const Runs& runs = runs_of(arm.name);
    if (arm.kind == ArmKind::kRemedy && SameInEverySeed(runs, runs_of("control"))) {
      remarks.push_back("remedy '" + arm.name +
                        "' equals control bit for bit: see that it is more than an undo");
    } else if (arm.kind == ArmKind::kDecoy && SameInEverySeed(runs, runs_of("fault"))) {
      remarks.push_back("decoy '" + arm.name +
                        "' equals the fault arm bit for bit: what it changes never acted");
    } else if (arm.kind == ArmKind::kFault && SameInEverySeed(runs, runs_of("control"))) {
      remarks.push_back("the fault arm equals control bit for bit in all recorded signals");
    } else if (arm.kind == ArmKind::kFault && EndedBeforeTheFirstStep(runs, runs_of("control"))) {
      remarks.push_back(
          "the fault arm ended before its first step: see that the program does not just refuse "
          "the "
          "setting");
    }
  }
  if (!results.plan->scenario->repeats_seed && AllSeedsAreTheSame(runs_of("control"))) {
    remarks.push_back("control is the same bit for bit in all " +
                      std::to_string(runs_of("control").size()) +
                      " seeds: the program does not use its seed, so they count as one");
  }
  if (!tolerated_seeds.empty()) {
    std::string text = tolerated_seeds.size() == 1 ? "seed" : "seeds";
    for (int seed : tolerated_seeds) text += " " + std::to_string(seed);
    remarks.push_back("let go, as `seeds: require` allows: " + text);
  }
  return remarks;
}

}  // namespace trainwreck
