#include "harness/history/comparison.h"

#include <algorithm>
#include <set>

namespace trainwreck {
namespace {

using Environment = std::map<std::string, std::string>;

std::string OutcomeOf(const CaseRecord& record) {
  return record.verdict + (record.failure_class.empty() ? "" : "/" + record.failure_class);
}

Direction DirectionOf(const std::string& before, const std::string& after) {
  auto badness = [](const std::string& verdict) {
    if (verdict == "pass") return 0;
    return verdict == "inconclusive" ? 1 : 2;
  };
  if (before == "skip" || after == "skip") return Direction::kOther;
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

bool MarginChange::is_worse() const {
  return result.answer == Answer::kDifferent && result.test.superiority < 0.5;
}

int Comparison::CountVerdicts(Direction direction) const {
  return static_cast<int>(
      std::count_if(verdicts.begin(), verdicts.end(),
                    [&](const VerdictChange& change) { return change.direction == direction; }));
}

int Comparison::CountMargins(Answer answer) const {
  return static_cast<int>(
      std::count_if(margins.begin(), margins.end(),
                    [&](const MarginChange& change) { return change.result.answer == answer; }));
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

// Margins that both sides have as numbers; the change's result is filled in for all at once.
void CollectMargins(const CaseRecord& a, const CaseRecord& b, Cause cause, Comparison& comparison,
                    std::vector<std::pair<BySeed, BySeed>>& samples) {
  for (const MarginRecord& before : a.margins) {
    const MarginRecord* after = FindMargin(b, before);
    if (after == nullptr || before.by_seed.empty() || after->by_seed.empty()) {
      ++comparison.margins_without_numbers;
      continue;
    }
    MarginChange change{.case_name = a.name,
                        .arm = before.arm,
                        .check = before.check,
                        .unit = before.unit,
                        .seeds_a = static_cast<int>(before.by_seed.size()),
                        .seeds_b = static_cast<int>(after->by_seed.size()),
                        .result = {},
                        .cause = cause};
    comparison.margins.push_back(std::move(change));
    samples.emplace_back(before.by_seed, after->by_seed);
  }
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
    if (after == nullptr) {
      comparison.only_in_a.push_back(before.name);
      continue;
    }
    ++comparison.cases;
    const bool changed = before.scenario_digest != after->scenario_digest;
    const Cause cause = CauseOf(comparison.same_code && !changed,
                                Differences(before.environment, after->environment).empty());
    if (OutcomeOf(before) != OutcomeOf(*after)) {
      comparison.verdicts.push_back({.case_name = before.name,
                                     .before = OutcomeOf(before),
                                     .after = OutcomeOf(*after),
                                     .direction = DirectionOf(before.verdict, after->verdict),
                                     .cause = cause,
                                     .scenario_changed = changed,
                                     .checks = ChangedChecks(before, *after)});
    }
    if (changed) {
      comparison.changed_scenarios.push_back(before.name);
      continue;
    }
    CollectMargins(before, *after, cause, comparison, samples);
    CompareSpeed(before, *after, comparison);
  }
  for (const CaseRecord& after : comparison.b.cases) {
    if (FindCase(comparison.a, after.name) == nullptr) {
      comparison.only_in_b.push_back(after.name);
    }
  }
  const std::vector<ShiftResult> results = CompareShifts(samples, options.shift);
  for (std::size_t i = 0; i < results.size(); ++i) comparison.margins[i].result = results[i];
  return comparison;
}

int ExitCode(const Comparison& comparison) {
  if (comparison.cases == 0) return 4;
  bool is_worse = false, is_unknown = comparison.CountMargins(Answer::kUnknown) > 0;
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
  if (is_worse) return 1;
  return is_unknown ? 5 : 0;
}

}  // namespace trainwreck
