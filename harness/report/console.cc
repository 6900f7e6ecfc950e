#include "harness/report/console.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>
#include <string_view>

#include "harness/report/in_common.h"
#include "harness/report/text.h"

namespace trainwreck {
namespace {

constexpr int kSparkWidth = 40;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool LocaleIsUtf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string value = UpperCase(Environment(name));
    if (value.empty()) continue;
    return value.find("UTF-8") != std::string::npos || value.find("UTF8") != std::string::npos;
  }
  return false;
}

std::string Padded(const std::string& text, std::size_t width) {
  return text.size() >= width ? text : text + std::string(width - text.size(), ' ');
}

std::string RightPadded(const std::string& text, std::size_t width) {
  return text.size() >= width ? text : std::string(width - text.size(), ' ') + text;
}

// Text from outside in one line.
std::string OneLine(const std::string& text) {
  std::string line = CleanText(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::replace(line.begin(), line.end(), '\t', ' ');
  return line;
}

const char* ColorOf(VerdictKind verdict) {
  switch (verdict) {
    case VerdictKind::kPass:
      return "\x1b[32m";
    case VerdictKind::kFail:
      return "\x1b[31m";
    case VerdictKind::kSkip:
      return "\x1b[36m";
    case VerdictKind::kInconclusive:
      return "\x1b[33m";
    case VerdictKind::kError:
      return "\x1b[35m";
  }
  return "";
}

std::string Columns(const std::string& failure_class, const std::string& seconds,
                    const std::string& margin, const std::string& unit, const std::string& name) {
  return " " + Padded(failure_class, 19) + RightPadded(seconds, 8) + RightPadded(margin, 11) + " " +
         Padded(unit, 8) + name;
}

}  // namespace

ConsoleOptions ConsoleOptions::ForStream(int fd, ColorMode color) {
  ConsoleOptions options;
  const bool terminal = isatty(fd) == 1;
  const bool dumb = Environment("TERM") == "dumb";
  options.color = color == ColorMode::kAlways || (color == ColorMode::kAuto && terminal && !dumb &&
                                                  Environment("NO_COLOR").empty());
  options.progress = ProgressLine::ForStream(fd) == ProgressLine::Mode::kOverwritten;
  options.log = !options.progress;
  if (terminal) options.width = WindowWidth(fd);
  options.window = fd;
  options.unicode = LocaleIsUtf8();
  return options;
}

ConsoleReport::ConsoleReport(std::ostream& out, ConsoleOptions options)
    : out_(out),
      options_(options),
      progress_(out,
                options.progress ? ProgressLine::Mode::kOverwritten
                : options.log    ? ProgressLine::Mode::kLog
                                 : ProgressLine::Mode::kSilent,
                options.window) {}

std::string ConsoleReport::Paint(VerdictKind verdict, const std::string& text) const {
  return options_.color ? ColorOf(verdict) + text + "\x1b[0m" : text;
}

void ConsoleReport::Begin(const RunInfo& info, int cases, int runs) {
  out_ << "# trainwreck " << info.version << "  target: " << OneLine(info.target)
       << (info.target_note.empty() ? "" : " (" + OneLine(info.target_note) + ")")
       << (info.devices.empty() ? "" : "  device: " + OneLine(info.devices))
       << "  isolation: " << info.isolation << "  cores: " << info.cores << "\n";
  out_ << "# cases: " << cases << "  runs: " << runs;
  if (!info.output_dir.empty()) out_ << "  output: " << OneLine(info.output_dir);
  out_ << "\n#\n# " << Padded("verdict", 10)
       << Columns("class", "seconds", "margin", "unit", "case") << "\n";
  out_.flush();
}

void ConsoleReport::Progress(int running, int done, int total) {
  progress_.Show(running, done, total);
}

void ConsoleReport::Finished(const Verdict& verdict) {
  progress_.Clear();
  std::string margin = "-", unit = "-";
  if (verdict.worst_margin) {
    margin = FormatMargin(*verdict.worst_margin, formula::Unit::kPlain);
    const std::string name = formula::ToString(verdict.worst_margin_unit);
    if (!name.empty()) unit = name;
  }
  out_ << Paint(verdict.verdict, Padded(UpperCase(ToString(verdict.verdict)), 12))
       << Columns(verdict.failure_class.empty() ? "-" : verdict.failure_class.text(),
                  FormatSeconds(verdict.wall_seconds), margin, unit, OneLine(verdict.case_name))
       << "\n";
  const bool went_wrong =
      verdict.verdict != VerdictKind::kPass && verdict.verdict != VerdictKind::kSkip;
  if (verdict.expected_limit || (went_wrong && verdict.checks.empty()) ||
      verdict.failure_class == FailureClass::kUnexpectedPass) {
    out_ << "    " << OneLine(verdict.reason) << "\n";
  }
  if (went_wrong) PrintFailures(verdict);
  for (const std::string& remedy : verdict.undo_remedies) {
    if (options_.verbose || went_wrong) {
      out_ << "    remedy '" << OneLine(remedy) << "' only undoes the fault: not run\n";
    }
  }
  if (went_wrong || options_.verbose) {
    for (const std::string& remark : verdict.remarks)
      out_ << "    note: " << OneLine(remark) << "\n";
    PrintArms(verdict);
  }
  PrintNotes(verdict, /*all=*/went_wrong || options_.verbose);
  out_.flush();
}

void ConsoleReport::PrintFailures(const Verdict& verdict) {
  for (const CheckResult& check : verdict.checks) {
    if (check.failure_class.empty()) continue;
    out_ << "  " << Paint(verdict.verdict, OneLine(FailureHeading(check))) << "\n";
    for (const auto& [label, text] : FailureLines(check)) {
      out_ << "    " << Padded(label, 10) << OneLine(text) << "\n";
    }
  }
}

void ConsoleReport::PrintArms(const Verdict& verdict) {
  if (verdict.arms.empty()) return;
  std::size_t name_width = 7;
  std::vector<const std::vector<double>*> all;
  for (const ArmSummary& arm : verdict.arms) {
    name_width = std::max(name_width, arm.arm.size());
    all.push_back(&arm.loss);
  }
  const SparkScale scale = FitScale(all);
  const int fixed = static_cast<int>(name_width) + 40;
  const int width = std::clamp(options_.width - fixed, 10, kSparkWidth);
  out_ << "    " << Padded("arm", name_width) << "  kind       status     final loss  loss"
       << (scale.log ? " (log scale)" : "") << "\n";
  for (const ArmSummary& arm : verdict.arms) {
    out_ << "    " << Padded(OneLine(arm.arm), name_width) << "  " << Padded(ToString(arm.kind), 9)
         << "  " << Padded(ToString(arm.status), 9) << "  "
         << RightPadded(arm.median_seed < 0 ? "-" : FormatNumber(arm.final_loss), 10) << "  "
         << Sparkline(arm.loss, width, options_.unicode, scale) << "\n";
    if (!arm.ended.empty()) {
      out_ << "    " << std::string(name_width, ' ') << "  ended: " << OneLine(arm.ended) << "\n";
    }
  }
}

void ConsoleReport::PrintNotes(const Verdict& verdict, bool all) {
  for (const Note& note : verdict.notes) {
    if (all || IsForAllReaders(note)) out_ << "    " << OneLine(NoteLine(note)) << "\n";
  }
}

// What a target can be given so that more cases can be run.
void ConsoleReport::PrintRoles(const std::vector<Verdict>& verdicts) {
  constexpr std::string_view kRole = "role:", kValue = "value:";
  std::map<std::string, int> cases, misfits;
  for (const Verdict& verdict : verdicts) {
    const std::string& lacking = verdict.failure_class.lacking();
    if (lacking.starts_with(kRole)) ++cases[lacking.substr(kRole.size())];
    if (lacking.starts_with(kValue)) ++misfits[lacking.substr(kValue.size())];
  }
  for (const auto& [key, count] : misfits) {
    out_ << "# " << count << (count == 1 ? " case does" : " cases do") << " not fit the value of '"
         << key << "' in the recipe of the target: trainwreck validate says why\n";
  }
  for (const auto& [role, count] : cases) {
    out_ << "# " << count << (count == 1 ? " case needs" : " cases need")
         << " a recipe key with the role '" << role << "': add 'role: " << role
         << "' to that key of the target\n";
  }
}

// Asked of so many runs, and of them: so many times broken, not decided, excused.
void ConsoleReport::PrintInvariants(const std::vector<Verdict>& verdicts) {
  std::set<std::string> names;
  std::map<std::string, int> broken;  // in so many cases
  int held = 0, open = 0, excused = 0;
  for (const Verdict& verdict : verdicts) {
    for (const InvariantCount& count : verdict.invariants) {
      names.insert(count.name);
      held += count.held;
      open += count.open;
      excused += count.excused;
      if (count.broken > 0 && !verdict.expected_limit) ++broken[count.name];
    }
  }
  if (names.empty()) return;
  out_ << "# " << names.size() << (names.size() == 1 ? " invariant: " : " invariants: ") << held
       << " times held";
  if (open > 0) out_ << ", " << open << " not decided";
  if (excused > 0) out_ << ", " << excused << " broken by the fault alone";
  for (const auto& [name, cases] : broken) {
    out_ << "; '" << name << "' broken in " << cases << (cases == 1 ? " case" : " cases");
  }
  out_ << "\n";
}

void ConsoleReport::End(const std::vector<Verdict>& verdicts, const RunInfo& info,
                        const std::vector<std::string>& files) {
  progress_.Clear();
  out_ << "#\n# " << verdicts.size() << (verdicts.size() == 1 ? " case:" : " cases:");
  bool any = false;
  for (const VerdictInfo& info : AllVerdicts()) {
    const auto count = std::count_if(verdicts.begin(), verdicts.end(), [&](const Verdict& verdict) {
      return verdict.verdict == info.id;
    });
    if (count == 0) continue;
    out_ << (any ? ", " : " ") << Paint(info.id, std::to_string(count) + " " + info.name);
    any = true;
  }
  if (!any) out_ << " nothing was executed";
  std::map<std::string, int> limits;  // what happened where a scenario expects it
  for (const Verdict& verdict : verdicts) {
    if (verdict.expected_limit) ++limits[ToString(verdict.seen_verdict)];
  }
  for (auto limit = limits.begin(); limit != limits.end(); ++limit) {
    out_ << (limit == limits.begin() ? " (known limits: " : ", ") << limit->second << " "
         << limit->first << (std::next(limit) == limits.end() ? ")" : "");
  }
  out_ << "; " << info.runs << " runs, wall " << FormatSeconds(info.wall_seconds) << " s, cpu "
       << FormatSeconds(info.cpu_seconds) << " s\n";
  PrintInvariants(verdicts);
  PrintRoles(verdicts);
  for (const std::string& line : InCommon(verdicts)) out_ << "# " << OneLine(line) << "\n";
  for (const std::string& file : files) out_ << "# report: " << OneLine(file) << "\n";
  out_.flush();
}

}  // namespace trainwreck
