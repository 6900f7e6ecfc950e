// report.html: one file that needs no network. The tables are plain HTML and can be read without
// JavaScript; page/*.js adds filters and the charts, from the pictures of the cases
// (harness/picture/picture.h).
#include <algorithm>
#include <map>

#include "harness/report/html_case.h"
#include "harness/report/html_page.h"
#include "harness/report/html_text.h"
#include "harness/report/in_common.h"
#include "harness/report/report.h"
#include "harness/report/text.h"

namespace trainwreck {
namespace {

struct Counted {
  std::map<VerdictKind, int> by_kind;
  int executed = 0, limits = 0;
};

Counted Count(const std::vector<Verdict>& verdicts) {
  Counted counted;
  for (const Verdict& verdict : verdicts) {
    ++counted.by_kind[verdict.verdict];
    counted.executed += verdict.verdict != VerdictKind::kSkip;
    counted.limits += verdict.expected_limit;
  }
  return counted;
}

std::string Heading(const std::vector<Verdict>& verdicts) {
  Counted counted = Count(verdicts);
  const int passed = counted.by_kind[VerdictKind::kPass];
  if (counted.executed == 0) return "no case was run";
  if (passed == counted.executed) {
    return passed == 1 ? "the case passed" : "all " + std::to_string(passed) + " cases passed";
  }
  return std::to_string(counted.executed - passed) + " of " + std::to_string(counted.executed) +
         " cases did not pass";
}

std::string HowItRan(const RunInfo& info) {
  std::string text = info.runs == 0 ? "Stored runs of " + info.target
                                    : std::to_string(info.runs) + " trainings of " + info.target +
                                          " in " + FormatSeconds(info.wall_seconds) + " s on " +
                                          std::to_string(info.cores) + " cores of " + info.host;
  text += ", " + info.started_utc;
  if (!info.devices.empty()) text += ", device " + info.devices;
  if (!info.commit.empty()) {
    text += ", commit " + info.commit.substr(0, 12) + (info.is_dirty ? " with changes" : "");
  }
  return text + ".";
}

std::string Header(const std::vector<Verdict>& verdicts, const RunInfo& info) {
  Counted counted = Count(verdicts);
  std::string html = "<p>" + Html(HowItRan(info)) + "</p><p class=counts>";
  for (const VerdictInfo& kind : AllVerdicts()) {
    const int count = counted.by_kind[kind.id];
    if (count == 0) continue;
    Verdict shown;
    shown.verdict = kind.id;
    const Sign sign = SignOf(shown);
    html += "<span class=\"chip " + std::string(sign.css_class) + "\" title=\"" +
            Html(kind.meaning) + "\">" + sign.symbol + " " + std::to_string(count) + " " +
            kind.name + "</span> ";
  }
  if (counted.limits > 0) {
    html += "<span class=\"chip limit\" title=\"they fail as their scenarios expect\">≈ " +
            std::to_string(counted.limits) + " of them known limits</span>";
  }
  html += "</p>";
  if (!info.command_line.empty()) {
    html += "<p><code class=copy>" + Html(info.command_line) + "</code></p>";
  }
  return html;
}

// What failed and why, in words, before anything else.
std::string Failures(const std::vector<Verdict>& verdicts) {
  std::string html;
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    const Verdict& verdict = verdicts[i];
    if (verdict.verdict == VerdictKind::kPass || verdict.verdict == VerdictKind::kSkip) continue;
    html += "<li>" + LinkTo(verdict, i) + " <b>" + Html(verdict.failure_class.text()) +
            "</b>: " + Html(verdict.reason);
    for (const CheckResult& check : verdict.checks) {
      if (check.failure_class.empty()) continue;
      if (verdict.reason.find(check.message) != std::string::npos) break;  // said already
      html += "<br><span class=why>" + Html(check.arm) + ", " + Html(check.check) + ": " +
              Html(check.message);
      if (!check.seen.empty()) html += "; " + Html(check.seen);
      html += "</span>";
      break;
    }
    html += "</li>";
  }
  if (html.empty()) return "";
  html =
      "<section aria-labelledby=h-failed><h2 id=h-failed>What failed, and why</h2><ul "
      "class=failed>" +
      html + "</ul>";
  for (const std::string& line : InCommon(verdicts)) html += "<p>" + Html(line) + "</p>";
  return html + "</section>";
}

// A line of signs for each family; what failed first, then the weakest margins.
std::string Grid(const std::vector<Verdict>& verdicts, const std::vector<std::size_t>& order) {
  std::map<std::string, std::string> cells;
  for (std::size_t i : order) {
    const Verdict& verdict = verdicts[i];
    const std::size_t slash = verdict.scenario.find('/');
    const Sign sign = SignOf(verdict);
    const std::string about = verdict.case_name + ": " + sign.meaning + MarginWords(verdict);
    cells[slash == std::string::npos ? "" : verdict.scenario.substr(0, slash)] +=
        "<a class=\"cell " + std::string(sign.css_class) + "\" href=\"#c" + std::to_string(i) +
        "\" title=\"" + Html(about) + "\" aria-label=\"" + Html(about) + "\">" + sign.symbol +
        "</a>";
  }
  std::string html =
      "<section aria-labelledby=h-grid><h2 id=h-grid>Cases by family</h2><p class=hint>In each "
      "line what failed comes first, then the weakest margins.</p><table class=grid>";
  for (const auto& [family, line] : cells) {
    html += "<tr><th scope=row>" + Html(family.empty() ? "(none)" : family) + "</th><td>" + line +
            "</td></tr>";
  }
  return html + "</table></section>";
}

// The list of cases; their data is added to `data`.
std::string Cases(const std::vector<Verdict>& verdicts, const std::vector<std::size_t>& order,
                  const RunInfo& info, std::string& data) {
  std::string html = "<section aria-labelledby=h-cases><h2 id=h-cases>Cases</h2>" +
                     FilterForm("Verdict", {{"weak", "what failed, weakest margins"},
                                            {"name", "name"},
                                            {"seconds", "run time"}}) +
                     "<div id=cases>";
  for (std::size_t i : order) {
    CaseHtml one = HtmlOf(verdicts[i], i, info);
    html += one.part;
    data += one.data;
  }
  return html + "</div></section>";
}

// The worst first: by verdict, then by margin.
std::vector<std::size_t> WorstFirst(const std::vector<Verdict>& verdicts) {
  std::vector<std::size_t> order(verdicts.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return WeaknessOf(verdicts[a]) < WeaknessOf(verdicts[b]);
  });
  return order;
}

std::string HtmlReport(const std::vector<Verdict>& verdicts, const RunInfo& info) {
  const std::vector<std::size_t> order = WorstFirst(verdicts);
  HtmlPage page = {.title = "trainwreck: " + Heading(verdicts),
                   .header = Header(verdicts, info),
                   .source = "verdicts.json",
                   .version = info.version};
  page.main = Failures(verdicts) + Grid(verdicts, order) + Cases(verdicts, order, info, page.data);
  return PageText(page);
}

const ReportRegistration registration(4, {.name = "html", .text = HtmlReport});
}  // namespace

}  // namespace trainwreck
