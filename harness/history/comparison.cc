#include "harness/history/comparison.h"

#include <algorithm>

#include "harness/history/comparison_parts.h"
#include "harness/outcome/exit_status.h"

namespace trainwreck {
namespace {

using Environment = std::map<std::string, std::string>;

std::string OutcomeOf(const CaseRecord& record) {
  return OutcomeText(record.verdict, record.failure_class);
}

Direction DirectionOf(VerdictKind before, VerdictKind after) {
  const auto badness = [](VerdictKind verdict) {
    if (verdict == VerdictKind::kPass) return 0;
    return verdict == VerdictKind::kInconclusive ? 1 : 2;
  };
  // What is not run may hide anything.
  if (after == VerdictKind::kSkip) return Direction::kWorse;
  if (before == VerdictKind::kSkip) {
    return after == VerdictKind::kPass ? Direction::kBetter : Direction::kOther;
  }
  const int change = badness(after) - badness(before);
  if (change == 0) return Direction::kOther;
  return change > 0 ? Direction::kWorse : Direction::kBetter;
}

// Keys that only one side knows (an older version wrote less) are no difference.
std::map<std::string, std::pair<std::string, std::string>> Differences(const Environment& a,
                                                                       const Environment& b) {
  std::map<std::string, std::pair<std::string, std::string>> differences;
  for (const auto& [key, value] : a) {
    auto other = b.find(key);
    if (other != b.end() && other->second != value) differences[key] = {value, other->second};
  }
  return differences;
}

bool IsSameCode(const Record& a, const Record& b) {
  return !a.target_digest.empty() && a.target_digest == b.target_digest && a.commit == b.commit &&
         !a.is_dirty && !b.is_dirty;
}

Cause CauseOf(bool same_code, bool same_environment) {
  if (same_environment) return same_code ? Cause::kChance : Cause::kCode;
  return same_code ? Cause::kEnvironment : Cause::kEither;
}

const MarginRecord* FindMargin(const CaseRecord& record, const MarginRecord& like) {
  for (const MarginRecord& margin : record.margins) {
    if (margin.arm == like.arm && margin.check == like.check && margin.formula == like.formula &&
        margin.expected == like.expected && margin.unit == like.unit) {
      return &margin;
    }
  }
  return nullptr;
}

const CaseRecord* FindCase(const Record& record, const std::string& name) {
  for (const CaseRecord& one : record.cases) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

std::vector<std::string> ChangedChecks(const CaseRecord& a, const CaseRecord& b) {
  std::vector<std::string> texts;
  for (const MarginRecord& before : a.margins) {
    const MarginRecord* after = FindMargin(b, before);
    if (after == nullptr) continue;
    if (before.agree * after->seeds == after->agree * before.seeds) continue;
    texts.push_back("'" + before.check + "' in " + before.arm + ": as claimed in " +
                    std::to_string(before.agree) + " of " + std::to_string(before.seeds) +
                    " seeds -> " + std::to_string(after->agree) + " of " +
                    std::to_string(after->seeds));
  }
  return texts;
}

// By seed, the mean over the arms that both sides have, so that one seed is one witness.
using Measure = double TrainingRecord::*;
std::optional<RatioInterval> RatioOf(const CaseRecord& a, const CaseRecord& b, Measure measure,
                                     double confidence) {
  std::map<int, std::pair<double, double>> sums;
  for (const TrainingRecord& before : a.trainings) {
    for (const TrainingRecord& after : b.trainings) {
      if (before.arm != after.arm || before.seed != after.seed) continue;
      if (!(before.*measure > 0) || !(after.*measure > 0)) continue;
      sums[before.seed].first += before.*measure;
      sums[before.seed].second += after.*measure;
    }
  }
  BySeed by_seed_a, by_seed_b;
  for (const auto& [seed, sum] : sums) {
    by_seed_a[seed] = sum.first;
    by_seed_b[seed] = sum.second;
  }
  return PairedRatio(by_seed_a, by_seed_b, confidence);
}

Gate GateOf(const std::optional<RatioInterval>& ratio, double limit, bool comparable) {
  if (limit <= 0) return Gate::kNone;
  if (!ratio || !comparable) return Gate::kUnknown;
  if (ratio->lo > limit) return Gate::kExceeded;
  return ratio->hi <= limit ? Gate::kWithin : Gate::kUnknown;
}

void CompareSpeed(const CaseRecord& a, const CaseRecord& b, Comparison& comparison) {
  const double confidence = comparison.options.shift.confidence;
  SpeedChange change;
  change.case_name = a.name;
  change.step_time = RatioOf(a, b, &TrainingRecord::step_seconds, confidence);
  change.memory = RatioOf(a, b, &TrainingRecord::peak_memory_bytes, confidence);
  if (!change.step_time && !change.memory) return;
  const bool comparable = comparison.speed_note.empty();
  change.step_time_gate = GateOf(change.step_time, comparison.options.max_slowdown, comparable);
  change.memory_gate = GateOf(change.memory, comparison.options.max_memory, comparable);
  comparison.speed.push_back(std::move(change));
}

std::string SpeedNote(const Comparison& comparison) {
  if (!comparison.environment.empty()) {
    const auto& [key, values] = *comparison.environment.begin();
    return "step times do not compare: " + key + " was " + values.first + ", is " + values.second;
  }
  if (comparison.a.cores != comparison.b.cores) {
    return "step times do not compare: " + std::to_string(comparison.a.cores) + " cores then, " +
           std::to_string(comparison.b.cores) + " now";
  }
  return "";
}

// Adds what `older` has and `newer` lacks.
void AddSamples(const CaseRecord& older, CaseRecord& newer) {
  for (const MarginRecord& margin : older.margins) {
    auto* found = const_cast<MarginRecord*>(FindMargin(newer, margin));
    if (found != nullptr) found->by_seed.insert(margin.by_seed.begin(), margin.by_seed.end());
  }
  for (const TrainingRecord& training : older.trainings) {
    const bool has = std::any_of(newer.trainings.begin(), newer.trainings.end(),
                                 [&](const TrainingRecord& other) {
                                   return other.arm == training.arm && other.seed == training.seed;
                                 });
    if (!has) newer.trainings.push_back(training);
  }
}

}  // namespace

const char* ToString(Cause cause) {
  switch (cause) {
    case Cause::kCode:
      return "code";
    case Cause::kEnvironment:
      return "environment";
    case Cause::kEither:
      return "code or environment";
    case Cause::kChance:
      return "neither code nor environment";
  }
  return "?";
}

const char* ToString(Direction direction) {
  switch (direction) {
    case Direction::kWorse:
      return "worse";
    case Direction::kBetter:
      return "better";
    case Direction::kOther:
      return "changed";
  }
  return "?";
}

bool MarginChange::is_worse() const { return is_different() && result.test.superiority < 0.5; }

int Comparison::CountVerdicts(Direction direction) const {
  return static_cast<int>(
      std::count_if(verdicts.begin(), verdicts.end(),
                    [&](const VerdictChange& change) { return change.direction == direction; }));
}

int Comparison::CountMargins(Answer answer) const {
  return static_cast<int>(
      std::count_if(margins.begin(), margins.end(), [&](const MarginChange& change) {
        return change.counts() && change.result.answer == answer;
      }));
}

Record Combine(const std::vector<Record>& newest_first) {
  Record combined = newest_first.front();
  combined.cases.clear();
  for (const Record& record : newest_first) {
    if (record.target_digest != combined.target_digest) continue;
    for (auto one = record.cases.rbegin(); one != record.cases.rend(); ++one) {
      auto* newer = const_cast<CaseRecord*>(FindCase(combined, one->name));
      if (newer == nullptr) {
        combined.cases.push_back(*one);
      } else if (newer->scenario_digest == one->scenario_digest &&
                 newer->environment == one->environment) {
        AddSamples(*one, *newer);
      }
    }
  }
  std::sort(combined.cases.begin(), combined.cases.end(),
            [](const CaseRecord& x, const CaseRecord& y) { return x.name < y.name; });
  return combined;
}

namespace {

// A seed that both sides have run, and whose margin is a number on one side only, was stopped
// earlier on the other: it tells nothing.
BySeed KnownOnBoth(const MarginRecord& margin, const MarginRecord& other, const CaseRecord& of) {
  BySeed kept;
  for (const auto& [seed, value] : margin.by_seed) {
    const bool was_run = std::any_of(of.trainings.begin(), of.trainings.end(),
                                     [&, seed = seed](const TrainingRecord& training) {
                                       return training.seed == seed && training.arm == margin.arm;
                                     });
    if (!was_run || other.by_seed.contains(seed)) kept[seed] = value;
  }
  return kept;
}

// Margins that both sides have as numbers.
void CollectMargins(const CaseRecord& a, const CaseRecord& b, Cause cause, Comparison& comparison,
                    std::vector<std::pair<BySeed, BySeed>>& samples) {
  for (const MarginRecord& before : a.margins) {
    const MarginRecord* after = FindMargin(b, before);
    if (after == nullptr) {
      ++comparison.margins_without_numbers;
      continue;
    }
    BySeed in_a = KnownOnBoth(before, *after, b), in_b = KnownOnBoth(*after, before, a);
    if (in_a.empty() || in_b.empty()) {
      ++comparison.margins_without_numbers;
      continue;
    }
    MarginChange change{.case_name = a.name,
                        .arm = before.arm,
                        .check = before.check,
                        .formula = before.formula,
                        .expected = before.expected,
                        .unit = before.unit,
                        .seeds_a = static_cast<int>(in_a.size()),
                        .seeds_b = static_cast<int>(in_b.size()),
                        .result = {},
                        .cause = cause,
                        .by_clock = IsOfTheClock(before)};
    comparison.margins.push_back(std::move(change));
    samples.emplace_back(std::move(in_a), std::move(in_b));
  }
}

// The margins that count are one family of tests, the others another one: what is only shown must
// not take evidence from what counts.
void TestMargins(const std::vector<std::pair<BySeed, BySeed>>& samples, Comparison& comparison) {
  for (bool counts : {true, false}) {
    std::vector<std::pair<BySeed, BySeed>> family;
    std::vector<MarginChange*> members;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (comparison.margins[i].counts() != counts) continue;
      family.push_back(samples[i]);
      members.push_back(&comparison.margins[i]);
    }
    const std::vector<ShiftResult> results = CompareShifts(family, comparison.options.shift);
    for (std::size_t i = 0; i < results.size(); ++i) members[i]->result = results[i];
  }
}

void CompareCases(const CaseRecord& a, const CaseRecord& b, Comparison& comparison,
                  std::vector<std::pair<BySeed, BySeed>>& samples) {
  ++comparison.cases;
  const bool changed = a.scenario_digest != b.scenario_digest;
  const bool same_environment = Differences(a.environment, b.environment).empty();
  const Cause cause = CauseOf(comparison.same_code && !changed, same_environment);
  if (OutcomeOf(a) != OutcomeOf(b)) {
    comparison.verdicts.push_back({.case_name = a.name,
                                   .before = OutcomeOf(a),
                                   .after = OutcomeOf(b),
                                   .direction = DirectionOf(a.verdict, b.verdict),
                                   .cause = cause,
                                   .scenario_changed = changed,
                                   .checks = ChangedChecks(a, b)});
  }
  FindLostChecks(a, b, comparison);
  if (same_environment) CompareArms(a, b, cause, comparison);
  if (changed) {
    comparison.changed_scenarios.push_back(a.name);
    return;
  }
  CollectMargins(a, b, cause, comparison, samples);
  CompareSpeed(a, b, comparison);
}

}  // namespace

Comparison Compare(Record a, Record b, const CompareOptions& options) {
  Comparison comparison;
  comparison.options = options;
  comparison.same_code = IsSameCode(a, b);
  comparison.a = std::move(a);
  comparison.b = std::move(b);
  for (const CaseRecord& before : comparison.a.cases) {
    const CaseRecord* after = FindCase(comparison.b, before.name);
    if (after == nullptr) continue;
    for (const auto& [key, values] : Differences(before.environment, after->environment)) {
      comparison.environment.emplace(key, values);
    }
  }
  comparison.speed_note = SpeedNote(comparison);
  std::vector<std::pair<BySeed, BySeed>> samples;
  for (const CaseRecord& before : comparison.a.cases) {
    const CaseRecord* after = FindCase(comparison.b, before.name);
    if (after != nullptr) {
      CompareCases(before, *after, comparison, samples);
    } else {
      comparison.only_in_a.push_back(before.name);
    }
  }
  for (const CaseRecord& after : comparison.b.cases) {
    if (FindCase(comparison.a, after.name) == nullptr) {
      comparison.only_in_b.push_back(after.name);
    }
  }
  TestMargins(samples, comparison);
  return comparison;
}

bool Comparison::is_changed() const {
  return !bits.empty() || !verdicts.empty() || !changed_scenarios.empty() ||
         CountMargins(Answer::kDifferent) > 0;
}

int ExitCode(const Comparison& comparison) {
  if (comparison.cases == 0) return kExitNothingRun;
  bool is_worse = !comparison.lost_checks.empty();
  bool is_unknown = comparison.CountMargins(Answer::kUnknown) > 0;
  is_worse |= !comparison.only_in_a.empty() && !comparison.options.only_common;
  auto blame = [&](Cause cause) {
    const bool by_code = cause == Cause::kCode || cause == Cause::kChance;
    (by_code ? is_worse : is_unknown) = true;
  };
  for (const VerdictChange& change : comparison.verdicts) {
    if (change.direction == Direction::kWorse) blame(change.cause);
  }
  for (const MarginChange& change : comparison.margins) {
    if (change.is_worse()) blame(change.cause);
  }
  for (const SpeedChange& change : comparison.speed) {
    for (Gate gate : {change.step_time_gate, change.memory_gate}) {
      is_worse |= gate == Gate::kExceeded;
      is_unknown |= gate == Gate::kUnknown;
    }
  }
  if (is_worse) return kExitFailed;
  if (is_unknown) return kExitInconclusive;
  const bool is_news = comparison.is_changed() && !comparison.options.accept_changes;
  return is_news ? kExitChanged : kExitPassed;
}

}  // namespace trainwreck
