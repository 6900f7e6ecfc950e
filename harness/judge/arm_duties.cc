// What arms owe that no scenario has to claim: they perform their faults and no others, keep the
// invariants, have sound signals, and end as planned.
#include <algorithm>
#include <utility>

#include "harness/judge/case_judge.h"
#include "harness/judge/endings.h"
#include "harness/judge/hook_failures.h"
#include "harness/judge/signal_health.h"
#include "harness/judge/wording.h"

namespace trainwreck {
namespace {

using formula::Reading;
using formula::Truth;

bool HasPhases(const ArmPlan& arm, int seed) {
  return std::any_of(arm.runs.begin(), arm.runs.end(),
                     [&](const Run& run) { return run.seed == seed && run.phases.size() > 1; });
}

bool HasBegunAnew(const RunResult& run) {
  return std::any_of(run.trace.events.begin(), run.trace.events.end(),
                     [](const Event& event) { return event.name == "began_anew"; });
}

}  // namespace

// An arm must have performed its faults and none of the others. Of the latter there is news only.
std::vector<JudgedCheck> CaseJudge::JudgeFaults(const ArmPlan& arm) const {
  std::vector<JudgedCheck> found;
  // Control with a bug need not show it, where only the change of a twin brings it out.
  const bool may_rest = arm.kind == ArmKind::kBug && arm.twin == nullptr;
  for (const InjectedFault& fault : arm.faults) {
    if (!may_rest) found.push_back(JudgeFired(arm, fault, true));
  }
  if (IsFaulty(arm.kind)) return found;
  for (const InjectedFault& fault : plan_.scenario->faults) {
    JudgedCheck fired = JudgeFired(arm, fault, false);
    if (!fired.tally.disagree.empty()) found.push_back(std::move(fired));
  }
  return found;
}

// In the arm, or in what it is compared with: a bug may show in one of the two alone.
bool CaseJudge::FiredIn(const ArmPlan& arm, const InjectedFault& fault, int seed,
                        std::string* seen) const {
  const RunResult* run = FindRun(arm.name, seed);
  if (run != nullptr && HasFired(run->trace, fault, seen)) return true;
  if (arm.kind != ArmKind::kBug) return false;
  run = FindRun(arm.control, seed);
  return run != nullptr && HasFired(run->trace, fault, seen);
}

// Likewise. A hook of ours that failed is no news of the fault, nor of the program.
bool CaseJudge::SilencedIn(const ArmPlan& arm, const InjectedFault& fault, int seed,
                           std::string* seen) const {
  for (const std::string& name : {arm.name, arm.control}) {
    if (name != arm.name && arm.kind != ArmKind::kBug) continue;
    const RunResult* run = FindRun(name, seed);
    if (run == nullptr) continue;
    if (const auto failure = WhatSilenced(fault, run->trace, target_)) {
      *seen = SentenceOf(fault, *failure);
      return true;
    }
  }
  return false;
}

JudgedCheck CaseJudge::JudgeFired(const ArmPlan& arm, const InjectedFault& fault,
                                  bool expected) const {
  JudgedCheck judged;
  judged.broken_class = expected ? FailureClass::kFaultNotFired : FailureClass::kControlUnhealthy;
  CheckResult& result = judged.result;
  result.check = kFiredCheck;
  result.formula = "fired(" + fault.id + ")";
  result.arm = arm.name;
  result.expected = expected;
  result.file = fault.file.empty() ? plan_.scenario->file : fault.file;
  result.position = fault.position;
  Tally& tally = judged.tally;
  for (int seed = 0; seed < plan_.seed_count; ++seed) {
    Reading reading;
    tally.counted.push_back(seed);
    const RunResult* run = FindRun(arm.name, seed);
    if (run == nullptr) {
      reading.seen = "the run was not made";
      tally.unknown.push_back(seed);
    } else {
      const bool fired = FiredIn(arm, fault, seed, &reading.seen);
      const bool is_unknown = !fired && expected && SilencedIn(arm, fault, seed, &reading.seen);
      reading.truth = fired ? Truth::kTrue : is_unknown ? Truth::kUnknown : Truth::kFalse;
      (is_unknown                 ? tally.unknown
       : fired == result.expected ? tally.agree
                                  : tally.disagree)
          .push_back(seed);
    }
    result.readings.push_back(std::move(reading));
  }
  if (result.expected) {
    result.message = "fault '" + fault.id + "' (" + fault.fault +
                     ") must act and change something in " + std::to_string(plan_.seed_require) +
                     " of " + std::to_string(plan_.seed_count) + " seeds";
    if (!tally.disagree.empty()) result.message += ", it did not in " + SeedList(tally.disagree);
    if (!tally.unknown.empty()) {
      result.message += ", it is not known to in " + SeedList(tally.unknown);
    }
  } else {
    result.message = "fault '" + fault.id + "' (" + fault.fault +
                     ") must not act here, it did in " + SeedList(tally.disagree);
  }
  return judged;
}

InvariantCount& CaseJudge::CountOf(const std::string& invariant) {
  for (InvariantCount& count : invariants_) {
    if (count.name == invariant) return count;
  }
  invariants_.push_back({.name = invariant});
  return invariants_.back();
}

// Those that do not hold in this arm. No seed of theirs may be lost: what every sound run must keep
// is no matter of luck. A run that ended early has nothing to say of the steps that it lacks.
std::vector<JudgedCheck> CaseJudge::JudgeInvariants(const ArmPlan& arm,
                                                    const std::vector<Claim>& claims) {
  std::vector<JudgedCheck> findings;
  if (arm.kind == ArmKind::kFault || arm.kind == ArmKind::kDecoy) return findings;
  for (const StandingCheck& standing : arm.invariants) {
    const bool is_claimed = std::any_of(claims.begin(), claims.end(), [&](const Claim& claim) {
      return claim.role == CheckRole::kInvariant && claim.check->name == standing.check.name;
    });
    if (is_claimed) continue;
    JudgedCheck judged = ReadInvariant(arm, standing);
    // What shows that an invariant can be broken has to show that it can hold.
    const std::vector<std::string>& breaks = plan_.scenario->breaks;
    const bool must_be_known = arm.kind == ArmKind::kControl &&
                               std::count(breaks.begin(), breaks.end(), standing.check.name) > 0;
    if (!judged.tally.disagree.empty()) {
      FindBroken(standing, judged);
    } else if (!must_be_known || judged.tally.unknown.empty()) {
      continue;
    } else {
      judged.result.message =
          "the scenario breaks it, so it must hold in control, and is not "
          "known to in " +
          SeedList(judged.tally.unknown);
    }
    findings.push_back(std::move(judged));
  }
  return findings;
}

JudgedCheck CaseJudge::ReadInvariant(const ArmPlan& arm, const StandingCheck& standing) {
  JudgedCheck judged;
  CheckResult& result = judged.result;
  Tally& tally = judged.tally;
  const std::string& name = standing.check.name;
  InvariantCount& count = CountOf(name);
  for (int seed = 0; seed < plan_.seed_count; ++seed) {
    result.readings.push_back(Read(standing.check, arm, seed));
    const Truth truth = result.readings.back().truth;
    // The fault is still in: only what its own run kept is the remedy's to keep.
    const auto with_fault = with_fault_.find({name, seed});
    const bool is_excused = arm.kind == ArmKind::kRemedy &&
                            (with_fault == with_fault_.end() || with_fault->second != Truth::kTrue);
    tally.counted.push_back(seed);
    if (truth == Truth::kTrue) {
      ++count.held;
      tally.agree.push_back(seed);
    } else if (truth == Truth::kUnknown) {
      ++count.open;
      tally.unknown.push_back(seed);
    } else if (is_excused) {
      ++count.excused;
    } else {
      ++count.broken;
      tally.disagree.push_back(seed);
    }
  }
  result.check = name;
  result.formula = standing.check.formula.text();
  result.arm = arm.name;
  result.file = standing.check.file;
  result.position = standing.check.position;
  result.unit = UnitOf(standing.check, result.readings);
  return judged;
}

void CaseJudge::FindBroken(const StandingCheck& standing, JudgedCheck& judged) const {
  const std::vector<int>& seeds = judged.tally.disagree;
  CheckResult& result = judged.result;
  judged.is_settled = true;
  result.failure_class = FailureClass::kInvariantBroken;
  result.agree = static_cast<int>(judged.tally.agree.size());
  result.disagree = static_cast<int>(seeds.size());
  const int seed = WorstSeed(seeds, result);
  result.worst_margin = SignedMargin(result.readings[seed], result.unit, /*expected=*/true);
  result.message =
      "what every sound run must keep does not hold in " + SeedList(seeds) + ": " + standing.title;
  result.suspects = {standing.part};
  SetRerun(result.arm, seed, result);
  result.seen = SeenAt(result, seed);
}

bool CaseJudge::HasToBeSound(const ArmPlan& arm) const {
  if (arm.kind == ArmKind::kControl && !ClaimsHealthOfControl(plan_, target_)) return true;
  if (target_.level >= 2) return false;  // it says by itself how it ended, and why
  if (arm.kind == ArmKind::kControl) return true;
  if (arm.kind != ArmKind::kRemedy) return false;
  const std::vector<std::string>& waives = arm.remedy->waives;
  return std::find(waives.begin(), waives.end(), kSignalsSoundCheck) == waives.end();
}

// Every signal, not only those that the scenario's formulas mention.
JudgedCheck CaseJudge::JudgeSignals(const ArmPlan& arm) const {
  JudgedCheck judged;
  judged.broken_class = arm.kind == ArmKind::kControl ? FailureClass::kControlUnhealthy
                                                      : FailureClass::kRemedyIneffective;
  CheckResult& result = judged.result;
  result.check = kSignalsSoundCheck;
  result.formula = "every signal is read, finite, and positive where its scale says so";
  result.arm = arm.name;
  result.file = plan_.scenario->file;
  Tally& tally = judged.tally;
  for (int seed = 0; seed < plan_.seed_count; ++seed) {
    const RunResult* run = FindRun(arm.name, seed);
    Reading reading;
    reading.seen = "the run was not made";
    const std::string* silenced = FindSilenced(arm.name, seed);
    if (run != nullptr) reading = ReadSignalHealth(run->trace, target_);
    if (silenced != nullptr) reading = {.seen = *silenced};
    tally.counted.push_back(seed);
    (reading.truth == Truth::kTrue    ? tally.agree
     : reading.truth == Truth::kFalse ? tally.disagree
                                      : tally.unknown)
        .push_back(seed);
    result.readings.push_back(std::move(reading));
  }
  result.message = "all signals that the target offers must be sound";
  if (!tally.disagree.empty()) result.message += ", they are not in " + SeedList(tally.disagree);
  if (!tally.unknown.empty()) {
    result.message += ", not all could be read in " + SeedList(tally.unknown);
  }
  return judged;
}

// An abnormal end is no surprise where a claim that holds is about that very end, and no second
// finding where such a claim has failed already. What should be absent, as a symptom in control and
// in remedy arms, excuses nothing by being absent. No fault is in control: if it dies, that is the
// finding, and what fails by it is the second one.
bool CaseJudge::EndIsClaimed(const ArmPlan& arm, const std::vector<Claim>& claims,
                             const std::vector<JudgedCheck>& judged, const RunResult& run,
                             int seed) const {
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const Truth truth = judged[i].result.readings[seed].truth;
    if (truth == Truth::kUnknown) continue;
    const bool holds = (truth == Truth::kTrue) == claims[i].expected;
    if (holds ? !claims[i].expected : arm.kind == ArmKind::kControl) continue;
    if (IsAboutEnd(claims[i], RunsOf(arm, seed), run.end, target_)) return true;
  }
  return false;
}

std::vector<JudgedCheck> CaseJudge::JudgeEnds(const ArmPlan& arm, const std::vector<Claim>& claims,
                                              const std::vector<JudgedCheck>& judged) const {
  std::map<FailureClass, std::vector<int>> seeds_by_class;
  std::vector<int> restarted, began_anew;
  const auto runs = results_.runs.find(arm.name);
  if (runs == results_.runs.end()) return {};
  for (const auto& [seed, run] : runs->second) {
    if (run.restarts > 0 && !IsFaulty(arm.kind)) restarted.push_back(seed);
    if (run.restarts == 0 && arm.faults.empty() && HasPhases(arm, seed) && HasBegunAnew(run)) {
      began_anew.push_back(seed);
    }
    const FailureClass failure_class = ClassOfEnd(run, target_);
    if (failure_class.empty() || EndIsClaimed(arm, claims, judged, run, seed)) continue;
    seeds_by_class[failure_class].push_back(seed);
  }
  std::vector<JudgedCheck> found;
  for (const auto& [failure_class, seeds] : seeds_by_class) {
    found.push_back(UnclaimedEnd(arm, failure_class, seeds));
  }
  if (!restarted.empty()) found.push_back(Restarted(arm, restarted));
  if (!began_anew.empty()) found.push_back(BeganAnew(arm, began_anew));
  return found;
}

// What no seed may be lost to, with the first of its seeds to look at.
JudgedCheck CaseJudge::Finding(const ArmPlan& arm, const char* check, FailureClass failure_class,
                               const std::vector<int>& seeds) const {
  JudgedCheck judged;
  judged.is_settled = true;
  CheckResult& result = judged.result;
  result.check = check;
  result.arm = arm.name;
  result.file = plan_.scenario->file;
  result.failure_class = std::move(failure_class);
  result.disagree = static_cast<int>(seeds.size());
  result.seen = "seed " + std::to_string(seeds.front()) + ": ";
  SetRerun(arm.name, seeds.front(), result);
  return judged;
}

JudgedCheck CaseJudge::UnclaimedEnd(const ArmPlan& arm, FailureClass failure_class,
                                    const std::vector<int>& seeds) const {
  const RunResult& run = *FindRun(arm.name, seeds.front());
  JudgedCheck judged = Finding(arm, kEndCheck, std::move(failure_class), seeds);
  CheckResult& result = judged.result;
  result.message = "expected every run to complete, " + SeedList(seeds) + " did not";
  result.seen += SentenceOfEnd(run);
  if (run.end == RunEnd::kStalled && target_.level < 2) {
    result.seen +=
        "; a program that pauses longer, for an evaluation for example, needs a larger "
        "budget.stall_seconds in its target";
  }
  for (const RankExit& exit : run.exits) {
    if (exit.last_words.empty() || (exit.code == 0 && exit.signal == 0)) continue;
    result.seen += "; last words of rank " + std::to_string(exit.rank) + ": " + exit.last_words;
    break;
  }
  return judged;
}

// A run that begins anew in a later phase is the run in one piece, whatever its checkpoints are.
JudgedCheck CaseJudge::BeganAnew(const ArmPlan& arm, const std::vector<int>& seeds) const {
  const bool is_twin = arm.kind == ArmKind::kTwin;
  JudgedCheck judged =
      Finding(arm, "resumed",
              is_twin ? FailureClass::kFaultNotFired : FailureClass::kControlUnhealthy, seeds);
  judged.result.message =
      "each phase after the first must go on from a checkpoint, not begin at step 0, in " +
      SeedList(seeds);
  judged.result.seen +=
      "step 0 was made again: the phase before saved no checkpoint, or the target's 'resume' does "
      "not lead to it";
  return judged;
}

// What was restarted did not train on in health, whatever its last attempt shows.
JudgedCheck CaseJudge::Restarted(const ArmPlan& arm, const std::vector<int>& seeds) const {
  JudgedCheck judged = Finding(arm, "restarts", FailureClass::kControlUnhealthy, seeds);
  judged.result.message = "a healthy run needs no restart, " + SeedList(seeds) + " had one";
  const RunResult& run = *FindRun(arm.name, seeds.front());
  judged.result.seen += std::to_string(run.restarts) + " restarts";
  for (const Event& event : run.trace.events) {
    if (event.name != "restarted") continue;
    const Json why = event.fields.value("why", Json());
    if (why.is_string()) judged.result.seen += ": " + why.get<std::string>();
    break;
  }
  return judged;
}

}  // namespace trainwreck
