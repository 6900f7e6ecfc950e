// A comparison for people: the console's text.
#include <fmt/format.h>

#include <algorithm>

#include "harness/history/comparison.h"
#include "harness/history/comparison_words.h"
#include "harness/report/text.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

constexpr std::size_t kMostChecks = 4;

std::string ConsoleBits(const Comparison& comparison, bool verbose) {
  std::string text = "# bits: " + BitsText(comparison) + "\n";
  const auto lines = BitsByCase(comparison);
  const std::size_t shown = verbose ? lines.size() : std::min(lines.size(), kMostCases);
  for (std::size_t i = 0; i < shown; ++i) {
    text += "other bits  " + CleanText(lines[i].first + ": " + lines[i].second) + "\n";
  }
  if (shown < lines.size()) text += fmt::format("# {} more: -v lists them\n", lines.size() - shown);
  return text;
}

std::string ConsoleMargins(const Comparison& comparison, bool verbose) {
  std::string text;
  std::size_t unknown = 0, left_out = 0;
  for (const MarginChange* change : Ordered(comparison)) {
    if ((change->result.answer == Answer::kSame || change->cause == Cause::kChance) && !verbose) {
      continue;
    }
    // What the clock moved is worth a line where it stands out.
    if (change->by_clock && change->result.answer == Answer::kUnknown && !verbose) continue;
    if (change->result.answer == Answer::kUnknown && ++unknown > kMostUnknown && !verbose) {
      ++left_out;
      continue;
    }
    const ShiftResult& result = change->result;
    text += fmt::format("{}  {}\n", AnswerText(*change), CleanText(NameOf(*change)));
    text += fmt::format("    margin {:.4g} -> {:.4g}{}  shift {}  noise {:.3g}\n", result.median_a,
                        result.median_b, UnitText(*change), ShiftText(result), result.noise);
    if (result.identical) continue;
    text += fmt::format("    P(B > A) = {:.2f}  p = {:.2g}  corrected {:.2g}  seeds {} and {}",
                        result.test.superiority, result.test.p, result.adjusted_p, change->seeds_a,
                        change->seeds_b);
    if (change->is_different()) {
      text += fmt::format("  cause: {}", ToString(change->cause));
    }
    text += "\n";
  }
  if (left_out > 0) text += fmt::format("# {} more unknown: -v lists them\n", left_out);
  return text;
}

std::string ConsoleSpeed(const Comparison& comparison) {
  if (comparison.speed.empty()) return "";
  std::string text = "# speed, B / A of pairs of runs with the same arm and seed\n";
  if (!comparison.speed_note.empty()) text += "# " + CleanText(comparison.speed_note) + "\n";
  text += fmt::format("# {:<30} {:<32} case\n", "step time", "peak memory");
  for (const SpeedChange& change : comparison.speed) {
    auto cell = [](const std::optional<RatioInterval>& ratio, Gate gate) {
      return IntervalText(ratio) + (gate == Gate::kNone ? "" : std::string(" ") + GateText(gate));
    };
    text += fmt::format("{:<32} {:<32} {}\n", cell(change.step_time, change.step_time_gate),
                        cell(change.memory, change.memory_gate), CleanText(change.case_name));
  }
  return text;
}

}  // namespace

std::string ConsoleText(const Comparison& comparison, bool verbose) {
  std::string text = "# A: " + Describe(comparison.a) + "\n# B: " + Describe(comparison.b) + "\n";
  text += "# code: " + CodeText(comparison) + "\n";
  text += "# environment: " + EnvironmentText(comparison) + "\n#\n";
  text += ConsoleBits(comparison, verbose);
  text += "# verdicts: " + VerdictCounts(comparison) + "\n";
  for (const VerdictChange& change : comparison.verdicts) {
    text += fmt::format("{:<8} {}  {} -> {}  cause: {}{}\n", ToString(change.direction),
                        CleanText(change.case_name), CleanText(change.before),
                        CleanText(change.after), ToString(change.cause),
                        change.scenario_changed ? " (the scenario changed)" : "");
    for (std::size_t i = 0; i < std::min(change.checks.size(), kMostChecks); ++i) {
      text += "    " + CleanText(change.checks[i]) + "\n";
    }
  }
  for (const LostChecks& lost : comparison.lost_checks) {
    text += fmt::format("lost     {}  no longer checked: {}\n", CleanText(lost.case_name),
                        Join(lost.checks));
  }
  text += "# margins: " + MarginCounts(comparison) + "\n";
  text += ConsoleMargins(comparison, verbose);
  text += ConsoleSpeed(comparison);
  for (const std::string& note : Notes(comparison)) text += "# " + note + "\n";
  return text + "#\n# " + Summary(comparison) + "\n";
}

}  // namespace trainwreck
