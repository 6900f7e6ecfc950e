#include "harness/judge/arm_judge.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

#include "harness/judge/signal_health.h"

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

std::string SeedList(const std::vector<int>& seeds) {
  std::string text = seeds.size() == 1 ? "seed " : "seeds ";
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(seeds[i]);
  }
  return text;
}

std::string ShellWord(const std::string& text) {
  const bool plain = !text.empty() && text.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_-./=:@%+,") == std::string::npos;
  if (plain) return text;
  std::string quoted = "'";
  for (char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string AmountText(const formula::Amount& amount) {
  const std::string name = formula::ToString(amount.unit);
  return ShortNumber(amount.value) + (name.empty() ? "" : " " + name);
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

  std::vector<CheckResult> JudgeAll() {
    ReadFaultArm();
    std::vector<CheckResult> all;
    for (const ArmPlan& arm : plan_.arms) {
      if (arm.is_undo) continue;
      const std::vector<Claim> claims = ClaimsOf(plan_, arm);
      std::vector<CheckResult> results;
      for (const Claim& claim : claims) results.push_back(JudgeClaim(arm, claim));
      if (HasToBeSound(arm)) results.push_back(JudgeSignals(arm));
      std::vector<CheckResult> ends = JudgeEnds(arm, claims, results);
      if (IsFaulty(arm.kind)) {
        for (const InjectedFault& fault : plan_.scenario->faults) {
          results.push_back(JudgeFired(arm, fault));
        }
      }
      std::move(results.begin(), results.end(), std::back_inserter(all));
      std::move(ends.begin(), ends.end(), std::back_inserter(all));
    }
    return all;
  }

 private:
  int allowed() const { return plan_.seed_count - plan_.seed_require; }

  const RunResult* FindRun(const std::string& arm, int seed) const {
    auto seeds = results_.runs.find(arm);
    if (seeds == results_.runs.end()) return nullptr;
    auto found = seeds->second.find(seed);
    return found == seeds->second.end() ? nullptr : &found->second;
  }

  Reading Read(const Check& check, const std::string& arm, int seed) const {
    auto of_seed = traces_.find(seed);
    if (of_seed == traces_.end() || !of_seed->second.contains(arm)) {
      Reading missing;
      missing.seen = "the run was not made";
      return missing;
    }
    formula::Runs runs;
    runs.self = of_seed->second.at(arm);
    runs.arms = of_seed->second;
    return check.formula.Evaluate(runs, target_);
  }

  void ReadFaultArm() {
    for (const Check& symptom : plan_.scenario->symptoms) {
      for (int seed = 0; seed < plan_.seed_count; ++seed) {
        shown_[{&symptom, seed}] = Read(symptom, "fault", seed).truth == Truth::kTrue;
      }
    }
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

  CheckResult JudgeClaim(const ArmPlan& arm, const Claim& claim) const;
  CheckResult JudgeFired(const ArmPlan& arm, const InjectedFault& fault) const;
  bool HasToBeSound(const ArmPlan& arm) const;
  CheckResult JudgeSignals(const ArmPlan& arm) const;
  std::vector<CheckResult> JudgeEnds(const ArmPlan& arm, const std::vector<Claim>& claims,
                                     const std::vector<CheckResult>& results) const;
  bool EndIsClaimed(const std::vector<Claim>& claims, const std::vector<CheckResult>& results,
                    int seed) const;

  const CaseResults& results_;
  const Case& plan_;
  const TargetDescription& target_;
  std::deque<RunTrace> stopped_;
  std::map<int, std::map<std::string, const RunTrace*>> traces_;  // seed -> arm -> trace
  std::map<std::pair<const Check*, int>, bool> shown_;            // in the fault arm, by seed
};

// How the seeds of one claim fall out.
struct Tally {
  std::vector<int> agree, disagree, unknown, weak, unclear;
  std::vector<int> counted;
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

std::string Describe(const Claim& claim, const CheckResult& result, const Tally& tally,
                     int allowed) {
  const int count = static_cast<int>(tally.counted.size());
  std::string text = "expected " + std::string(result.expected ? "true" : "false");
  text += claim.only_where_shown ? " in every seed whose fault arm shows it ("
                                 : " in " + std::to_string(std::max(0, count - allowed)) + " of ";
  text += std::to_string(count) + (claim.only_where_shown ? " of " : "") +
          (claim.only_where_shown ? std::to_string(result.readings.size()) + ")" : " seeds");
  auto add = [&](const std::vector<int>& seeds, const std::string& what) {
    if (!seeds.empty()) {
      text += ", " + what + " in " + std::to_string(seeds.size()) + " (" + SeedList(seeds) + ")";
    }
  };
  add(tally.disagree, std::string("seen ") + (result.expected ? "false" : "true"));
  add(tally.unknown, "unknown");
  if (claim.check->min_margin) {
    const std::string least = AmountText(*claim.check->min_margin);
    add(tally.weak, "holds by less than min_margin " + least);
    add(tally.unclear, "not known to hold by min_margin " + least);
  }
  return text;
}

CheckResult CaseJudge::JudgeClaim(const ArmPlan& arm, const Claim& claim) const {
  const Check& check = *claim.check;
  CheckResult result;
  result.check = check.name;
  result.formula = check.formula.text();
  result.arm = arm.name;
  result.expected = claim.expected;
  result.file = check.file.empty() ? plan_.scenario->file : check.file;
  result.position = check.position;

  Tally tally;
  const Truth wanted = claim.expected ? Truth::kTrue : Truth::kFalse;
  bool unit_is_set = check.min_margin.has_value();
  if (unit_is_set) result.unit = check.min_margin->unit;
  for (int seed = 0; seed < plan_.seed_count; ++seed) {
    result.readings.push_back(Read(check, arm.name, seed));
    const Reading& reading = result.readings.back();
    if (claim.only_where_shown && !shown_.at({&check, seed})) continue;
    tally.counted.push_back(seed);
    if (reading.truth == Truth::kUnknown) {
      tally.unknown.push_back(seed);
      continue;
    }
    if (!unit_is_set) {
      result.unit = reading.main_unit;
      unit_is_set = true;
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
  for (int seed : tally.counted) {
    const std::optional<double> margin =
        SignedMargin(result.readings[seed], result.unit, result.expected);
    if (margin && (!result.worst_margin || *margin < *result.worst_margin)) {
      result.worst_margin = margin;
    }
  }
  result.agree = static_cast<int>(tally.agree.size());
  result.disagree = static_cast<int>(tally.disagree.size());
  result.unknown = static_cast<int>(tally.unknown.size());

  const int weak = static_cast<int>(tally.weak.size());
  const int unclear = static_cast<int>(tally.unclear.size());
  const std::vector<int>* to_look_at = &tally.counted;
  if (result.disagree > allowed()) {
    result.failure_class = claim.failure_class;
    to_look_at = &tally.disagree;
  } else if (result.disagree + result.unknown > allowed()) {
    result.failure_class = "undecided";
    to_look_at = &tally.unknown;
  } else if (result.disagree + result.unknown + weak > allowed() && weak > 0) {
    const bool is_symptom = std::string_view(claim.failure_class) == "symptom_absent";
    result.failure_class = is_symptom ? "symptom_weak" : claim.failure_class;
    to_look_at = &tally.weak;
  } else if (result.disagree + result.unknown + weak + unclear > allowed() && unclear > 0) {
    result.failure_class = "undecided";
    to_look_at = &tally.unclear;
  }
  const int seed = WorstSeed(*to_look_at, result);
  SetRerun(arm.name, seed, result);
  result.message = Describe(claim, result, tally, allowed());
  result.seen = SeenAt(result, seed);
  return result;
}

CheckResult CaseJudge::JudgeFired(const ArmPlan& arm, const InjectedFault& fault) const {
  CheckResult result;
  result.check = "fired";
  result.formula = "fired(" + fault.id + ")";
  result.arm = arm.name;
  result.file = fault.file.empty() ? plan_.scenario->file : fault.file;
  result.position = fault.position;
  std::vector<int> silent, missing;
  for (int seed = 0; seed < plan_.seed_count; ++seed) {
    Reading reading;
    const RunResult* run = FindRun(arm.name, seed);
    if (run == nullptr) {
      reading.seen = "the run was not made";
      missing.push_back(seed);
    } else {
      const bool fired = HasFired(run->trace, fault, &reading.seen);
      reading.truth = fired ? Truth::kTrue : Truth::kFalse;
      if (!fired) silent.push_back(seed);
    }
    result.readings.push_back(std::move(reading));
  }
  result.disagree = static_cast<int>(silent.size());
  result.unknown = static_cast<int>(missing.size());
  result.agree = plan_.seed_count - result.disagree - result.unknown;
  result.message = "fault '" + fault.id + "' (" + fault.fault +
                   ") must act and change something in " + std::to_string(plan_.seed_require) +
                   " of " + std::to_string(plan_.seed_count) + " seeds";
  int seed = -1;
  if (result.disagree > allowed()) {
    result.failure_class = "fault_not_fired";
    seed = silent.front();
    result.message += ", it did not in " + SeedList(silent);
  } else if (result.disagree + result.unknown > allowed()) {
    result.failure_class = "undecided";
    seed = missing.empty() ? silent.front() : missing.front();
  }
  if (seed >= 0) {
    result.seen = "seed " + std::to_string(seed) + ": " + result.readings[seed].seen;
  }
  SetRerun(arm.name, seed, result);
  return result;
}

bool CaseJudge::HasToBeSound(const ArmPlan& arm) const {
  if (target_.level >= 2) return false;  // it says by itself how it ended, and why
  if (arm.kind == ArmKind::kControl) return true;
  if (arm.kind != ArmKind::kRemedy) return false;
  const std::vector<std::string>& waives = arm.remedy->waives;
  return std::find(waives.begin(), waives.end(), kSignalHealth) == waives.end();
}

// Every signal, not only those that the scenario's formulas mention.
CheckResult CaseJudge::JudgeSignals(const ArmPlan& arm) const {
  CheckResult result;
  result.check = kSignalHealth;
  result.formula = "every signal is read, finite, and positive where its scale says so";
  result.arm = arm.name;
  result.file = plan_.scenario->file;
  std::vector<int> unsound, unread;
  for (int seed = 0; seed < plan_.seed_count; ++seed) {
    const RunResult* run = FindRun(arm.name, seed);
    Reading reading;
    reading.seen = "the run was not made";
    if (run != nullptr) reading = ReadSignalHealth(run->trace, target_);
    if (reading.truth == Truth::kFalse) unsound.push_back(seed);
    if (reading.truth == Truth::kUnknown) unread.push_back(seed);
    result.readings.push_back(std::move(reading));
  }
  result.disagree = static_cast<int>(unsound.size());
  result.unknown = static_cast<int>(unread.size());
  result.agree = plan_.seed_count - result.disagree - result.unknown;
  int seed = result.readings.empty() ? -1 : 0;
  result.message = "all signals that the target offers must be sound";
  if (result.disagree > allowed()) {
    result.failure_class =
        arm.kind == ArmKind::kControl ? "control_unhealthy" : "remedy_ineffective";
    seed = unsound.front();
    result.message += ", they are not in " + SeedList(unsound);
  } else if (result.disagree + result.unknown > allowed()) {
    result.failure_class = "undecided";
    seed = unread.empty() ? unsound.front() : unread.front();
    result.message += ", not all could be read in " + SeedList(unread);
  }
  result.seen = SeenAt(result, seed);
  SetRerun(arm.name, seed, result);
  return result;
}

const char* ClassOfEnd(RunEnd end) {
  switch (end) {
    case RunEnd::kCompleted:
    case RunEnd::kDecided:
      return "";
    case RunEnd::kFailed:
    case RunEnd::kGarbage:
      return "crash";
    case RunEnd::kStalled:
    case RunEnd::kTimeout:
      return "timeout";
    case RunEnd::kLeak:
      return "leak";
    case RunEnd::kDiskBudget:
    case RunEnd::kInfrastructure:
      return "infrastructure";
  }
  return "infrastructure";
}

// An abnormal end is no surprise where a formula about endings says so (it must hold, and does),
// and no second finding where such a formula has failed already. A symptom about endings that is
// absent, as it should be in control and in remedy arms, excuses nothing.
bool CaseJudge::EndIsClaimed(const std::vector<Claim>& claims,
                             const std::vector<CheckResult>& results, int seed) const {
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (!claims[i].check->formula.mentions_ending()) continue;
    const Truth truth = results[i].readings[seed].truth;
    if (truth == Truth::kUnknown) continue;
    const bool holds = (truth == Truth::kTrue) == claims[i].expected;
    if (!holds || claims[i].expected) return true;
  }
  return false;
}

std::vector<CheckResult> CaseJudge::JudgeEnds(const ArmPlan& arm, const std::vector<Claim>& claims,
                                              const std::vector<CheckResult>& results) const {
  std::map<std::string, std::vector<int>> seeds_by_class;
  for (int seed = 0; seed < plan_.seed_count; ++seed) {
    const RunResult* run = FindRun(arm.name, seed);
    if (run == nullptr) continue;
    const std::string failure_class = ClassOfEnd(run->end);
    if (failure_class.empty()) continue;
    const bool may_be_claimed =
        run->end == RunEnd::kStalled || run->end == RunEnd::kFailed || run->end == RunEnd::kTimeout;
    if (may_be_claimed && EndIsClaimed(claims, results, seed)) continue;
    seeds_by_class[failure_class].push_back(seed);
  }
  std::vector<CheckResult> found;
  for (const auto& [failure_class, seeds] : seeds_by_class) {
    const RunResult& run = *FindRun(arm.name, seeds.front());
    CheckResult result;
    result.check = "end";
    result.arm = arm.name;
    result.file = plan_.scenario->file;
    result.failure_class = failure_class;
    result.disagree = static_cast<int>(seeds.size());
    result.message = "expected every run to complete, " + SeedList(seeds) + " did not";
    result.seen = "seed " + std::to_string(seeds.front()) + ": " + ToString(run.end);
    if (!run.detail.empty()) result.seen += ", " + run.detail;
    for (const RankExit& exit : run.exits) {
      if (exit.last_words.empty() || (exit.code == 0 && exit.signal == 0)) continue;
      result.seen += "; last words of rank " + std::to_string(exit.rank) + ": " + exit.last_words;
      break;
    }
    SetRerun(arm.name, seeds.front(), result);
    found.push_back(std::move(result));
  }
  return found;
}

}  // namespace

std::vector<CheckResult> JudgeArms(const CaseResults& results, const TargetDescription& target) {
  return CaseJudge(results, target).JudgeAll();
}

}  // namespace trainwreck
