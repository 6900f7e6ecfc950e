// JUnit XML: a suite per scenario, a test case per point of its matrix. It keeps to what Jenkins,
// GitLab and GitHub's readers have in common (testdata/junit.xsd); a failure's type is its class.
#include <algorithm>
#include <map>

#include "harness/report/console.h"
#include "harness/report/report.h"
#include "harness/report/text.h"

namespace trainwreck {
namespace {

std::string Escape(const std::string& text) {
  std::string escaped;
  for (char c : CleanText(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\n':
        escaped += "&#10;";
        break;
      case '\t':
        escaped += "&#9;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string Attribute(const char* name, const std::string& value) {
  return std::string(" ") + name + "=\"" + Escape(value) + "\"";
}

// Readers want seconds as a plain decimal.
std::string Seconds(double seconds) {
  char text[40];
  std::snprintf(text, sizeof text, "%.3f", seconds);
  return text;
}

struct Totals {
  int tests = 0, failures = 0, errors = 0, skipped = 0;
  double seconds = 0;

  void Add(const Verdict& verdict) {
    ++tests;
    failures += verdict.verdict == VerdictKind::kFail;
    errors +=
        verdict.verdict == VerdictKind::kError || verdict.verdict == VerdictKind::kInconclusive;
    skipped += verdict.verdict == VerdictKind::kSkip;
    seconds += verdict.wall_seconds;
  }
  std::string Attributes() const {
    return Attribute("tests", std::to_string(tests)) +
           Attribute("failures", std::to_string(failures)) +
           Attribute("errors", std::to_string(errors)) +
           Attribute("skipped", std::to_string(skipped)) + Attribute("time", Seconds(seconds));
  }
};

void AddProperty(std::string& xml, const std::string& name, const std::string& value) {
  if (value.empty()) return;
  xml += "        <property" + Attribute("name", name) + Attribute("value", value) + "/>\n";
}

std::string Details(const Verdict& verdict) {
  std::string text = verdict.reason + "\n";
  for (const CheckResult& check : verdict.checks) {
    if (check.failure_class.empty()) continue;
    text += "\n" + FailureHeading(check) + "\n";
    for (const auto& [label, line] : FailureLines(check)) {
      text += "  " + label + ": " + line + "\n";
    }
  }
  return text;
}

void AddOutcome(std::string& xml, const Verdict& verdict) {
  if (verdict.verdict == VerdictKind::kSkip) {
    xml += "      <skipped" + Attribute("message", verdict.failure_class.text()) + "/>\n";
  } else if (verdict.verdict != VerdictKind::kPass) {
    const char* element = verdict.verdict == VerdictKind::kFail ? "failure" : "error";
    xml += std::string("      <") + element + Attribute("message", verdict.reason) +
           Attribute("type", verdict.failure_class.text()) + ">" + Escape(Details(verdict)) + "</" +
           element + ">\n";
  }
}

void AddCase(std::string& xml, const Verdict& verdict, const std::string& classname) {
  xml += "    <testcase" + Attribute("name", verdict.case_name) +
         Attribute("classname", classname) + Attribute("time", Seconds(verdict.wall_seconds)) +
         Attribute("file", verdict.file) + ">\n      <properties>\n";
  AddProperty(xml, "verdict", ToString(verdict.verdict));
  AddProperty(xml, "class", verdict.failure_class.text());
  AddProperty(xml, "title", verdict.title);
  AddProperty(xml, "point", verdict.point);
  if (verdict.expected_limit) AddProperty(xml, "expected_limit", verdict.reason);
  if (verdict.worst_margin) {
    AddProperty(xml, "worst_margin",
                FormatMargin(*verdict.worst_margin, verdict.worst_margin_unit));
  }
  for (const ArmSummary& arm : verdict.arms) {
    AddProperty(xml, "arm." + arm.arm,
                ToString(arm.status) + std::string(arm.ended.empty() ? "" : "; " + arm.ended));
  }
  xml += "      </properties>\n";
  AddOutcome(xml, verdict);
  xml += "    </testcase>\n";
}

}  // namespace

std::string JunitReport(const std::vector<Verdict>& verdicts, const RunInfo& info) {
  std::map<std::string, std::vector<const Verdict*>> suites;
  Totals all;
  for (const Verdict& verdict : verdicts) {
    suites[verdict.scenario].push_back(&verdict);
    all.Add(verdict);
  }
  std::string xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" +
                    Attribute("name", "trainwreck") + all.Attributes() + ">\n";
  // Readers reject the 'Z' that an ISO time may end with.
  std::string timestamp = info.started_utc;
  if (timestamp.ends_with('Z')) timestamp.pop_back();
  for (const auto& [scenario, cases] : suites) {
    Totals totals;
    for (const Verdict* verdict : cases) totals.Add(*verdict);
    std::string classname = scenario;
    std::replace(classname.begin(), classname.end(), '.', '_');
    std::replace(classname.begin(), classname.end(), '/', '.');
    xml += "  <testsuite" + Attribute("name", scenario) + totals.Attributes();
    if (!timestamp.empty()) xml += Attribute("timestamp", timestamp);
    if (!info.host.empty()) xml += Attribute("hostname", info.host);
    xml += Attribute("file", cases.front()->file) + ">\n    <properties>\n";
    AddProperty(xml, "trainwreck", info.version);
    AddProperty(xml, "target", info.target);
    AddProperty(xml, "isolation", info.isolation);
    AddProperty(xml, "output", info.output_dir);
    xml += "    </properties>\n";
    for (const Verdict* verdict : cases) AddCase(xml, *verdict, classname);
    xml += "  </testsuite>\n";
  }
  return xml + "</testsuites>\n";
}

namespace {
const ReportRegistration registration(2, {.name = "junit", .text = JunitReport});
}  // namespace

}  // namespace trainwreck
