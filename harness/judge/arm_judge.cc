#include "harness/judge/arm_judge.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include "harness/formula/arms.h"
#include "harness/judge/endings.h"
#include "harness/judge/place.h"
#include "harness/judge/signal_health.h"
#include "harness/judge/wording.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

using formula::Interval;
using formula::Reading;
using formula::Truth;

const char* Word(Truth truth) {
  switch (truth) {
    case Truth::kTrue:
      return "true";
    case Truth::kFalse:
      return "false";
    case Truth::kUnknown:
      return "unknown";
  }
  return "?";
}

// Signed so that positive agrees with the claim; the end of the interval that speaks against it.
std::optional<double> SignedMargin(const Reading& reading, formula::Unit unit, bool expected) {
  const std::optional<Interval>& margin = reading.margins[static_cast<int>(unit)];
  if (!margin || reading.truth == Truth::kUnknown) return std::nullopt;
  return expected ? margin->lo : -margin->hi;
}

// What a target saved of a step that went wrong: the folder in its event `evidence_saved`.
std::string EvidenceOf(const RunTrace& trace) {
  for (const Event& event : trace.events) {
    const auto folder = event.fields.find("folder");
    if (event.name == "evidence_saved" && folder != event.fields.end() && folder->is_string()) {
      return folder->get<std::string>();
    }
  }
  return "";
}

// How the seeds of one check fall out.
struct Tally {
  std::vector<int> counted;  // the others are not asked about it
  std::vector<int> agree, disagree, unknown;
  std::vector<int> weak, unclear;  // of those that agree: by less than min_margin, perhaps so
};

// A check with its seeds, before it is known how many of them may be lost.
struct Judged {
  CheckResult result;
  Tally tally;
  FailureClass broken_class;  // where a seed disagrees
  FailureClass weak_class;    // where it holds by less than min_margin
  bool is_settled = false;    // no seed of it may be lost: `result` says it all
};

// The seeds of a case by whether every claim of every arm holds in them. Arms of a seed belong
// together, so a seed is lost as a whole: a remedy cannot fail where the symptom was shown while
// the symptom is missing in the seeds where the remedy holds.
struct LostSeeds {
  std::set<int> broken;  // some claim does not hold
  std::set<int> open;    // none is broken, but some is not known to hold
  int allowed = 0;

  bool too_many_broken() const { return static_cast<int>(broken.size()) > allowed; }
  bool too_many() const { return static_cast<int>(broken.size() + open.size()) > allowed; }
  std::vector<int> Sorted() const {
    std::set<int> seeds = broken;
    seeds.insert(open.begin(), open.end());
    return {seeds.begin(), seeds.end()};
  }
  bool IsLost(int seed) const { return broken.contains(seed) || open.contains(seed); }
};

class CaseJudge {
 public:
  CaseJudge(const CaseResults& results, const TargetDescription& target)
      : results_(results), plan_(*results.plan), target_(target) {
    for (const auto& [arm, seeds] : results.runs) {
      for (const auto& [seed, run] : seeds) {
        const RunTrace* trace = &run.trace;
        if (run.end == RunEnd::kDecided && trace->finished) {
          // It was stopped by us: what it has not said by then is unknown, not absent.
          stopped_.push_back(*trace);
          stopped_.back().finished = false;
          trace = &stopped_.back();
        }
        traces_[seed][arm] = trace;
      }
    }
  }

  ArmsJudged JudgeAll() {
    ReadFaultArm();
    std::vector<Judged> all;
    for (const ArmPlan& arm : plan_.arms) {
      if (arm.is_undo) continue;
      const std::vector<Claim> claims = ClaimsOf(plan_, arm);
      std::vector<Judged> of_arm;
      for (const Claim& claim : claims) of_arm.push_back(JudgeClaim(arm, claim));
      std::vector<Judged> ends = JudgeEnds(arm, claims, of_arm);
      if (HasToBeSound(arm)) of_arm.push_back(JudgeSignals(arm));
      for (Judged& broken : JudgeInvariants(arm, claims)) of_arm.push_back(std::move(broken));
      for (Judged& fired : JudgeFaults(arm)) of_arm.push_back(std::move(fired));
      std::move(of_arm.begin(), of_arm.end(), std::back_inserter(all));
      std::move(ends.begin(), ends.end(), std::back_inserter(all));
    }
    const LostSeeds lost = Lost(all);
    ArmsJudged judged;
    for (Judged& one : all) {
      if (!one.is_settled) Settle(lost, one);
      judged.checks.push_back(std::move(one.result));
    }
    if (!lost.too_many()) judged.tolerated_seeds = lost.Sorted();
    judged.invariants = std::move(invariants_);
    return judged;
  }

 private:
  int allowed() const { return plan_.seed_count - plan_.seed_require; }
  const RunResult* FindRun(const std::string& arm, int seed) const {
    auto seeds = results_.runs.find(arm);
    if (seeds == results_.runs.end()) return nullptr;
    auto found = seeds->second.find(seed);
    return found == seeds->second.end() ? nullptr : &found->second;
  }

  Reading Read(const Check& check, const ArmPlan& arm, int seed) const {
    if (FindRun(arm.name, seed) == nullptr) {
      Reading missing;
      missing.seen = "the run was not made";
      return missing;
    }
    return check.formula.Evaluate(RunsOf(arm, seed), target_);
  }

  void ReadFaultArm() {
    const auto fault = std::find_if(plan_.arms.begin(), plan_.arms.end(),
                                    [](const ArmPlan& arm) { return arm.kind == ArmKind::kFault; });
    if (fault == plan_.arms.end()) return;
    for (int seed = 0; seed < plan_.seed_count; ++seed) {
      for (const Check& symptom : plan_.scenario->symptoms) {
        shown_[{symptom.name, seed}] = Read(symptom, *fault, seed).truth == Truth::kTrue;
      }
      for (const StandingCheck& standing : fault->invariants) {
        with_fault_[{standing.check.name, seed}] = Read(standing.check, *fault, seed).truth;
      }
    }
  }

  // Whether the fault arm shows what the check is about; an invariant by not holding.
  bool IsShown(const Claim& claim, int seed) const {
    const std::pair<std::string, int> key = {claim.check->name, seed};
    if (claim.role != CheckRole::kInvariant) return shown_.at(key);
    const auto truth = with_fault_.find(key);
    return truth != with_fault_.end() && truth->second == Truth::kFalse;
  }

  void SetRerun(const std::string& arm, int seed, CheckResult& result) const {
    result.worst_seed = seed;
    if (result.failure_class.empty() || seed < 0) return;
    const RunResult* run = FindRun(arm, seed);
    if (run != nullptr) result.evidence = EvidenceOf(run->trace);
    if (run != nullptr && !run->folder.empty()) {
      result.rerun_command = "trainwreck rerun " + ShellWord(run->folder);
      return;
    }
    result.rerun_command = "trainwreck run " + ShellWord(plan_.scenario->file) + " --arm " +
                           ShellWord(arm) + " --seed " + std::to_string(seed);
    if (!plan_.point->name.empty()) {
      result.rerun_command += " --point " + ShellWord(plan_.point->name);
    }
  }

  formula::Runs RunsOf(const ArmPlan& arm, int seed) const {
    formula::Runs runs{traces_.at(seed).at(arm.name), traces_.at(seed), arm.control};
    const int next = (seed + 1) % plan_.seed_count;
    const bool is_made = next != seed && FindRun(arm.name, next) != nullptr;
    if (is_made) runs.arms[formula::kOtherSeed] = traces_.at(next).at(arm.name);
    return runs;
  }

  Judged JudgeClaim(const ArmPlan& arm, const Claim& claim) const;
  std::vector<Judged> JudgeFaults(const ArmPlan& arm) const;
  Judged JudgeFired(const ArmPlan& arm, const InjectedFault& fault, bool expected) const;
  bool FiredIn(const ArmPlan& arm, const InjectedFault& fault, int seed, std::string* seen) const;
  bool HasToBeSound(const ArmPlan& arm) const;
  Judged JudgeSignals(const ArmPlan& arm) const;
  std::vector<Judged> JudgeInvariants(const ArmPlan& arm, const std::vector<Claim>& claims);
  InvariantCount& CountOf(const std::string& invariant);
  std::vector<Judged> JudgeEnds(const ArmPlan& arm, const std::vector<Claim>& claims,
                                const std::vector<Judged>& judged) const;
  bool EndIsClaimed(const ArmPlan& arm, const std::vector<Claim>& claims,
                    const std::vector<Judged>& judged, const RunResult& run, int seed) const;
  Judged Finding(const ArmPlan& arm, const char* check, FailureClass failure_class,
                 const std::vector<int>& seeds) const;
  Judged UnclaimedEnd(const ArmPlan& arm, FailureClass failure_class,
                      const std::vector<int>& seeds) const;
  Judged Restarted(const ArmPlan& arm, const std::vector<int>& seeds) const;
  LostSeeds Lost(const std::vector<Judged>& all) const;
  void Settle(const LostSeeds& lost, Judged& judged) const;
  void FindPlace(int seed, CheckResult& result) const;

  const CaseResults& results_;
  const Case& plan_;
  const TargetDescription& target_;
  std::deque<RunTrace> stopped_;
  std::map<int, std::map<std::string, const RunTrace*>> traces_;  // seed -> arm -> trace
  std::map<std::pair<std::string, int>, bool> shown_;  // by symptom and seed, in the fault arm
  std::map<std::pair<std::string, int>, Truth> with_fault_;  // of invariants, likewise
  std::vector<InvariantCount> invariants_;
};

int WorstSeed(const std::vector<int>& seeds, const CheckResult& result) {
  int worst = -1;
  double worst_margin = std::numeric_limits<double>::infinity();
  for (int seed : seeds) {
    const double margin = SignedMargin(result.readings[seed], result.unit, result.expected)
                              .value_or(std::numeric_limits<double>::infinity());
    if (worst < 0 || margin < worst_margin) {
      worst = seed;
      worst_margin = margin;
    }
  }
  return worst;
}

std::string SeenAt(const CheckResult& result, int seed) {
  if (seed < 0) return "";
  const Reading& reading = result.readings[seed];
  std::string text = "seed " + std::to_string(seed) + ": ";
  text += reading.seen.empty() ? std::string(Word(reading.truth)) : reading.seen;
  if (reading.step >= 0) text += " (step " + std::to_string(reading.step) + ")";
  return text;
}

std::string Describe(const ArmPlan& arm, const Claim& claim, const Judged& judged, int allowed) {
  const Tally& tally = judged.tally;
  const int count = static_cast<int>(tally.counted.size());
  const Words words = WordsOf(arm, claim);
  std::string text = words.expected;
  text += claim.only_where_shown ? " in every seed whose fault arm shows it ("
                                 : " in " + std::to_string(std::max(0, count - allowed)) + " of ";
  text += std::to_string(count) + (claim.only_where_shown ? " of " : "") +
          (claim.only_where_shown ? std::to_string(judged.result.readings.size()) + ")" : " seeds");
  text += CountedSeeds(words.seen, tally.disagree);
  text += CountedSeeds("unknown", tally.unknown);
  if (claim.check->min_margin) {
    const std::string least = AmountText(*claim.check->min_margin);
    text += CountedSeeds(claim.role == CheckRole::kAgree
                             ? "agrees, but nearer to the limit than min_margin " + least
                             : "holds by less than min_margin " + least,
                         tally.weak);
    text += CountedSeeds("not known to hold by min_margin " + least, tally.unclear);
  }
  return text;
}

// What the margins of a check are compared in.
formula::Unit UnitOf(const Check& check, const std::vector<Reading>& readings) {
  if (check.min_margin) return check.min_margin->unit;
  const auto known = std::find_if(readings.begin(), readings.end(), [](const Reading& reading) {
    return reading.truth != Truth::kUnknown;
  });
  return known == readings.end() ? formula::Unit::kPlain : known->main_unit;
}

Judged CaseJudge::JudgeClaim(const ArmPlan& arm, const Claim& claim) const {
  const Check& check = *claim.check;
  Judged judged;
  judged.broken_class = claim.failure_class;
  const bool is_symptom = judged.broken_class == FailureClass::kSymptomAbsent;
  judged.weak_class = is_symptom ? FailureClass::kSymptomWeak : judged.broken_class;
  CheckResult& result = judged.result;
  result.check = check.name;
  result.formula = check.formula.text();
  result.arm = arm.name;
  result.expected = claim.expected;
  result.file = check.file.empty() ? plan_.scenario->file : check.file;
  result.position = check.position;

  Tally& tally = judged.tally;
  const Truth wanted = claim.expected ? Truth::kTrue : Truth::kFalse;
  for (int seed = 0; seed < plan_.seed_count; ++seed) {
    result.readings.push_back(Read(check, arm, seed));
    const Reading& reading = result.readings.back();
    if (claim.only_where_shown && !IsShown(claim, seed)) continue;
    tally.counted.push_back(seed);
    if (reading.truth == Truth::kUnknown) {
      tally.unknown.push_back(seed);
      continue;
    }
    if (reading.truth != wanted) {
      tally.disagree.push_back(seed);
      continue;
    }
    tally.agree.push_back(seed);
    if (!claim.has_to_be_clear) continue;
    const Clearance clearance = ClearanceOf(check, reading);
    if (clearance == Clearance::kWeak) tally.weak.push_back(seed);
    if (clearance == Clearance::kUnknown) tally.unclear.push_back(seed);
  }
  result.unit = UnitOf(check, result.readings);
  result.message = Describe(arm, claim, judged, allowed());
  return judged;
}

LostSeeds CaseJudge::Lost(const std::vector<Judged>& all) const {
  LostSeeds lost;
  lost.allowed = allowed();
  for (const Judged& one : all) {
    lost.broken.insert(one.tally.disagree.begin(), one.tally.disagree.end());
    lost.broken.insert(one.tally.weak.begin(), one.tally.weak.end());
    lost.open.insert(one.tally.unknown.begin(), one.tally.unknown.end());
    lost.open.insert(one.tally.unclear.begin(), one.tally.unclear.end());
  }
  for (int seed : lost.broken) lost.open.erase(seed);
  return lost;
}

// The class, the margin and the seed to look at, now that it is known how the whole case stands.
void CaseJudge::Settle(const LostSeeds& lost, Judged& judged) const {
  CheckResult& result = judged.result;
  const Tally& tally = judged.tally;
  result.agree = static_cast<int>(tally.agree.size());
  result.disagree = static_cast<int>(tally.disagree.size());
  result.unknown = static_cast<int>(tally.unknown.size());
  for (int seed : tally.counted) {
    if (!lost.too_many() && lost.IsLost(seed)) continue;  // tolerated: the verdict is not about it
    const std::optional<double> margin =
        SignedMargin(result.readings[seed], result.unit, result.expected);
    if (margin && (!result.worst_margin || *margin < *result.worst_margin)) {
      result.worst_margin = margin;
    }
  }
  const std::vector<int>* to_look_at = &tally.counted;
  const auto fail = [&](const std::vector<int>& seeds, FailureClass failure_class) {
    if (seeds.empty() || !result.failure_class.empty()) return;
    result.failure_class = std::move(failure_class);
    to_look_at = &seeds;
  };
  if (lost.too_many_broken()) {
    fail(tally.disagree, judged.broken_class);
    fail(tally.weak, judged.weak_class);
  }
  if (lost.too_many()) {
    fail(tally.unknown, FailureClass::kUndecided);
    fail(tally.unclear, FailureClass::kUndecided);
  }
  if (!result.failure_class.empty() && lost.allowed > 0) {
    result.message += "; some claim is broken or unknown in " + SeedList(lost.Sorted()) +
                      ", `require: " + std::to_string(plan_.seed_require) + "` lets " +
                      std::to_string(lost.allowed) + " go";
  }
  const int seed = WorstSeed(*to_look_at, result);
  SetRerun(result.arm, seed, result);
  result.seen = SeenAt(result, seed);
  if (result.failure_class == FailureClass::kTwinsDiffer) FindPlace(seed, result);
}

// Where a twin and control come apart, in all that was recorded.
void CaseJudge::FindPlace(int seed, CheckResult& result) const {
  const auto arm = std::find_if(plan_.arms.begin(), plan_.arms.end(),
                                [&](const ArmPlan& one) { return one.name == result.arm; });
  const auto of_seed = traces_.find(seed);
  if (arm == plan_.arms.end() || of_seed == traces_.end()) return;
  const auto run_of = [&](const std::string& name) {
    const auto run = of_seed->second.find(name);
    return run == of_seed->second.end() ? nullptr : run->second;
  };
  const RunTrace* twin = run_of(arm->name);
  const RunTrace* control = run_of(arm->control);
  if (twin == nullptr || control == nullptr) return;
  std::vector<const RunTrace*> draws;
  for (const ArmPlan& one : plan_.arms) {
    if (one.kind != ArmKind::kRounding) continue;
    if (const RunTrace* draw = run_of(one.name)) draws.push_back(draw);
  }
  const std::optional<Place> place = FirstApart(*twin, *control, draws, target_);
  if (!place) return;
  result.place = ToString(*place);
  result.suspects = SuspectsOf(*place, *arm->twin);
}

// An arm must have performed its faults and none of the others. Of the latter there is news only.
std::vector<Judged> CaseJudge::JudgeFaults(const ArmPlan& arm) const {
  std::vector<Judged> found;
  // Control with a bug need not show it, where only the change of a twin brings it out.
  const bool may_rest = arm.kind == ArmKind::kBug && arm.twin == nullptr;
  for (const InjectedFault& fault : arm.faults) {
    if (!may_rest) found.push_back(JudgeFired(arm, fault, true));
  }
  if (IsFaulty(arm.kind)) return found;
  for (const InjectedFault& fault : plan_.scenario->faults) {
    Judged fired = JudgeFired(arm, fault, false);
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

Judged CaseJudge::JudgeFired(const ArmPlan& arm, const InjectedFault& fault, bool expected) const {
  Judged judged;
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
      reading.truth = fired ? Truth::kTrue : Truth::kFalse;
      (fired == result.expected ? tally.agree : tally.disagree).push_back(seed);
    }
    result.readings.push_back(std::move(reading));
  }
  if (result.expected) {
    result.message = "fault '" + fault.id + "' (" + fault.fault +
                     ") must act and change something in " + std::to_string(plan_.seed_require) +
                     " of " + std::to_string(plan_.seed_count) + " seeds";
    if (!tally.disagree.empty()) result.message += ", it did not in " + SeedList(tally.disagree);
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
std::vector<Judged> CaseJudge::JudgeInvariants(const ArmPlan& arm,
                                               const std::vector<Claim>& claims) {
  std::vector<Judged> broken;
  if (arm.kind == ArmKind::kFault || arm.kind == ArmKind::kDecoy) return broken;
  for (const StandingCheck& standing : arm.invariants) {
    const std::string& name = standing.check.name;
    const bool is_claimed = std::any_of(claims.begin(), claims.end(), [&](const Claim& claim) {
      return claim.role == CheckRole::kInvariant && claim.check->name == name;
    });
    if (is_claimed) continue;
    Judged judged;
    CheckResult& result = judged.result;
    InvariantCount& count = CountOf(name);
    std::vector<int>& seeds = judged.tally.disagree;
    for (int seed = 0; seed < plan_.seed_count; ++seed) {
      result.readings.push_back(Read(standing.check, arm, seed));
      const Truth truth = result.readings.back().truth;
      // The fault is still in: only what its own run kept is the remedy's to keep.
      const auto with_fault = with_fault_.find({name, seed});
      const bool is_excused = arm.kind == ArmKind::kRemedy && (with_fault == with_fault_.end() ||
                                                               with_fault->second != Truth::kTrue);
      if (truth == Truth::kTrue) {
        ++count.held;
        judged.tally.agree.push_back(seed);
      } else if (truth == Truth::kUnknown) {
        ++count.open;
      } else if (is_excused) {
        ++count.excused;
      } else {
        ++count.broken;
        seeds.push_back(seed);
      }
    }
    if (seeds.empty()) continue;
    judged.is_settled = true;
    result.check = name;
    result.formula = standing.check.formula.text();
    result.arm = arm.name;
    result.file = standing.check.file;
    result.position = standing.check.position;
    result.failure_class = FailureClass::kInvariantBroken;
    result.agree = static_cast<int>(judged.tally.agree.size());
    result.disagree = static_cast<int>(seeds.size());
    result.unit = UnitOf(standing.check, result.readings);
    const int seed = WorstSeed(seeds, result);
    result.worst_margin = SignedMargin(result.readings[seed], result.unit, /*expected=*/true);
    result.message = "what every sound run must keep does not hold in " + SeedList(seeds) + ": " +
                     standing.title;
    result.suspects = {standing.part};
    SetRerun(arm.name, seed, result);
    result.seen = SeenAt(result, seed);
    broken.push_back(std::move(judged));
  }
  return broken;
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
Judged CaseJudge::JudgeSignals(const ArmPlan& arm) const {
  Judged judged;
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
    if (run != nullptr) reading = ReadSignalHealth(run->trace, target_);
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
// in remedy arms, excuses nothing by being absent.
bool CaseJudge::EndIsClaimed(const ArmPlan& arm, const std::vector<Claim>& claims,
                             const std::vector<Judged>& judged, const RunResult& run,
                             int seed) const {
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const Truth truth = judged[i].result.readings[seed].truth;
    if (truth == Truth::kUnknown) continue;
    const bool holds = (truth == Truth::kTrue) == claims[i].expected;
    if (holds && !claims[i].expected) continue;
    if (RestsOnEnd(claims[i].check->formula, RunsOf(arm, seed), run.end, target_)) return true;
  }
  return false;
}

std::vector<Judged> CaseJudge::JudgeEnds(const ArmPlan& arm, const std::vector<Claim>& claims,
                                         const std::vector<Judged>& judged) const {
  std::map<FailureClass, std::vector<int>> seeds_by_class;
  std::vector<int> restarted;
  const auto runs = results_.runs.find(arm.name);
  if (runs == results_.runs.end()) return {};
  for (const auto& [seed, run] : runs->second) {
    if (run.restarts > 0 && !IsFaulty(arm.kind)) restarted.push_back(seed);
    const FailureClass failure_class = ClassOfEnd(run, target_);
    if (failure_class.empty() || EndIsClaimed(arm, claims, judged, run, seed)) continue;
    seeds_by_class[failure_class].push_back(seed);
  }
  std::vector<Judged> found;
  for (const auto& [failure_class, seeds] : seeds_by_class) {
    found.push_back(UnclaimedEnd(arm, failure_class, seeds));
  }
  if (!restarted.empty()) found.push_back(Restarted(arm, restarted));
  return found;
}

// What no seed may be lost to, with the first of its seeds to look at.
Judged CaseJudge::Finding(const ArmPlan& arm, const char* check, FailureClass failure_class,
                          const std::vector<int>& seeds) const {
  Judged judged;
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

Judged CaseJudge::UnclaimedEnd(const ArmPlan& arm, FailureClass failure_class,
                               const std::vector<int>& seeds) const {
  const RunResult& run = *FindRun(arm.name, seeds.front());
  Judged judged = Finding(arm, kEndCheck, std::move(failure_class), seeds);
  CheckResult& result = judged.result;
  result.message = "expected every run to complete, " + SeedList(seeds) + " did not";
  result.seen += SentenceOfEnd(run);
  for (const RankExit& exit : run.exits) {
    if (exit.last_words.empty() || (exit.code == 0 && exit.signal == 0)) continue;
    result.seen += "; last words of rank " + std::to_string(exit.rank) + ": " + exit.last_words;
    break;
  }
  return judged;
}

// What was restarted did not train on in health, whatever its last attempt shows.
Judged CaseJudge::Restarted(const ArmPlan& arm, const std::vector<int>& seeds) const {
  Judged judged = Finding(arm, "restarts", FailureClass::kControlUnhealthy, seeds);
  judged.result.message = "a healthy run needs no restart, " + SeedList(seeds) + " had one";
  judged.result.seen += std::to_string(FindRun(arm.name, seeds.front())->restarts) + " restarts";
  return judged;
}

}  // namespace

ArmsJudged JudgeArms(const CaseResults& results, const TargetDescription& target) {
  return CaseJudge(results, target).JudgeAll();
}

}  // namespace trainwreck
