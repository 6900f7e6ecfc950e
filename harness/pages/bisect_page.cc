// A bisection: the answer, the probability of each commit after each run and where the runs went,
// and what each commit showed.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/pages/pages.h"
#include "harness/pages/parts.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

constexpr std::size_t kMostLines = 60;     // of the drawing: commits
constexpr std::size_t kMostColumns = 160;  // runs
constexpr int kLabel = 150, kLine = 18, kMargin = 26;

std::string ShortName(const Json& commit) {
  const std::string id = TextAt(commit, "id");
  const bool is_hash =
      id.size() >= 40 && id.find_first_not_of("0123456789abcdef") == std::string::npos;
  return is_hash ? id.substr(0, 8) : id;
}

class TrailDrawing {
 public:
  explicit TrailDrawing(const Json& report)
      : commits_(report.at("commits")), trail_(report.at("trail")) {
    ChooseLines();
  }

  std::size_t left_out() const { return commits_.size() - lines_.size(); }

  std::string Svg() const {
    if (trail_.empty()) return "";
    const std::size_t stride = (trail_.size() + kMostColumns - 1) / kMostColumns;
    const std::size_t columns = (trail_.size() + stride - 1) / stride;
    const double width = std::min(28.0, 1000.0 / static_cast<double>(columns));
    const double all = kLabel + width * static_cast<double>(columns) + 8;
    const std::size_t height = kLine * lines_.size() + kMargin;
    std::string svg = fmt::format(
        "<svg class=trail viewBox=\"0 0 {:.0f} {}\" width=\"{:.0f}\" role=img aria-label=\"the "
        "probability of each of {} commits after each of {} runs; the table below has the last "
        "ones\">",
        all, height, all, lines_.size(), trail_.size());
    for (std::size_t line = 0; line < lines_.size(); ++line) {
      const Json& commit = commits_.at(lines_[line]);
      svg += fmt::format("<text x=0 y={}>", line * kLine + 13) +
             Html(ShortName(commit).substr(0, 20)) + "<title>" + Html(TextAt(commit, "subject")) +
             "</title></text>";
    }
    for (std::size_t run = 0; run < trail_.size(); ++run) {
      svg += Column(trail_[run], run, kLabel + width * static_cast<double>(run / stride), width,
                    run % stride == 0);
    }
    svg += fmt::format(
        "<text x={} y={}>run 1</text><text x={:.0f} y={} text-anchor=end>run "
        "{}</text></svg>",
        kLabel, height - 8, all - 8, height - 8, trail_.size());
    return svg;
  }

 private:
  // All commits, or of many those that were run, were likely at any time, or are an end.
  void ChooseLines() {
    const std::size_t count = commits_.size();
    if (count <= kMostLines) {
      for (std::size_t i = 0; i < count; ++i) lines_.push_back(i);
      return;
    }
    std::vector<std::pair<double, std::size_t>> weights;
    for (std::size_t i = 0; i < count; ++i) weights.emplace_back(WeightOf(i), i);
    std::sort(weights.rbegin(), weights.rend());
    weights.resize(kMostLines);
    for (const auto& [weight, i] : weights) lines_.push_back(i);
    std::sort(lines_.begin(), lines_.end());
  }

  double WeightOf(std::size_t commit) const {
    double weight = commit == 0 || commit + 1 == commits_.size() ? 10 : 0;
    for (const Json& run : trail_) {
      if (run.at("commit").get<std::size_t>() == commit) weight += 2;
      const auto posterior = run.find("posterior");
      if (posterior != run.end()) weight = std::max(weight, posterior->at(commit).get<double>());
    }
    return weight;
  }

  std::string Column(const Json& run, std::size_t number, double x, double width,
                     bool with_posterior) const {
    std::string svg;
    const auto posterior = run.find("posterior");
    for (std::size_t line = 0; line < lines_.size(); ++line) {
      if (with_posterior && posterior != run.end()) {
        const double p = posterior->at(lines_[line]);
        if (p >= 0.002) {
          svg += fmt::format("<rect class=p x={:.1f} y={} width={:.1f} height={} opacity={:.2f} />",
                             x, line * kLine + 1, width, kLine - 2, 0.12 + 0.88 * p);
        }
      }
      if (run.at("commit").get<std::size_t>() != lines_[line]) continue;
      svg += Mark(run, number, x + width / 2, static_cast<double>(line * kLine) + kLine / 2.0,
                  std::min(width / 2, 5.0));
    }
    return svg;
  }

  // A cross failed, a ring passed, a bar told nothing.
  std::string Mark(const Json& run, std::size_t number, double x, double y, double r) const {
    const std::string saw = TextAt(run, "saw");
    const std::string title =
        fmt::format("<title>run {}, seed {}: {}", number + 1, TextAt(run, "seed"), "") +
        Html(saw + (run.at("margin").is_null() ? "" : " " + TextAt(run, "margin"))) + "</title>";
    if (saw == "failed") {
      return fmt::format(
          "<path class=x d=\"M{0:.1f} {1:.1f}l{2:.1f} {2:.1f}m0 -{2:.1f}l-{2:.1f} "
          "{2:.1f}\">{3}</path>",
          x - r, y - r, 2 * r, title);
    }
    if (saw == "unusable") {
      return fmt::format("<path class=u d=\"M{:.1f} {:.1f}h{:.1f}\">{}</path>", x - r, y, 2 * r,
                         title);
    }
    return fmt::format("<circle class={} cx={:.1f} cy={:.1f} r={:.1f}>{}</circle>",
                       saw == "margin" ? "m" : "o", x, y, r, title);
  }

  const Json& commits_;
  const Json& trail_;
  std::vector<std::size_t> lines_;
};

Json ConfidenceSpec(const Json& report) {
  Json likeliest = Json::array(), none = Json::array();
  int run = 0;
  for (const Json& step : report.at("trail")) {
    ++run;
    likeliest.push_back({run, step.at("confidence")});
    none.push_back({run, step.at("no_change")});
  }
  return {{"x", {{"name", "run"}}},
          {"y", {{"name", "probability"}, {"from", -0.03}, {"to", 1.03}}},
          {"lines",
           {{{"name", "the likeliest commit is the culprit"}, {"points", likeliest}},
            {{"name", "there is no culprit"}, {"points", none}}}}};
}

std::string RunsText(const Json& commit) {
  if (commit.contains("margins")) {
    return fmt::format("{} margins", commit["margins"].size());
  }
  const int failed = commit.at("failed"), passed = commit.at("passed");
  return failed + passed == 0 ? "–" : fmt::format("{} of {}", failed, failed + passed);
}

Markup CommitTable(const Json& report) {
  std::set<std::string> culprits;
  for (const Json& culprit : report.at("culprits")) culprits.insert(TextAt(culprit, "id"));
  std::vector<TableRow> rows;
  for (const Json& commit : report.at("commits")) {
    const bool is_culprit = culprits.contains(TextAt(commit, "id"));
    rows.push_back(
        {{Words((is_culprit ? "✗ " : "") + ShortName(commit)), Words(TextAt(commit, "subject")),
          Percent(commit.at("posterior")), Words(RunsText(commit)), Shown(commit.at("runs")),
          Words(TextAt(commit, "skipped"))},
         is_culprit ? "broken" : ""});
  }
  return Table("commits",
               {{TextAt(report, "of")},
                {"subject"},
                {"probability", true},
                {"runs that failed", true},
                {"all runs", true},
                {"skipped"}},
               rows);
}

Markup Answer(const Json& report) {
  std::vector<Markup> lines;
  for (const Json& culprit : report.at("culprits")) {
    lines.push_back(Bold(TextAt(culprit, "id")) + Words(" " + TextAt(culprit, "subject")));
  }
  Markup text = List(lines);
  if (!TextAt(report, "why").empty()) text += Paragraph(Words(TextAt(report, "why")));
  if (report.at("confidence").is_number()) {
    text += Paragraph(Words("Confidence ") + Percent(report["confidence"]) + Words("."));
  }
  const auto rates = report.find("rates");
  if (rates != report.end()) {
    text += Paragraph(Words("Rate of failure before it ") + Shown(rates->at("before")) +
                      Words(", with it ") + Shown(rates->at("after")) + Words("."));
  }
  if (report.at("failure").is_object()) {
    text += Paragraph(Words("Failure: " + TextAt(report["failure"], "class") + ", '" +
                            TextAt(report["failure"], "check") + "' in " +
                            TextAt(report["failure"], "arm") + "."));
  }
  return text;
}

void BisectPage(const Json& report, HtmlPage& page) {
  const std::string answer = report.at("answer");
  const bool is_found = !report.at("culprits").empty();
  const std::string noun = TextAt(report, "of");
  page.title = "trainwreck bisect: " +
               (answer == "culprit" ? "the culprit is " + ShortName(report["culprits"].at(0))
                : is_found          ? "one of " + std::to_string(report["culprits"].size())
                                    : "no " + noun + " is named");
  page.source = "the JSON of bisect";
  page.header = (Chip(is_found ? "fail" : "open", is_found ? "✗ " + answer : "? " + answer) +
                 Paragraph(Words(fmt::format("{} {}s, {} runs, ", TextAt(report, "candidates"),
                                             noun, TextAt(report, "runs")) +
                                 fmt::format("{} builds.", TextAt(report, "builds")))))
                    .html;
  const TrailDrawing drawing(report);
  Markup trail{"<div class=scroll tabindex=0 role=group aria-label=\"the search\">" +
               drawing.Svg() + "</div>"};
  if (drawing.left_out() > 0) {
    trail += Hint(fmt::format("{} more are only in the table below.", drawing.left_out()));
  }
  page.main =
      (Section("Answer", Answer(report)) +
       Section("The search",
               Hint("A line for each " + noun +
                    ", a column for each run. The darker, the likelier "
                    "it is the culprit after that run. The run went where the mark is: a cross "
                    "failed, a ring passed, a dash told nothing, a dot is a margin.") +
                   trail +
                   ChartOf("confidence", "probabilities after each run", ConfidenceSpec(report),
                           page)) +
       Section("Each " + noun, CommitTable(report)))
          .html;
}

const PageRegistration registration({.schema = "trainwreck/bisect-result", .write = BisectPage});

}  // namespace
}  // namespace trainwreck
