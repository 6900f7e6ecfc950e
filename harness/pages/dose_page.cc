// Response curves: how often each symptom shows, and each remedy fails, by dose, with the limits.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/pages/pages.h"
#include "harness/pages/parts.h"
#include "harness/report/text.h"

namespace trainwreck {
namespace {

// Wilson's 95% interval of a share.
std::pair<double, double> IntervalOfShare(double yes, double runs) {
  constexpr double kZ = 1.959964;
  const double middle = (yes + kZ * kZ / 2) / (runs + kZ * kZ);
  const double half = kZ / (runs + kZ * kZ) * std::sqrt(yes * (runs - yes) / runs + kZ * kZ / 4);
  return {std::max(middle - half, 0.0), std::min(middle + half, 1.0)};
}

bool IsLogarithmic(const Json& doses) {
  double lowest = INFINITY, highest = 0;
  for (const Json& dose : doses) {
    lowest = std::min(lowest, dose.get<double>());
    highest = std::max(highest, dose.get<double>());
  }
  return lowest > 0 && highest >= 10 * lowest;
}

Json ResponseSpec(const Json& report, const Json& answer) {
  Json points = Json::array(), ranges = Json::array(), marks = Json::array(), bands = Json::array();
  for (const Json& look : answer.at("looks")) {
    const double runs = look.at("runs"), yes = look.at("yes");
    if (runs <= 0) continue;
    const auto [lo, hi] = IntervalOfShare(yes, runs);
    points.push_back({look.at("dose"), yes / runs});
    ranges.push_back({look.at("dose"), lo, hi});
  }
  if (answer.at("limit").is_number()) {
    marks.push_back({{"x", answer["limit"]}, {"name", "limit " + TextAt(answer, "text")}});
  } else if (answer.contains("between")) {
    bands.push_back({{"from", answer["between"].at(0)},
                     {"to", answer["between"].at(1)},
                     {"name", "the limit is here"}});
  }
  const bool is_remedy = answer.at("kind") == "remedy";
  return {
      {"x", {{"name", TextAt(report, "parameter")}, {"log", IsLogarithmic(report.at("doses"))}}},
      {"y",
       {{"name", is_remedy ? "share of runs that fail" : "share of runs with it"},
        {"from", -0.05},
        {"to", 1.05}}},
      {"lines",
       {{{"name", TextAt(answer, "name")},
         {"points", points},
         {"ranges", ranges},
         {"dots", true}}}},
      {"marks", marks},
      {"bands", bands}};
}

std::string Question(const Json& answer) {
  return answer.at("kind") == "remedy"
             ? "strongest dose at which " + TextAt(answer, "name") + " works"
             : "weakest dose that shows " + TextAt(answer, "name");
}

Markup LooksTable(const Json& answer) {
  std::vector<TableRow> rows;
  for (const Json& look : answer.at("looks")) {
    rows.push_back({{Shown(look.at("dose")), Shown(look.at("yes")), Shown(look.at("runs"))}, ""});
  }
  const bool is_remedy = answer.at("kind") == "remedy";
  return Table(
      "runs by dose",
      {{"dose", true}, {is_remedy ? "runs that fail" : "runs with it", true}, {"runs", true}},
      rows);
}

void DosePage(const Json& report, HtmlPage& page) {
  const std::string point = TextAt(report, "point");
  const Json& doses = report.at("doses");
  page.title = "trainwreck dose: " + TextAt(report, "scenario") +
               (point.empty() ? "" : "[" + point + "]") + " by " + TextAt(report, "parameter");
  page.source = "dose.json";
  page.header = Paragraph(Words(fmt::format("{} doses from ", doses.size())) + Shown(doses.at(0)) +
                          Words(" to ") + Shown(doses.at(doses.size() - 1)) +
                          Words(fmt::format("; {} seeds with all arms.", TextAt(report, "seeds"))))
                    .html;
  std::vector<TableRow> rows;
  Markup charts;
  int index = 0;
  for (const Json& answer : report.at("answers")) {
    rows.push_back({{Words(Question(answer)), Words(TextAt(answer, "text")),
                     answer.at("limit").is_null() ? Words("–") : Percent(answer.at("confidence"))},
                    ""});
    const std::string id = fmt::format("dose{}", index++);
    charts += ChartOf(id,
                      Question(answer) + ": " + TextAt(answer, "text") +
                          "; lines across points are 95% intervals (Wilson)",
                      ResponseSpec(report, answer), page) +
              Folded("Numbers", LooksTable(answer));
  }
  page.main =
      (Section("Limits", Table("limits", {{"question"}, {"dose"}, {"confidence", true}}, rows)) +
       Section("Responses", charts))
          .html;
}

const PageRegistration registration({.schema = "trainwreck/dose", .write = DosePage});

}  // namespace
}  // namespace trainwreck
