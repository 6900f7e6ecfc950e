// A comparison for people: Markdown for a pull request.
#include <fmt/format.h>

#include <algorithm>

#include "harness/history/comparison.h"
#include "harness/history/comparison_words.h"
#include "harness/outcome/exit_status.h"
#include "harness/report/text.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

std::string Cell(const std::string& text) { return EscapeMarkdown(text); }

std::string MarkdownBits(const Comparison& comparison) {
  const auto lines = BitsByCase(comparison);
  if (lines.empty()) return "";
  std::string text = "\n| case | arms with other bits |\n|---|---|\n";
  for (std::size_t i = 0; i < std::min(lines.size(), kMostCases); ++i) {
    text += "| " + Cell(lines[i].first) + " | " + Cell(lines[i].second) + " |\n";
  }
  if (lines.size() > kMostCases) text += fmt::format("\n{} more.\n", lines.size() - kMostCases);
  return text;
}

std::string MarkdownMargins(const Comparison& comparison) {
  std::string rows;
  std::size_t unknown = 0, left_out = 0;
  for (const MarginChange* change : Ordered(comparison)) {
    const ShiftResult& result = change->result;
    if (result.answer == Answer::kSame || !change->counts()) continue;
    if (result.answer == Answer::kUnknown && ++unknown > kMostUnknown) {
      ++left_out;
      continue;
    }
    rows += fmt::format("| {} | {} | {:.4g} | {:.4g} | {} | {:.2f} | {:.2g} |\n",
                        AnswerText(*change), Cell(NameOf(*change)), result.median_a,
                        result.median_b, Cell(ShiftText(result) + UnitText(*change)),
                        result.test.superiority, result.adjusted_p);
  }
  if (rows.empty()) return "";
  std::string text =
      "\n| margin | check | A | B | shift | P(B > A) | p, corrected |\n"
      "|---|---|---:|---:|---|---:|---:|\n" +
      rows;
  if (left_out > 0) text += fmt::format("\n{} more are unknown.\n", left_out);
  return text;
}

}  // namespace

std::string MarkdownText(const Comparison& comparison) {
  const int status = ExitCode(comparison);
  const char* icon = status == kExitPassed    ? "✅"
                     : status == kExitFailed  ? "❌"
                     : status == kExitChanged ? "🔶"
                                              : "❔";
  std::string text = fmt::format("## {} trainwreck: {}\n\n", icon, Summary(comparison));
  text += "| | |\n|---|---|\n| A | " + Cell(Describe(comparison.a)) + " |\n| B | " +
          Cell(Describe(comparison.b)) + " |\n| code | " + CodeText(comparison) +
          " |\n| environment | " + Cell(EnvironmentText(comparison)) + " |\n| bits | " +
          Cell(BitsText(comparison)) + " |\n| verdicts | " + VerdictCounts(comparison) +
          " |\n| margins | " + MarginCounts(comparison) + " |\n";
  text += MarkdownBits(comparison);
  if (!comparison.verdicts.empty()) {
    text += "\n| verdict | case | A | B | cause |\n|---|---|---|---|---|\n";
  }
  for (const VerdictChange& change : comparison.verdicts) {
    text += fmt::format("| {} | {} | {} | {} | {}{} |\n", ToString(change.direction),
                        Cell(change.case_name), Cell(change.before), Cell(change.after),
                        ToString(change.cause),
                        change.scenario_changed ? " (the scenario changed)" : "");
  }
  for (const LostChecks& lost : comparison.lost_checks) {
    text += "\n" + Cell(lost.case_name + " no longer checks " + Join(lost.checks)) + "\n";
  }
  text += MarkdownMargins(comparison);
  if (!comparison.speed.empty()) {
    text +=
        "\n<details><summary>Step time and peak memory, B / A</summary>\n\n"
        "| case | step time | peak memory |\n|---|---|---|\n";
    for (const SpeedChange& change : comparison.speed) {
      text += fmt::format("| {} | {} {} | {} {} |\n", Cell(change.case_name),
                          Cell(IntervalText(change.step_time)), GateText(change.step_time_gate),
                          Cell(IntervalText(change.memory)), GateText(change.memory_gate));
    }
    text += "\n</details>\n";
    if (!comparison.speed_note.empty()) text += "\n" + Cell(comparison.speed_note) + "\n";
  }
  for (const std::string& note : Notes(comparison)) text += "\n" + Cell(note) + "\n";
  return text;
}

}  // namespace trainwreck
