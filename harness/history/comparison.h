// Two sides of the history against each other: which arms have other bits, which verdicts flipped,
// which cases and checks are gone, which margins moved beyond the noise of seeds, how step time and
// memory changed, and whether code or environment can be the cause. docs/guide/history.md says how
// each answer is found.
//
//   const Comparison comparison = Compare(Combine({a}), Combine({b}), {});
//   std::cout << ConsoleText(comparison, false);
//   return ExitCode(comparison);
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/history/record.h"
#include "harness/history/shift.h"
#include "harness/protocol/json.h"

namespace trainwreck {

struct CompareOptions {
  ShiftOptions shift;
  double max_slowdown = 0;      // a case whose step time grew by more is worse; 0: only shown
  double max_memory = 0;        // the same for its peak memory
  bool only_common = false;     // cases that B lacks do not count
  bool accept_changes = false;  // only what got worse counts for the exit status
};

// The possible causes of a change. kChance: the target gives other results each time.
enum class Cause { kCode, kEnvironment, kEither, kChance };
const char* ToString(Cause cause);

enum class Direction { kWorse, kBetter, kOther };
const char* ToString(Direction direction);

struct VerdictChange {
  std::string case_name;
  std::string before;  // "pass", "fail/symptom_absent"
  std::string after;
  Direction direction = Direction::kOther;
  Cause cause = Cause::kCode;
  bool scenario_changed = false;    // it does not claim the same any more
  std::vector<std::string> checks;  // "'learns' in control: 5 of 5 seeds -> 2 of 5"
};

// An arm whose runs are not the same bit for bit, over the steps that both sides have.
struct BitsChange {
  std::string case_name;
  std::string arm;
  Cause cause = Cause::kCode;
  int compared = 0;        // seeds
  std::vector<int> seeds;  // those with other bits
  int first = -1;          // the first difference lies in steps [first, last]; -1: not known
  int last = -1;
  bool other_signals = false;     // signals came or went
  std::vector<std::string> ends;  // "seed 3: completed -> stalled"
};

struct LostChecks {
  std::string case_name;
  std::vector<std::string> checks;  // "'learns' in control"
};

struct MarginChange {
  std::string case_name;
  std::string arm;
  std::string check;
  std::string formula;
  bool expected = true;
  std::string unit;
  int seeds_a = 0;
  int seeds_b = 0;
  ShiftResult result;
  Cause cause = Cause::kCode;
  bool by_clock = false;  // the load of the machine moves it, too
  // Whether the answer says something about the program. If both sides have the same program, only
  // chance moves a margin, and load moves those of the clock.
  bool counts() const { return !by_clock && cause != Cause::kChance; }
  bool is_different() const { return counts() && result.answer == Answer::kDifferent; }
  bool is_worse() const;  // different, and towards flipping
};

enum class Gate { kNone, kWithin, kExceeded, kUnknown };

struct SpeedChange {
  std::string case_name;
  std::optional<RatioInterval> step_time;  // B / A
  std::optional<RatioInterval> memory;
  Gate step_time_gate = Gate::kNone;
  Gate memory_gate = Gate::kNone;
};

struct Comparison {
  Record a;  // their cases as they were compared
  Record b;
  CompareOptions options;
  int cases = 0;                 // that both sides have
  std::vector<BitsChange> bits;  // of cases with the same environment
  int arms_compared = 0;         // bit by bit
  int arms_without_bits = 0;     // without bits on a side, or without a common seed
  std::vector<LostChecks> lost_checks;
  std::vector<VerdictChange> verdicts;
  std::vector<MarginChange> margins;  // of cases that claim the same on both sides
  int margins_without_numbers = 0;    // on a side: intervals and unknowns
  std::vector<SpeedChange> speed;
  std::string speed_note;  // why the limits cannot be judged; may be empty
  bool same_code = false;
  std::map<std::string, std::pair<std::string, std::string>> environment;  // that differs: A, B
  std::vector<std::string> only_in_a;
  std::vector<std::string> only_in_b;
  std::vector<std::string> changed_scenarios;
  std::string hint;  // how to tell the causes apart; may be empty

  bool is_changed() const;  // anything is known to differ, for better or worse
  int CountVerdicts(Direction direction) const;
  int CountMargins(Answer answer) const;  // of those that count
};

// One side from several invocations of one program, the newest first. A case has its newest
// verdict, and the newest sample of each seed: a seed that was run twice is no independent sample.
// Only samples with the newest target, environment and claims are added.
Record Combine(const std::vector<Record>& newest_first);

Comparison Compare(Record a, Record b, const CompareOptions& options);

// The exit status: 0 the same, 1 something got worse, 4 no case in common, 5 unknown: seeds are
// missing, or what got worse may be the environment's doing; 8 something changed, and nothing is
// known to be worse.
int ExitCode(const Comparison& comparison);

// "1 verdict and 2 margins got worse"
std::string Summary(const Comparison& comparison);

// The comparison for the console. With `verbose`, margins that are the same are listed too.
std::string ConsoleText(const Comparison& comparison, bool verbose);
std::string MarkdownText(const Comparison& comparison);
// {"schema": "trainwreck/comparison", "version": 1, ...}, see docs/guide/history.md.
Json ToJson(const Comparison& comparison);

}  // namespace trainwreck
