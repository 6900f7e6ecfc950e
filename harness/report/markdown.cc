// A Markdown summary: the cases by family at a glance, those that did not pass with their details,
// and the others folded away.
#include <map>

#include "harness/report/console.h"
#include "harness/report/report.h"
#include "harness/report/text.h"

namespace trainwreck {
namespace {

// A step summary of GitHub holds 1 MiB; what is longer would be dropped whole.
constexpr std::size_t kMaxTextBytes = 900'000;
constexpr int kSparkWidth = 32;

// A block that nothing in it can close.
std::string Fenced(const std::string& text) {
  const std::string clean = CleanText(text);
  std::string fence = "```";
  while (clean.find(fence) != std::string::npos) fence += '`';
  return fence + "text\n" + clean + (clean.ends_with('\n') ? "" : "\n") + fence + "\n";
}

const char* Icon(VerdictKind verdict) {
  switch (verdict) {
    case VerdictKind::kPass:
      return "✅";
    case VerdictKind::kFail:
      return "❌";
    case VerdictKind::kSkip:
      return "⏭️";
    case VerdictKind::kInconclusive:
      return "❔";
    case VerdictKind::kError:
      return "⚠️";
  }
  return "";
}

// A line for each family with the sign of each of its cases: how it went, in one look.
std::string Families(const std::vector<Verdict>& verdicts) {
  struct Family {
    std::string signs;
    int passed = 0, executed = 0;
  };
  std::map<std::string, Family> families;
  for (const Verdict& verdict : verdicts) {
    Family& family = families[verdict.scenario.substr(0, verdict.scenario.find('/'))];
    family.signs += Icon(verdict.verdict);
    family.passed += verdict.verdict == VerdictKind::kPass;
    family.executed += verdict.verdict != VerdictKind::kSkip;
  }
  if (verdicts.size() < 2) return "";
  std::string text = "| family | passed | cases |\n|---|---:|---|\n";
  for (const auto& [name, family] : families) {
    text += "| " + EscapeMarkdown(name) + " | " + std::to_string(family.passed) + " of " +
            std::to_string(family.executed) + " | " + family.signs + " |\n";
  }
  return text + "\n";
}

constexpr const char* kTableHead =
    "| | case | verdict | worst margin | run time (s) |\n|---|---|---|---:|---:|\n";

std::string Row(const Verdict& verdict) {
  const std::string margin =
      verdict.worst_margin ? FormatMargin(*verdict.worst_margin, verdict.worst_margin_unit) : "";
  std::string outcome = ToString(verdict.verdict);
  if (!verdict.failure_class.empty()) outcome += " / " + verdict.failure_class.text();
  if (verdict.expected_limit) outcome += " (known limit)";
  return std::string("| ") + Icon(verdict.verdict) + " | " + EscapeMarkdown(verdict.case_name) +
         " | " + EscapeMarkdown(outcome) + " | " + EscapeMarkdown(margin) + " | " +
         FormatSeconds(verdict.wall_seconds) + " |\n";
}

std::string Arms(const Verdict& verdict) {
  if (verdict.arms.empty()) return "";
  std::vector<const std::vector<double>*> all;
  for (const ArmSummary& arm : verdict.arms) all.push_back(&arm.loss);
  const SparkScale scale = FitScale(all);
  std::string text = "| arm | kind | status | final loss | loss |\n|---|---|---|---:|---|\n";
  for (const ArmSummary& arm : verdict.arms) {
    const std::string spark = Sparkline(arm.loss, kSparkWidth, true, scale);
    text += "| " + EscapeMarkdown(arm.arm) + " | " + ToString(arm.kind) + " | " +
            ToString(arm.status) + " | " + FormatNumber(arm.final_loss) + " | " +
            (spark.empty() ? "" : "`" + spark + "`") + " |\n";
  }
  text += "\n";
  for (const ArmSummary& arm : verdict.arms) {
    if (arm.ended.empty()) continue;
    text += "- " + EscapeMarkdown(arm.arm) + " ended: " + EscapeMarkdown(arm.ended) + "\n";
  }
  return text + "\n";
}

// Reason, arms, remarks and failed checks.
std::string Body(const Verdict& verdict) {
  std::string text = EscapeMarkdown(verdict.reason) + "\n\n" + Arms(verdict);
  for (const std::string& remark : verdict.remarks) text += "- " + EscapeMarkdown(remark) + "\n";
  if (!verdict.remarks.empty()) text += "\n";
  for (const CheckResult& check : verdict.checks) {
    if (check.failure_class.empty()) continue;
    std::string block = FailureHeading(check) + "\n";
    for (const auto& [label, line] : FailureLines(check)) block += label + ": " + line + "\n";
    text += Fenced(block);
    text += "\n";
  }
  return text;
}

std::string Details(const Verdict& verdict, bool is_open) {
  return std::string(is_open ? "<details open>" : "<details>") + "<summary>" +
         EscapeMarkdown(verdict.case_name) + ": " + EscapeMarkdown(verdict.failure_class.text()) +
         "</summary>\n\n" + Body(verdict) + "</details>\n\n";
}

// Notes for all readers: those of runs, or those of arms that were left out.
std::string Notes(const std::vector<Verdict>& verdicts, bool of_runs, const std::string& heading) {
  std::string text;
  for (const Verdict& verdict : verdicts) {
    for (const Note& note : verdict.notes) {
      if ((note.seeds > 0) != of_runs || !IsForAllReaders(note)) continue;
      text += "- " + EscapeMarkdown(verdict.case_name + ", " + NoteLine(note)) + "\n";
    }
  }
  return text.empty() ? "" : heading + ":\n\n" + text + "\n";
}

}  // namespace

std::string CaseMarkdown(const Verdict& verdict) {
  return "**" + UpperCase(ToString(verdict.verdict)) + "** " + EscapeMarkdown(verdict.case_name) +
         ": " + EscapeMarkdown(verdict.title) + "\n\n" + Body(verdict);
}

std::string MarkdownReport(const std::vector<Verdict>& verdicts, const RunInfo& info) {
  int passed = 0, skipped = 0;
  for (const Verdict& verdict : verdicts) {
    passed += verdict.verdict == VerdictKind::kPass;
    skipped += verdict.verdict == VerdictKind::kSkip;
  }
  const int executed = static_cast<int>(verdicts.size()) - skipped;
  std::string text = "## trainwreck: " + std::to_string(passed) + " of " +
                     std::to_string(executed) + " cases passed";
  if (skipped > 0) text += ", " + std::to_string(skipped) + " skipped";
  text += "\n\n" + std::to_string(info.runs) + " trainings of " + EscapeMarkdown(info.target) +
          " in " + FormatSeconds(info.wall_seconds) + " s on " + std::to_string(info.cores) +
          " cores\n\n";
  text += Families(verdicts);
  std::string wrong, right;
  for (const Verdict& verdict : verdicts) {
    const bool is_fine =
        verdict.verdict == VerdictKind::kPass || verdict.verdict == VerdictKind::kSkip;
    (is_fine ? right : wrong) += Row(verdict);
  }
  if (!wrong.empty()) text += kTableHead + wrong + "\n";
  if (!right.empty()) {
    text += "<details><summary>Cases that passed or were skipped</summary>\n\n" +
            std::string(kTableHead) + right + "\n</details>\n\n";
  }
  text += Notes(verdicts, false, "Not run, because the target lacks a key for it") +
          Notes(verdicts, true, "Strange, though no scenario asks about it");
  int left_out = 0;
  bool is_first = true;  // its picture is seen without a click
  for (const Verdict& verdict : verdicts) {
    if (verdict.verdict == VerdictKind::kPass || verdict.verdict == VerdictKind::kSkip) continue;
    const std::string details = Details(verdict, /*is_open=*/is_first);
    is_first = false;
    if (text.size() + details.size() > kMaxTextBytes) {
      ++left_out;
    } else {
      text += details;
    }
  }
  if (left_out > 0) {
    text += "Details of " + std::to_string(left_out) + " more cases are in verdicts.json.\n";
  }
  return text;
}

namespace {
const ReportRegistration registration(3, {.name = "markdown", .text = MarkdownReport});
}  // namespace

}  // namespace trainwreck
