// A learning-rate range test: the end loss over the rate.
#include <fmt/format.h>

#include <cmath>

#include "harness/pages/pages.h"
#include "harness/pages/parts.h"
#include "harness/report/text.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

Json RangeSpec(const Json& report) {
  Json ends = Json::array(), starts = Json::array(), marks = Json::array(), bands = Json::array();
  double lowest = INFINITY, highest = 0;
  for (const Json& point : report.at("points")) {
    const Json end = point.at("end").is_null() ? Json("inf") : point.at("end");
    ends.push_back({point.at("rate"), end});
    starts.push_back({point.at("rate"), point.at("start")});
    const double value = NumberIn(end).value_or(INFINITY);
    lowest = std::min(lowest, value);
    if (std::isfinite(value)) highest = std::max(highest, value);
  }
  if (report.at("plateau").at(0).is_number()) {
    bands.push_back(
        {{"from", report["plateau"][0]}, {"to", report["plateau"].at(1)}, {"name", "plateau"}});
  }
  for (const auto& [key, name] : {std::pair("own_rate", "the recipe's rate"),
                                  {"suggested", "suggested"},
                                  {"largest_stable", "largest stable"}}) {
    if (report.at(key).is_number()) marks.push_back({{"x", report[key]}, {"name", name}});
  }
  return {{"x", {{"name", "learning rate"}, {"log", true}}},
          {"y", {{"name", "loss"}, {"log", lowest > 0 && highest > 10 * lowest}}},
          {"lines",
           {{{"name", "at the end"}, {"points", ends}, {"dots", true}},
            {{"name", "at the start"}, {"points", starts}}}},
          {"bands", bands},
          {"marks", marks}};
}

Markup RangeTable(const Json& report) {
  const auto is_at = [&](const char* key, const Json& rate) { return report.at(key) == rate; };
  std::vector<TableRow> rows;
  const Json& plateau = report.at("plateau");
  for (const Json& point : report.at("points")) {
    const Json& rate = point.at("rate");
    std::vector<std::string> notes;
    if (plateau.at(0).is_number() && rate >= plateau[0] && rate <= plateau.at(1)) {
      notes.push_back("plateau");
    }
    if (is_at("best", rate)) notes.push_back("best");
    if (is_at("steepest", rate)) notes.push_back("steepest descent");
    if (is_at("largest_stable", rate)) notes.push_back("largest stable");
    rows.push_back({{Shown(rate), Shown(point.at("start")),
                     point.at("end").is_null() ? Words("✗ diverged") : Shown(point.at("end")),
                     Words(Join(notes))},
                    point.at("end").is_null() ? "broken" : ""});
  }
  return Table("rates",
               {{"rate", true}, {"loss at the start", true}, {"at the end", true}, {"what it is"}},
               rows);
}

void LrRangePage(const Json& report, HtmlPage& page) {
  const std::string own = TextAt(report, "own_rate_is");
  const bool is_good = own.rfind("inside", 0) == 0;
  page.title = "trainwreck lr-range: " + TextAt(report, "recipe") +
               (own.empty() ? ": no rate learns" : ": the rate is " + own);
  page.source = "the JSON report of lr-range";
  Markup header = Chip(own.empty() ? "open"
                       : is_good   ? "pass"
                                   : "fail",
                       own.empty() ? "? no rate learns" : (is_good ? "✓ " : "✗ ") + own) +
                  Paragraph(Words("The recipe's rate is ") + Shown(report.at("own_rate")) +
                            Words("; the middle of the plateau, which is suggested: ") +
                            Shown(report.at("suggested")) + Words("."));
  const auto advice = report.find("advice");
  if (advice != report.end() && advice->is_object()) {
    const auto line = [&](const char* key, const char* label) {
      const std::vector<std::string> words = TextsAt(*advice, key);
      return words.empty() ? Markup() : Paragraph(Bold(label) + Words(" " + Join(words)));
    };
    header += line("next", "Next:") + line("not_first", "Not first:") +
              Paragraph(Bold("See:") + Markup{" <code class=copy>trainwreck run " +
                                              Html(TextAt(*advice, "scenario")) + "</code>"});
  }
  page.header = header.html;
  page.main = (Section("Loss by rate",
                       ChartOf("rates", "loss by learning rate; a cross is a rate that diverges",
                               RangeSpec(report), page)) +
               Section("Rates", RangeTable(report)))
                  .html;
}

const PageRegistration registration({.schema = "trainwreck/lr-range", .write = LrRangePage});

}  // namespace
}  // namespace trainwreck
