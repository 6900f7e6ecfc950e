// A checkup: the known faults that a recipe looks like, with what speaks for each.
#include <fmt/format.h>

#include "harness/pages/pages.h"
#include "harness/pages/parts.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

// A share as a bar, with the share of all runs as a tick.
Markup ShareBar(double in_row, double overall) {
  const auto x = [](double share) { return static_cast<int>(1 + 118 * share); };
  return {
      fmt::format("<svg class=m viewBox=\"0 0 120 12\" role=img aria-label=\"{:.0f}% of its "
                  "runs, {:.0f}% of all\"><rect class=mp x=1 y=3 width={} height=6 /><path "
                  "class=ms d=\"M{} 0v12\"/></svg> ",
                  100 * in_row, 100 * overall, std::max(x(in_row) - 1, 1), x(overall))};
}

Markup EvidenceTable(const Json& evidence) {
  std::vector<TableRow> rows;
  for (const Json& line : evidence) {
    const double in_row = line.at("in_row"), overall = line.at("overall");
    rows.push_back(
        {{Words(line.at("holds").get<bool>() ? "✓ true" : "✗ false"), Words(line.at("clue")),
          ShareBar(in_row, overall) + Percent(line.at("in_row")), Percent(line.at("overall"))},
         ""});
  }
  return Table("evidence",
               {{"seen here"}, {"clue"}, {"so in its runs"}, {"in all runs (tick)", true}}, rows);
}

Markup ChangesList(const std::string& label, const Json& changes) {
  std::vector<std::string> words;
  for (const Json& change : changes) {
    words.push_back(TextAt(change, "name") + " (" + TextAt(change, "changes") + ")");
  }
  if (words.empty()) return {};
  return Paragraph(Bold(label) + Words(" " + Join(words, "; ")));
}

Markup Candidate(const Json& row, std::size_t place, double most_bits) {
  const double bits = row.at("bits");
  const int width = static_cast<int>(100 * std::max(bits, 0.0) / std::max(most_bits, 1.0));
  const Json& advice = row.at("advice");
  const std::string see = TextAt(advice, "see");
  return Markup{fmt::format("<article class=candidate><h3>{}. ", place)} + Words(row.at("row")) +
         Markup{" <span class=outcome>"} + Shown(row.at("bits")) +
         Markup{fmt::format(" bits</span></h3><div class=bits aria-hidden=true><span "
                            "style=\"width:{}%\"></span></div>",
                            width)} +
         Paragraph(Words(row.at("title"))) + EvidenceTable(row.at("evidence")) +
         ChangesList("Next:", advice.at("next")) +
         ChangesList("Not first:", advice.at("not_first")) +
         (see.empty()
              ? Markup()
              : Paragraph(Bold("See:") + Markup{" <code class=copy>" + Html(see) + "</code>"})) +
         Markup{"</article>"};
}

Markup UnseenTable(const Json& not_seen) {
  std::vector<TableRow> rows;
  for (const auto& [key, why] :
       {std::pair("lacking", "the target or the machine lacks what they need"),
        {"twins", "they have no fault"},
        {"named_by_invariants", "a broken invariant names them, in every run"},
        {"like_healthy", "their runs look healthy to this target's signals"}}) {
    const std::vector<std::string> names = TextsAt(not_seen, key);
    if (!names.empty()) rows.push_back({{Words(why), Words(Join(names))}, ""});
  }
  return Table("not seen", {{"why"}, {"scenarios"}}, rows);
}

void CheckupPage(const Json& report, HtmlPage& page) {
  const bool is_healthy = report.at("healthy");
  const std::string recipe = TextAt(report, "recipe");
  const Json& named = report.at("named");
  page.title = is_healthy
                   ? "trainwreck checkup: " + recipe + " looks healthy"
                   : "trainwreck checkup: " + recipe + " looks like " + TextAt(named.at(0), "row");
  page.source = "the checkup's JSON report";
  page.header =
      (Chip(is_healthy ? "pass" : "fail",
            is_healthy ? "✓ nothing found" : "✗ family " + TextAt(named.at(0), "family")) +
       Paragraph(
           Words(fmt::format("{} of {}, seeds: {}. Bits say how much more the clues fit a row "
                             "than a healthy recipe; they give an order, no probability.",
                             TextAt(report, "arm"), recipe, TextAt(report, "seeds")))))
          .html;
  double most_bits = 0;
  for (const Json& row : named) most_bits = std::max(most_bits, row.at("bits").get<double>());
  Markup candidates;
  for (std::size_t i = 0; i < named.size(); ++i) {
    if (named[i].at("bits").get<double>() > 0) candidates += Candidate(named[i], i + 1, most_bits);
  }
  std::vector<TableRow> losses;
  for (const auto& [variant, loss] : report.at("final_losses").items()) {
    losses.push_back({{Words(variant), Words(loss.get<std::string>())}, ""});
  }
  page.main = (Section("Known faults that it looks like", candidates) +
               Section("Final loss of each variant",
                       Table("variants", {{"variant"}, {"final loss", true}}, losses)) +
               Section("What a checkup cannot name here", UnseenTable(report.at("not_seen"))))
                  .html;
}

const PageRegistration registration({.schema = "trainwreck/checkup", .write = CheckupPage});

}  // namespace
}  // namespace trainwreck
