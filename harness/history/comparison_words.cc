#include "harness/history/comparison_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "harness/report/text.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

// What a machine says of itself; all else in an environment are versions of what the program loads.
const std::set<std::string> kMachineKeys = {"cpu", "cpu_capability", "device", "driver", "threads"};

// How many arms and cases `changes` are in: "4 arms of 2 cases".
std::string ArmsText(const std::vector<const BitsChange*>& changes) {
  std::set<std::string> cases;
  for (const BitsChange* change : changes) cases.insert(change->case_name);
  return Plural(static_cast<int>(changes.size()), "arm") + " of " +
         Plural(static_cast<int>(cases.size()), "case");
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

std::string OtherVersions(const Comparison& comparison) {
  std::string keys;
  for (const auto& [key, values] : comparison.environment) {
    if (!kMachineKeys.contains(key)) keys += (keys.empty() ? "" : ", ") + CleanText(key);
  }
  return keys;
}

}  // namespace

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

}  // namespace trainwreck
