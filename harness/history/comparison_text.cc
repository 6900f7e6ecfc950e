// A comparison for people: the console's text and Markdown for a pull request.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "harness/history/comparison.h"
#include "harness/outcome/exit_status.h"
#include "harness/report/text.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

constexpr std::size_t kMostUnknown = 12;  // in Markdown, and on the console unless verbose
constexpr std::size_t kMostChecks = 4;
constexpr std::size_t kMostCases = 20;
// What a machine says of itself; all else in an environment are versions of what the program loads.
const std::set<std::string> kMachineKeys = {"cpu", "cpu_capability", "device", "driver", "threads"};

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
  if (!change.counts() && !change.result.identical) {
    return change.by_clock ? "by the clock, only shown" : "by chance: the same program";
  }
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
    return std::make_tuple(!change.counts(), answer, !change.is_worse(), change.result.test.p);
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
  int identical = 0, shown = 0;
  for (const MarginChange& change : comparison.margins) {
    identical += change.counts() && change.result.identical;
    shown += !change.counts();
  }
  std::string text = fmt::format(
      "{} compared: {} different, {} same ({} of them bit for bit), {} unknown",
      static_cast<int>(comparison.margins.size()) - shown,
      comparison.CountMargins(Answer::kDifferent), comparison.CountMargins(Answer::kSame),
      identical, comparison.CountMargins(Answer::kUnknown));
  if (shown > 0 && comparison.same_code && comparison.environment.empty()) {
    return fmt::format("{} of the same program: none is tested", comparison.margins.size());
  }
  if (shown > 0) text += fmt::format("; {} by the clock or of the same program", shown);
  return text;
}

// How many arms and cases `changes` are in: "4 arms of 2 cases".
std::string ArmsText(const std::vector<const BitsChange*>& changes) {
  std::set<std::string> cases;
  for (const BitsChange* change : changes) cases.insert(change->case_name);
  return Plural(static_cast<int>(changes.size()), "arm") + " of " +
         Plural(static_cast<int>(cases.size()), "case");
}

// "4 arms of 2 cases have other bits, 1 arm of 1 case ends otherwise"; empty: none do.
std::string ChangedArmsText(const Comparison& comparison) {
  std::vector<const BitsChange*> other_bits, other_ends;
  for (const BitsChange& change : comparison.bits) {
    (change.seeds.empty() ? other_ends : other_bits).push_back(&change);
  }
  std::string text;
  if (!other_bits.empty()) {
    text = ArmsText(other_bits) + (other_bits.size() == 1 ? " has" : " have") + " other bits";
  }
  if (!other_ends.empty()) {
    text += (text.empty() ? "" : ", ") + ArmsText(other_ends) +
            (other_ends.size() == 1 ? " ends" : " end") + " otherwise";
  }
  return text;
}

std::string BitsText(const Comparison& comparison) {
  std::string text = ChangedArmsText(comparison);
  if (!text.empty()) {
    const bool is_chance =
        std::any_of(comparison.bits.begin(), comparison.bits.end(),
                    [](const BitsChange& change) { return change.cause == Cause::kChance; });
    if (is_chance) {
      text +=
          ", though program and environment are the same: it does not repeat itself, or "
          "something that it reads or loads has changed";
    }
    return text;
  }
  if (comparison.arms_compared > 0) {
    return Plural(comparison.arms_compared, "arm") + " compared, all the same";
  }
  return comparison.environment.empty() ? "not compared: none are recorded"
                                        : "not compared: the environment differs";
}

std::string ArmText(const BitsChange& change) {
  std::vector<std::string> parts;
  if (!change.seeds.empty()) {
    parts.push_back(fmt::format("{} of {}", change.seeds.size(), Plural(change.compared, "seed")));
    if (change.first >= 0 && change.first == change.last) {
      parts.push_back(fmt::format("from step {}", change.first));
    } else if (change.first >= 0) {
      parts.push_back(fmt::format("from one of steps {} to {}", change.first, change.last));
    }
  }
  if (change.other_signals) parts.push_back("other signals");
  for (const std::string& end : change.ends) parts.push_back(end);
  return change.arm + " (" + fmt::format("{}", fmt::join(parts, ", ")) + ")";
}

// A case a line: its name, and its arms.
std::vector<std::pair<std::string, std::string>> BitsByCase(const Comparison& comparison) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const BitsChange& change : comparison.bits) {
    if (!lines.empty() && lines.back().first == change.case_name) {
      lines.back().second += ", " + ArmText(change);
    } else {
      lines.emplace_back(change.case_name, ArmText(change));
    }
  }
  return lines;
}

std::string OtherVersions(const Comparison& comparison) {
  std::string keys;
  for (const auto& [key, values] : comparison.environment) {
    if (!kMachineKeys.contains(key)) keys += (keys.empty() ? "" : ", ") + CleanText(key);
  }
  return keys;
}

std::string CodeText(const Comparison& comparison) {
  const Record &a = comparison.a, &b = comparison.b;
  if (a.target_digest.empty() || b.target_digest.empty()) return "not known to be the same";
  if (a.target_digest != b.target_digest) return "differs";
  // The same files do not make the same program when what they load is another version.
  const std::string versions = OtherVersions(comparison);
  const std::string what = versions.empty() ? "the same program" : "the same files";
  const std::string other = versions.empty() ? "" : ", with other versions: " + versions;
  if (comparison.same_code) return what + " and commit" + other;
  return what + (a.commit != b.commit ? ", another commit" : ", with uncommitted changes") + other;
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
                    CleanText(Join(comparison.changed_scenarios)));
  }
  if (!comparison.only_in_a.empty()) {
    notes.push_back(
        (comparison.options.only_common ? "only in A: " : "gone, only in A: ") +
        CleanText(Join(comparison.only_in_a)) +
        (comparison.options.only_common ? "" : " (--only-common leaves out what B did not run)"));
  }
  if (!comparison.only_in_b.empty())
    notes.push_back("only in B: " + CleanText(Join(comparison.only_in_b)));
  if (comparison.arms_without_bits > 0 && comparison.arms_compared > 0) {
    notes.push_back(Plural(comparison.arms_without_bits, "arm") +
                    " could not be compared bit by bit: not recorded, or no step in common");
  }
  if (!comparison.hint.empty()) notes.push_back(comparison.hint);
  return notes;
}

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
