#include "harness/judge/arm_judge.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "harness/formula/arms.h"
#include "harness/judge/case_judge.h"
#include "harness/judge/hook_failures.h"
#include "harness/judge/wording.h"

namespace trainwreck {
namespace {

using formula::Reading;
using formula::Truth;

std::string Describe(const ArmPlan& arm, const Claim& claim, const JudgedCheck& judged,
                     int allowed) {
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

}  // namespace

CaseJudge::CaseJudge(const CaseResults& results, const TargetDescription& target)
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
  FindAllSilenced();
}

void CaseJudge::FindAllSilenced() {
  for (const ArmPlan& arm : plan_.arms) {
    for (int seed = 0; seed < plan_.seed_count; ++seed) {
      const RunResult* run = FindRun(arm.name, seed);
      if (run == nullptr) continue;
      for (const InjectedFault& fault : arm.faults) {
        const auto failure = WhatSilenced(fault, run->trace, target_);
        if (!failure) continue;
        silenced_[{arm.name, seed}] = SentenceOf(fault, *failure);
        break;
      }
    }
  }
}

const std::string* CaseJudge::FindSilenced(const std::string& arm, int seed) const {
  const auto found = silenced_.find({arm, seed});
  return found == silenced_.end() ? nullptr : &found->second;
}

const std::string* CaseJudge::FindSilenced(const Check& check, const ArmPlan& arm, int seed) const {
  std::vector<std::string> names = {arm.name};
  bool reads_other_seeds = check.formula.reads_seeds();
  for (const std::string& name : check.formula.arms()) {
    reads_other_seeds |= name == formula::kOtherSeed;
    names.push_back(name == "control" ? arm.control : name);
  }
  for (const std::string& name : names) {
    for (int each = 0; each < plan_.seed_count; ++each) {
      if (each != seed && !reads_other_seeds) continue;
      if (const std::string* why = FindSilenced(name, each)) return why;
    }
  }
  return nullptr;
}

ArmsJudged CaseJudge::JudgeAll() {
  ReadFaultArm();
  std::vector<JudgedCheck> all;
  for (const ArmPlan& arm : plan_.arms) {
    if (arm.is_undo) continue;
    const std::vector<Claim> claims = ClaimsOf(plan_, arm);
    std::vector<JudgedCheck> of_arm;
    for (const Claim& claim : claims) of_arm.push_back(JudgeClaim(arm, claim));
    std::vector<JudgedCheck> ends = JudgeEnds(arm, claims, of_arm);
    if (HasToBeSound(arm)) of_arm.push_back(JudgeSignals(arm));
    for (JudgedCheck& broken : JudgeInvariants(arm, claims)) of_arm.push_back(std::move(broken));
    for (JudgedCheck& fired : JudgeFaults(arm)) of_arm.push_back(std::move(fired));
    std::move(of_arm.begin(), of_arm.end(), std::back_inserter(all));
    std::move(ends.begin(), ends.end(), std::back_inserter(all));
  }
  const LostSeeds lost = Lost(all);
  ArmsJudged judged;
  for (JudgedCheck& one : all) {
    if (!one.is_settled) Settle(lost, one);
    judged.checks.push_back(std::move(one.result));
  }
  if (!lost.too_many()) judged.tolerated_seeds = lost.Sorted();
  judged.invariants = std::move(invariants_);
  judged.is_silenced = !silenced_.empty();
  return judged;
}

const RunResult* CaseJudge::FindRun(const std::string& arm, int seed) const {
  auto seeds = results_.runs.find(arm);
  if (seeds == results_.runs.end()) return nullptr;
  auto found = seeds->second.find(seed);
  return found == seeds->second.end() ? nullptr : &found->second;
}

Reading CaseJudge::Read(const Check& check, const ArmPlan& arm, int seed) const {
  if (FindRun(arm.name, seed) == nullptr) {
    Reading missing;
    missing.seen = "the run was not made";
    return missing;
  }
  if (const std::string* why = FindSilenced(check, arm, seed)) return {.seen = *why};
  formula::Runs runs = RunsOf(arm, seed);
  if (check.formula.reads_seeds()) {
    for (int each = 0; each < plan_.seed_count; ++each) {
      if (FindRun(arm.name, each) == nullptr) return {.seen = "not all seeds were run"};
      runs.seeds.push_back(RunsOf(arm, each));
    }
  }
  return check.formula.Evaluate(runs, target_);
}

void CaseJudge::ReadFaultArm() {
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

bool CaseJudge::IsShown(const Claim& claim, int seed) const {
  const std::pair<std::string, int> key = {claim.check->name, seed};
  if (claim.role != CheckRole::kInvariant) return shown_.at(key);
  const auto truth = with_fault_.find(key);
  return truth != with_fault_.end() && truth->second == Truth::kFalse;
}

formula::Runs CaseJudge::RunsOf(const ArmPlan& arm, int seed) const {
  formula::Runs runs{traces_.at(seed).at(arm.name), traces_.at(seed), arm.control};
  if (plan_.scenario->repeats_seed) return runs;  // then there is no other seed
  const int next = (seed + 1) % plan_.seed_count;
  const bool is_made = next != seed && FindRun(arm.name, next) != nullptr;
  if (is_made) runs.arms[formula::kOtherSeed] = traces_.at(next).at(arm.name);
  return runs;
}

JudgedCheck CaseJudge::JudgeClaim(const ArmPlan& arm, const Claim& claim) const {
  const Check& check = *claim.check;
  JudgedCheck judged;
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

ArmsJudged JudgeArms(const CaseResults& results, const TargetDescription& target) {
  return CaseJudge(results, target).JudgeAll();
}

}  // namespace trainwreck
