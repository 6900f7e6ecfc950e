// A comparison for people: in one line.
#include <fmt/format.h>

#include "harness/history/comparison.h"
#include "harness/history/comparison_words.h"

namespace trainwreck {
namespace {

// What got worse, as its kinds; `excused` counts what the environment may have done.
std::vector<std::string> WorseParts(const Comparison& comparison, int& excused, int& total) {
  int margins = 0, slower = 0;
  auto is_excused = [](Cause cause) {
    return cause == Cause::kEnvironment || cause == Cause::kEither;
  };
  const int verdicts = comparison.CountVerdicts(Direction::kWorse);
  for (const VerdictChange& change : comparison.verdicts) {
    excused += change.direction == Direction::kWorse && is_excused(change.cause);
  }
  for (const MarginChange& change : comparison.margins) {
    margins += change.is_worse();
    excused += change.is_worse() && is_excused(change.cause);
  }
  for (const SpeedChange& change : comparison.speed) {
    slower += change.step_time_gate == Gate::kExceeded || change.memory_gate == Gate::kExceeded;
  }
  total = verdicts + margins + slower;
  std::vector<std::string> parts;
  if (verdicts > 0) parts.push_back(Plural(verdicts, "verdict"));
  if (margins > 0) parts.push_back(Plural(margins, "margin"));
  if (slower > 0) parts.push_back("the speed or memory of " + Plural(slower, "case"));
  return parts;
}

// What changed and is not worse, as clauses.
std::vector<std::string> OtherChanges(const Comparison& comparison) {
  std::vector<std::string> clauses;
  auto add = [&](int count, const std::string& noun, const std::string& what) {
    if (count > 0) clauses.push_back(Plural(count, noun) + " " + what);
  };
  if (!comparison.bits.empty()) clauses.push_back(ChangedArmsText(comparison));
  add(comparison.CountVerdicts(Direction::kBetter), "verdict", "got better");
  add(comparison.CountVerdicts(Direction::kOther), "verdict", "changed");
  int better = 0;
  for (const MarginChange& change : comparison.margins) {
    better += change.is_different() && !change.is_worse();
  }
  add(better, "margin", "got better");
  const auto claims = static_cast<int>(comparison.changed_scenarios.size());
  if (claims > 0) {
    clauses.push_back(Plural(claims, "case") + (claims == 1 ? " claims" : " claim") +
                      " something else");
  }
  add(comparison.CountMargins(Answer::kUnknown), "margin", "unknown");
  return clauses;
}

}  // namespace

std::string Summary(const Comparison& comparison) {
  if (comparison.cases == 0) return "no case in common: nothing was compared";
  int excused = 0, total = 0;
  const std::vector<std::string> parts = WorseParts(comparison, excused, total);
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  }
  if (!text.empty()) text += " got worse";
  auto add = [&](const std::string& clause) { text += (text.empty() ? "" : "; ") + clause; };
  if (excused > 0 && excused < total) {
    add(fmt::format("the environment may have done {} of that", excused));
  } else if (excused > 0) {
    add(comparison.same_code ? "the environment did it, the code is the same"
                             : "code and environment both differ, so neither can be blamed");
  }
  const auto gone = static_cast<int>(comparison.only_in_a.size());
  if (gone > 0 && !comparison.options.only_common) {
    add(Plural(gone, "case") + (gone == 1 ? " is" : " are") + " gone");
  }
  if (!comparison.lost_checks.empty()) {
    add(Plural(static_cast<int>(comparison.lost_checks.size()), "case") + " lost checks");
  }
  const std::vector<std::string> changes = OtherChanges(comparison);
  if (text.empty()) text = changes.empty() ? "the same" : "nothing got worse";
  for (const std::string& change : changes) add(change);
  return text;
}

}  // namespace trainwreck
