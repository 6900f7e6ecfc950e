// Symptoms over faults: a table of signs, what holds in healthy runs, and which faults no symptom
// tells apart.
#include <fmt/format.h>

#include "harness/pages/pages.h"
#include "harness/pages/parts.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

struct CellCount {
  explicit CellCount(const Json& json)
      : holds(json.at(0)), fails(json.at(1)), unknown(json.at(2)) {}
  int known() const { return holds + fails; }
  int holds, fails, unknown;
};

struct CellSign {
  const char* sign;
  const char* css_class;
};

CellSign SignOfCount(const CellCount& count) {
  if (count.known() == 0) return {"–", "unknown"};
  if (count.holds > 0 && count.fails + count.unknown == 0) return {"●", "all"};
  if (count.holds > 0) return {"◐", "some"};
  return {"·", "none"};
}

std::string CellHtml(const Json& cell) {
  const CellCount fault(cell.at("fault")), control(cell.at("control"));
  const CellSign sign = SignOfCount(fault);
  std::string css_class = sign.css_class;
  if (cell.at("own").get<bool>()) css_class += " own";
  if (control.holds > 0) css_class += " alarm";
  return fmt::format("<td class=\"{}\" data-n=\"{} {} {} {} {} {}\">{}{}</td>", css_class,
                     fault.holds, fault.fails, fault.unknown, control.holds, control.fails,
                     control.unknown, sign.sign, control.holds > 0 ? "!" : "");
}

std::string NameOfSymptom(const Json& symptom) {
  return symptom.at("scenario").get<std::string>() + ":" + symptom.at("name").get<std::string>();
}

constexpr const char* kHeatForm =
    "<form id=filter role=search hidden><label>Symptoms <input id=search type=search "
    "placeholder=\"part of a name ( / )\"></label> <label>Cases <input id=search-columns "
    "type=search placeholder=\"part of a name\"></label> <output id=shown "
    "aria-live=polite></output></form>";

constexpr const char* kLegend =
    "<p class=legend><span class=\"sample all\">●</span> holds in all fault runs <span "
    "class=\"sample some\">◐</span> in some <span class=\"sample none\">·</span> in none <span "
    "class=\"sample unknown\">–</span> cannot be read there <span class=\"sample all "
    "own\">●</span> framed: a symptom of the case's own scenario <span class=\"sample none "
    "alarm\">·!</span> holds in a control run, too: a false positive</p>";

Markup HeatTable(const Json& report) {
  std::string html = std::string(kHeatForm) + kLegend +
                     "<div class=\"scroll tall\"><table class=heat tabindex=0 data-said=said "
                     "aria-label=\"symptoms over cases; the keys of the arrows go from cell to "
                     "cell\"><thead><tr><td></td>";
  for (const Json& one : report.at("cases")) {
    html += "<th scope=col><span>" + Html(one.at("name")) + "</span></th>";
  }
  html += "</tr></thead><tbody>";
  for (const Json& symptom : report.at("symptoms")) {
    html += "<tr><th scope=row title=\"" + Html(symptom.at("formula")) + "\">" +
            Html(NameOfSymptom(symptom)) + "</th>";
    for (const Json& cell : symptom.at("cells")) html += CellHtml(cell);
    html += "</tr>\n";
  }
  return {html +
          "</tbody></table></div><output id=said aria-live=polite class=hint>Choose a cell: "
          "its numbers stand here.</output>"};
}

// How many of the case's own symptoms hold in all of its runs, and of the others.
Markup CaseTable(const Json& report) {
  std::vector<TableRow> rows;
  const Json& cases = report.at("cases");
  for (std::size_t c = 0; c < cases.size(); ++c) {
    int own = 0, own_held = 0, read = 0, foreign = 0;
    std::vector<std::string> names;
    for (const Json& symptom : report.at("symptoms")) {
      const Json& cell = symptom.at("cells").at(c);
      const CellCount count(cell.at("fault"));
      const bool holds = count.holds > 0 && count.fails + count.unknown == 0;
      if (cell.at("own").get<bool>()) {
        ++own;
        own_held += holds;
        continue;
      }
      read += count.known() > 0;
      if (!holds) continue;
      ++foreign;
      names.push_back(NameOfSymptom(symptom));
    }
    const int alarmed = cases[c].at("alarmed_control_runs");
    rows.push_back(
        {{Words((alarmed > 0 ? "✗ " : "") + cases[c].at("name").get<std::string>()),
          Words(fmt::format("{}/{}", own_held, own)), Words(fmt::format("{}/{}", foreign, read)),
          Words(fmt::format("{}/{}", alarmed, cases[c].at("control_runs").get<int>())),
          names.empty() ? Markup()
                        : Folded(std::to_string(foreign) + " names", Words(Join(names)))},
         alarmed > 0 ? "broken" : ""});
  }
  return Table("cases",
               {{"case"},
                {"own that hold", true},
                {"others' that hold", true},
                {"control runs with a symptom", true},
                {"which, of others"}},
               rows);
}

Markup AlarmTable(const Json& alarms) {
  std::vector<TableRow> rows;
  for (const Json& cell : alarms.at("cells")) {
    const CellCount count(cell.at("control"));
    rows.push_back({{Words("✗ " + cell.at("symptom").get<std::string>()), Words(cell.at("case")),
                     Words(fmt::format("{}/{}", count.holds, count.known()))},
                    "broken"});
  }
  return Table("false positives", {{"symptom"}, {"control of"}, {"runs", true}}, rows);
}

void MatrixPage(const Json& report, HtmlPage& page) {
  const Json& alarms = report.at("false_positives");
  const int alarmed = alarms.at("alarmed_control_runs");
  const std::size_t pairs = report.at("not_separated").size();
  page.title = fmt::format("trainwreck matrix: {} symptoms over {} cases",
                           report.at("symptoms").size(), report.at("cases").size());
  page.source = "matrix.json";
  page.header =
      (Chip(alarmed > 0 ? "fail" : "pass",
            fmt::format("{} {} of {} control runs show a symptom", alarmed > 0 ? "✗" : "✓", alarmed,
                        alarms.at("control_runs").get<int>())) +
       Chip(pairs > 0 ? "open" : "pass",
            fmt::format("{} {} pairs of faults are not separated", pairs > 0 ? "?" : "✓", pairs)) +
       Paragraph(Words("The share of control runs with a symptom is at most ") +
                 Percent(alarms.at("upper_bound_95")) +
                 Words(fmt::format(" (95% upper bound); {} of {} readings are true.",
                                   alarms.at("true_readings").get<int>(),
                                   alarms.at("known_readings").get<int>()))))
          .html;
  std::vector<Markup> not_separated, skipped;
  for (const Json& pair : report.at("not_separated")) {
    not_separated.push_back(Words(pair.at("cases").at(0).get<std::string>() + " and " +
                                  pair.at("cases").at(1).get<std::string>() +
                                  (pair.at("only_unreadable").get<bool>()
                                       ? " (a symptom of one cannot be read in the other)"
                                       : "")));
  }
  for (const auto& [name, why] : report.at("skipped").items()) {
    skipped.push_back(Bold(name) + Words(": " + why.get<std::string>()));
  }
  page.main = (Section("Symptoms that hold in healthy runs", AlarmTable(alarms)) +
               Section("Symptoms over faults", HeatTable(report)) +
               Section("Faults that no symptom separates",
                       pairs == 0 ? Paragraph(Words("None.")) : List(not_separated)) +
               Section("Cases", CaseTable(report)) + Section("Skipped", List(skipped)))
                  .html;
}

const PageRegistration registration({.schema = "trainwreck/matrix", .write = MatrixPage});

}  // namespace
}  // namespace trainwreck
