// What needs no statistics: which arms have other bits, which checks are gone, and which margins
// are readings of a clock.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "harness/history/comparison_parts.h"
#include "harness/launch/launcher.h"

namespace trainwreck {
namespace {

const TrainingRecord* FindTraining(const CaseRecord& record, const std::string& arm, int seed) {
  for (const TrainingRecord& training : record.trainings) {
    if (training.arm == arm && training.seed == seed) return &training;
  }
  return nullptr;
}

// A run that was stopped since all was known is as good as one that came to its end.
std::string EndOf(const TrainingRecord& training) {
  return FindRunEnd(training.end) == RunEnd::kDecided ? ToString(RunEnd::kCompleted) : training.end;
}

bool IsWhole(const TrainingRecord& training) {
  return FindRunEnd(training.end) == RunEnd::kCompleted;
}

bool IsSameNumber(double x, double y) {
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  return x == y && std::signbit(x) == std::signbit(y);
}

// Where a record is older than bits are, the last values of two whole runs tell nearly as much.
std::optional<BitsComparison> CompareLastValues(const TrainingRecord& a, const TrainingRecord& b) {
  if (!IsWhole(a) || !IsWhole(b)) return std::nullopt;
  std::optional<BitsComparison> result;
  for (const auto& [signal, value] : a.final_signals) {
    auto other = b.final_signals.find(signal);
    if (IsTimeOrMemory(signal) || other == b.final_signals.end()) continue;
    if (!result) result.emplace();
    if (!IsSameNumber(value, other->second)) result->first = result->last = 0;
  }
  return result;
}

std::optional<BitsComparison> CompareTrainings(const TrainingRecord& a, const TrainingRecord& b) {
  if (a.bits.steps <= 0 || b.bits.steps <= 0) return CompareLastValues(a, b);
  auto compared = CompareBits(a.bits, b.bits);
  // Two whole runs of which one has fewer steps.
  if (compared && compared->same() && IsWhole(a) && IsWhole(b) && a.bits.steps != b.bits.steps) {
    compared->first = std::min(a.bits.steps, b.bits.steps);
    compared->last = std::max(a.bits.steps, b.bits.steps) - 1;
  }
  return compared;
}

std::vector<std::string> ArmsOf(const CaseRecord& record) {
  std::vector<std::string> arms;
  for (const TrainingRecord& training : record.trainings) {
    if (std::find(arms.begin(), arms.end(), training.arm) == arms.end()) {
      arms.push_back(training.arm);
    }
  }
  return arms;
}

BitsChange CompareArm(const CaseRecord& a, const CaseRecord& b, const std::string& arm) {
  BitsChange change;
  change.case_name = a.name;
  change.arm = arm;
  for (const TrainingRecord& before : a.trainings) {
    if (before.arm != arm) continue;
    const TrainingRecord* after = FindTraining(b, arm, before.seed);
    if (after == nullptr) continue;
    if (EndOf(before) != EndOf(*after)) {
      change.ends.push_back("seed " + std::to_string(before.seed) + ": " + EndOf(before) + " -> " +
                            EndOf(*after));
    }
    const auto compared = CompareTrainings(before, *after);
    if (!compared) continue;
    ++change.compared;
    if (compared->same()) continue;
    change.other_signals |= !compared->same_signals;
    const bool has_step = before.bits.steps > 0 && after->bits.steps > 0;
    if (has_step && (change.first < 0 || compared->first < change.first)) {
      change.first = compared->first;
      change.last = compared->last;
    }
    change.seeds.push_back(before.seed);
  }
  return change;
}

}  // namespace

void CompareArms(const CaseRecord& a, const CaseRecord& b, Cause cause, Comparison& comparison) {
  for (const std::string& arm : ArmsOf(a)) {
    BitsChange change = CompareArm(a, b, arm);
    change.cause = cause;
    ++(change.compared > 0 ? comparison.arms_compared : comparison.arms_without_bits);
    // The same program: how a run that goes wrong comes to its end may depend on the load.
    if (cause == Cause::kChance) change.ends.clear();
    if (change.seeds.empty() && change.ends.empty()) continue;
    comparison.bits.push_back(std::move(change));
  }
}

void FindLostChecks(const CaseRecord& a, const CaseRecord& b, Comparison& comparison) {
  if (b.verdict == VerdictKind::kSkip) return;  // that is worse already
  std::set<std::pair<std::string, std::string>> has;
  for (const MarginRecord& margin : b.margins) has.insert({margin.arm, margin.check});
  LostChecks lost;
  lost.case_name = a.name;
  for (const MarginRecord& margin : a.margins) {
    if (margin.check == kEndCheck) continue;  // there only when a run ended badly
    if (!has.insert({margin.arm, margin.check}).second) continue;
    lost.checks.push_back("'" + margin.check + "' in " + margin.arm);
  }
  if (!lost.checks.empty()) comparison.lost_checks.push_back(std::move(lost));
}

bool IsOfTheClock(const MarginRecord& margin) {
  if (margin.unit == "s") return true;
  std::string word;
  for (char c : margin.formula + ' ') {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
      word += c;
      continue;
    }
    if (word == "time" || (word.size() > 2 && word.ends_with("_s"))) return true;
    word.clear();
  }
  return false;
}

}  // namespace trainwreck
