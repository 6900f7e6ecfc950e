// What is said of a check once all are judged: its class, its margin, the seed to look at.
#include <algorithm>
#include <limits>
#include <utility>

#include "harness/judge/case_judge.h"
#include "harness/judge/place.h"
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

bool ReadsReference(const std::string& text) {
  const auto parsed = formula::Formula::Parse(text);
  return parsed.formula && parsed.formula->arms().contains("reference");
}

}  // namespace

std::optional<double> SignedMargin(const Reading& reading, formula::Unit unit, bool expected) {
  const std::optional<Interval>& margin = reading.margins[static_cast<int>(unit)];
  if (!margin || reading.truth == Truth::kUnknown) return std::nullopt;
  return expected ? margin->lo : -margin->hi;
}

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

formula::Unit UnitOf(const Check& check, const std::vector<Reading>& readings) {
  if (check.min_margin) return check.min_margin->unit;
  const auto known = std::find_if(readings.begin(), readings.end(), [](const Reading& reading) {
    return reading.truth != Truth::kUnknown;
  });
  return known == readings.end() ? formula::Unit::kPlain : known->main_unit;
}

LostSeeds CaseJudge::Lost(const std::vector<JudgedCheck>& all) const {
  LostSeeds lost;
  lost.allowed = allowed();
  for (const JudgedCheck& one : all) {
    lost.broken.insert(one.tally.disagree.begin(), one.tally.disagree.end());
    lost.broken.insert(one.tally.weak.begin(), one.tally.weak.end());
    lost.open.insert(one.tally.unknown.begin(), one.tally.unknown.end());
    lost.open.insert(one.tally.unclear.begin(), one.tally.unclear.end());
  }
  for (int seed : lost.broken) lost.open.erase(seed);
  return lost;
}

// The class, the margin and the seed to look at, now that it is known how the whole case stands.
void CaseJudge::Settle(const LostSeeds& lost, JudgedCheck& judged) const {
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
  if (!result.failure_class.empty()) FindPlace(seed, result);
}

// Where a twin and control come apart, or a run and the reference that it must be equal to, in all
// that was recorded.
void CaseJudge::FindPlace(int seed, CheckResult& result) const {
  const auto arm = std::find_if(plan_.arms.begin(), plan_.arms.end(),
                                [&](const ArmPlan& one) { return one.name == result.arm; });
  const auto of_seed = traces_.find(seed);
  if (arm == plan_.arms.end() || of_seed == traces_.end()) return;
  const bool is_twin = result.failure_class == FailureClass::kTwinsDiffer;
  if (!is_twin && !(result.expected && ReadsReference(result.formula))) return;
  const auto run_of = [&](const std::string& name) {
    const auto run = of_seed->second.find(name);
    return run == of_seed->second.end() ? nullptr : run->second;
  };
  const RunTrace* run = run_of(arm->name);
  const RunTrace* other = run_of(is_twin ? arm->control : "reference");
  if (run == nullptr || other == nullptr) return;
  std::vector<const RunTrace*> draws;
  for (const ArmPlan& one : plan_.arms) {
    if (!is_twin || one.kind != ArmKind::kRounding) continue;
    if (const RunTrace* draw = run_of(one.name)) draws.push_back(draw);
  }
  std::vector<std::string> places;
  if (const auto place = FirstApart(*run, *other, draws, target_)) {
    places.push_back(ToString(*place));
    if (is_twin) result.suspects = SuspectsOf(*place, *arm->twin);
  }
  if (const auto state = FirstStateApart(*run, *other)) places.push_back(ToString(*state));
  result.place = Join(places, "; ");
}

void CaseJudge::SetRerun(const std::string& arm, int seed, CheckResult& result) const {
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

}  // namespace trainwreck
