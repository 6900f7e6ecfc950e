// A comparison for people: the console's text and Markdown for a pull request.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/history/comparison.h"
#include "harness/report/text.h"

namespace trainwreck {
namespace {

constexpr std::size_t kMostUnknown = 12;  // in Markdown, and on the console unless verbose
constexpr std::size_t kMostChecks = 4;

std::string Plural(int count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string Describe(const Record& record) {
  std::string text =
      record.id > 0 ? fmt::format("run {}", record.id) : CleanText(record.output_dir);
  text += ", " + CleanText(record.started_utc);
  if (!record.commit.empty()) {
    text += ", commit " + CleanText(record.commit.substr(0, 10)) + (record.is_dirty ? "*" : "");
  }
  text += ", " + CleanText(record.target);
  if (!record.target_digest.empty()) text += " (" + record.target_digest.substr(0, 8) + ")";
  return text;
}

std::string IntervalText(const std::optional<RatioInterval>& ratio) {
  if (!ratio) return "-";
  return ratio->pairs < 2
             ? fmt::format("{:.3f} [one pair]", ratio->ratio)
             : fmt::format("{:.3f} [{:.3f}, {:.3f}]", ratio->ratio, ratio->lo, ratio->hi);
}

const char* GateText(Gate gate) {
  switch (gate) {
    case Gate::kExceeded:
      return "worse";
    case Gate::kUnknown:
      return "unknown";
    case Gate::kWithin:
      return "within";
    case Gate::kNone:
      break;
  }
  return "";
}

std::string AnswerText(const MarginChange& change) {
  switch (change.result.answer) {
    case Answer::kSame:
      return change.result.identical ? "same, bit for bit" : "same";
    case Answer::kDifferent:
      return change.is_worse() ? "different: worse" : "different: better";
    case Answer::kUnknown:
      return fmt::format("unknown: {} more {} needed", change.result.more_seeds,
                         change.result.more_seeds == 1 ? "seed" : "seeds");
  }
  return "?";
}

std::string ShiftText(const ShiftResult& result) {
  if (result.identical) return "0";
  if (!result.shift) return "-";
  return fmt::format("{:+.4g} [{:+.4g}, {:+.4g}]", result.shift->estimate, result.shift->lo,
                     result.shift->hi);
}

std::string NameOf(const MarginChange& change) {
  return change.case_name + ": '" + change.check + "' in " + change.arm;
}

std::string UnitText(const MarginChange& change) {
  return change.unit == "plain" ? "" : " " + change.unit;
}

// Worst first: what is different, then what is unknown by its evidence, then the rest.
std::vector<const MarginChange*> Ordered(const Comparison& comparison) {
  std::vector<const MarginChange*> margins;
  for (const MarginChange& change : comparison.margins) margins.push_back(&change);
  auto rank = [](const MarginChange& change) {
    const int answer = change.result.answer == Answer::kDifferent ? 0
                       : change.result.answer == Answer::kUnknown ? 1
                                                                  : 2;
    return std::make_tuple(answer, !change.is_worse(), change.result.test.p);
  };
  std::stable_sort(
      margins.begin(), margins.end(),
      [&](const MarginChange* x, const MarginChange* y) { return rank(*x) < rank(*y); });
  return margins;
}

std::string VerdictCounts(const Comparison& comparison) {
  return fmt::format("{} compared: {} worse, {} better, {} otherwise changed, {} the same",
                     comparison.cases, comparison.CountVerdicts(Direction::kWorse),
                     comparison.CountVerdicts(Direction::kBetter),
                     comparison.CountVerdicts(Direction::kOther),
                     comparison.cases - static_cast<int>(comparison.verdicts.size()));
}

std::string MarginCounts(const Comparison& comparison) {
  const auto identical =
      std::count_if(comparison.margins.begin(), comparison.margins.end(),
                    [](const MarginChange& change) { return change.result.identical; });
  return fmt::format("{} compared: {} different, {} same ({} of them bit for bit), {} unknown",
                     comparison.margins.size(), comparison.CountMargins(Answer::kDifferent),
                     comparison.CountMargins(Answer::kSame), identical,
                     comparison.CountMargins(Answer::kUnknown));
}

std::string CodeText(const Comparison& comparison) {
  if (comparison.same_code) return "the same program and commit";
  if (!comparison.a.target_digest.empty() &&
      comparison.a.target_digest == comparison.b.target_digest) {
    return "the same program, another commit";
  }
  return "differs";
}

std::string EnvironmentText(const Comparison& comparison) {
  if (comparison.environment.empty()) return "the same, as far as it is known";
  std::string text;
  for (const auto& [key, values] : comparison.environment) {
    text += (text.empty() ? "" : "; ") + CleanText(key) + " " + CleanText(values.first) + " -> " +
            CleanText(values.second);
  }
  return text;
}

std::string Join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + CleanText(name);
  return text;
}

// What belongs under the tables.
std::vector<std::string> Notes(const Comparison& comparison) {
  std::vector<std::string> notes;
  if (comparison.margins_without_numbers > 0) {
    notes.push_back(Plural(comparison.margins_without_numbers, "margin") +
                    " could not be compared: a run that is stopped early knows only an interval "
                    "('trainwreck run --full' goes on)");
  }
  if (!comparison.changed_scenarios.empty()) {
    notes.push_back("claim something else now, so that only verdicts were compared: " +
                    Join(comparison.changed_scenarios));
  }
  if (!comparison.only_in_a.empty()) notes.push_back("only in A: " + Join(comparison.only_in_a));
  if (!comparison.only_in_b.empty()) notes.push_back("only in B: " + Join(comparison.only_in_b));
  if (!comparison.hint.empty()) notes.push_back(comparison.hint);
  return notes;
}

std::string ConsoleMargins(const Comparison& comparison, bool verbose) {
  std::string text;
  std::size_t unknown = 0, left_out = 0;
  for (const MarginChange* change : Ordered(comparison)) {
    if (change->result.answer == Answer::kSame && !verbose) continue;
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
    if (result.answer == Answer::kDifferent) {
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

std::string Cell(const std::string& text) { return EscapeMarkdown(text); }

std::string MarkdownMargins(const Comparison& comparison) {
  std::string rows;
  std::size_t unknown = 0, left_out = 0;
  for (const MarginChange* change : Ordered(comparison)) {
    const ShiftResult& result = change->result;
    if (result.answer == Answer::kSame) continue;
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

std::string Summary(const Comparison& comparison) {
  if (comparison.cases == 0) return "no case in common: nothing was compared";
  int margins = 0, slower = 0, excused = 0;
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
  const int unknown = comparison.CountMargins(Answer::kUnknown);
  std::vector<std::string> parts;
  if (verdicts > 0) parts.push_back(Plural(verdicts, "verdict"));
  if (margins > 0) parts.push_back(Plural(margins, "margin"));
  if (slower > 0) parts.push_back("the speed or memory of " + Plural(slower, "case"));
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  }
  text = text.empty() ? "nothing got worse" : text + " got worse";
  if (excused > 0 && excused < verdicts + margins + slower) {
    text += fmt::format("; the environment may have done {} of that", excused);
  } else if (excused > 0) {
    text += comparison.same_code ? "; the environment did it, the code is the same"
                                 : "; code and environment both differ, so neither can be blamed";
  }
  if (unknown > 0) text += fmt::format("; {} unknown", Plural(unknown, "margin"));
  return text;
}

std::string ConsoleText(const Comparison& comparison, bool verbose) {
  std::string text = "# A: " + Describe(comparison.a) + "\n# B: " + Describe(comparison.b) + "\n";
  text += "# code: " + CodeText(comparison) + "\n";
  text += "# environment: " + EnvironmentText(comparison) + "\n#\n";
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
  text += "# margins: " + MarginCounts(comparison) + "\n";
  text += ConsoleMargins(comparison, verbose);
  text += ConsoleSpeed(comparison);
  for (const std::string& note : Notes(comparison)) text += "# " + note + "\n";
  return text + "#\n# " + Summary(comparison) + "\n";
}

std::string MarkdownText(const Comparison& comparison) {
  const int status = ExitCode(comparison);
  const char* icon = status == 0 ? "✅" : status == 1 ? "❌" : "❔";
  std::string text = fmt::format("## {} trainwreck: {}\n\n", icon, Summary(comparison));
  text += "| | |\n|---|---|\n| A | " + Cell(Describe(comparison.a)) + " |\n| B | " +
          Cell(Describe(comparison.b)) + " |\n| code | " + CodeText(comparison) +
          " |\n| environment | " + Cell(EnvironmentText(comparison)) + " |\n| verdicts | " +
          VerdictCounts(comparison) + " |\n| margins | " + MarginCounts(comparison) + " |\n";
  if (!comparison.verdicts.empty()) {
    text += "\n| verdict | case | A | B | cause |\n|---|---|---|---|---|\n";
  }
  for (const VerdictChange& change : comparison.verdicts) {
    text += fmt::format("| {} | {} | {} | {} | {}{} |\n", ToString(change.direction),
                        Cell(change.case_name), Cell(change.before), Cell(change.after),
                        ToString(change.cause),
                        change.scenario_changed ? " (the scenario changed)" : "");
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
