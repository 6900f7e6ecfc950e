// A case over the recorded runs: margins, step time and memory, and the commits that moved them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "harness/pages/pages.h"
#include "harness/pages/parts.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

std::string ShortCommit(const Json& json) {
  const std::string commit = TextAt(json, "commit");
  if (commit.empty()) return "run " + TextAt(json, json.contains("run") ? "run" : "to");
  return commit.substr(0, 8) + (json.value("dirty", false) ? "*" : "");
}

std::string NameOfMargin(const Json& margin) {
  return TextAt(margin, "check") + " in " + TextAt(margin, "arm");
}

class Course {
 public:
  Course(const Json& course, int index, HtmlPage& page)
      : course_(course), index_(index), page_(page) {
    for (const Json& point : course_.at("points")) labels_.push_back(ShortCommit(point));
    for (const Json& move : course_.at("moves")) {
      for (const Json& change : move.at("changes")) {
        moved_kinds_[TextAt(change, "kind") + TextAt(change, "unit")].insert(
            move.at("to").get<std::int64_t>());
      }
    }
  }

  Markup Text() {
    const std::size_t moves = course_.at("moves").size();
    Markup text = Moves();
    text += Margins();
    text += Measure("step_seconds", "step_time", "step time (ms)", 1e3, "median step time");
    text += Measure("peak_memory_bytes", "memory", "peak memory (MiB)", 1.0 / (1 << 20),
                    "median peak memory");
    text += Folded("Numbers of each run", Points());
    return Section(TextAt(course_, "case"),
                   Paragraph(Words(fmt::format("{} states of the program, {} of them moved "
                                               "something.",
                                               labels_.size(), moves))) +
                       text);
  }

 private:
  Json Marks(const std::set<std::int64_t>& runs) const {
    Json marks = Json::array();
    const Json& points = course_.at("points");
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (runs.contains(points[i].at("run").get<std::int64_t>())) {
        marks.push_back({{"x", i}, {"name", labels_[i]}});
      }
    }
    return marks;
  }

  std::set<std::int64_t> MovedBy(const std::string& kind) const {
    const auto found = moved_kinds_.find(kind);
    return found == moved_kinds_.end() ? std::set<std::int64_t>() : found->second;
  }

  Json Spec(const std::string& y, Json lines, const std::set<std::int64_t>& moved) const {
    return {{"x", {{"name", "commit"}, {"labels", labels_}}},
            {"y", {{"name", y}}},
            {"lines", std::move(lines)},
            {"marks", Marks(moved)}};
  }

  std::string Id() { return fmt::format("course{}-{}", index_, charts_++); }

  Markup Moves() const {
    std::vector<TableRow> rows;
    for (const Json& move : course_.at("moves")) {
      std::vector<Markup> texts;
      for (const Json& change : move.at("changes")) {
        const std::string sign = change.at("worse").get<bool>() ? "✗ " : "";
        texts.push_back(Words(sign + TextAt(change, "text")));
      }
      const bool is_worse = move.at("worse");
      rows.push_back({{Words((is_worse ? "✗ " : "≠ ") + ShortCommit(move)),
                       Words(TextAt(move, "from") + " → " + TextAt(move, "to")),
                       Words(TextAt(move, "cause")), List(texts)},
                      is_worse ? "broken" : ""});
    }
    if (rows.empty()) return {};
    return Markup{"<h3>Commits that moved something</h3>"} +
           Hint(
               "Each state is compared with the one before it, as by trainwreck compare: a false "
               "'moved' has a chance of 5% in each comparison of margins. Equal bits cannot be "
               "called moved.") +
           Table("moves", {{"commit"}, {"runs"}, {"possible cause"}, {"what"}}, rows);
  }

  // A chart for each unit.
  Markup Margins() {
    std::map<std::string, std::map<std::string, Json>> lines;  // unit -> margin -> line
    const Json& points = course_.at("points");
    for (std::size_t i = 0; i < points.size(); ++i) {
      for (const Json& margin : points[i].at("margins")) {
        Json& line = lines[TextAt(margin, "unit")][NameOfMargin(margin)];
        if (line.is_null()) {
          line = {{"name", NameOfMargin(margin)},
                  {"points", Json::array()},
                  {"ranges", Json::array()},
                  {"dots", true}};
        }
        line["points"].push_back({i, margin.at("median")});
        line["ranges"].push_back({i, margin.at("least"), margin.at("most")});
      }
    }
    Markup charts;
    for (const auto& [unit, by_name] : lines) {
      Json list = Json::array();
      for (const auto& [name, line] : by_name) list.push_back(line);
      Json spec = Spec(unit == "plain" ? "margin" : "margin (" + unit + ")", list,
                       MovedBy("margin" + unit));
      spec["levels"] = {{{"y", 0}, {"name", "below it: not as claimed"}}};
      charts += ChartOf(Id(),
                        (by_name.size() == 1 ? "margin of " + by_name.begin()->first : "margins") +
                            ": median over the seeds, with the least and the most",
                        spec, page_);
    }
    return charts;
  }

  Markup Measure(const char* key, const char* kind, const std::string& name, double factor,
                 const std::string& label) {
    Json values = Json::array();
    const Json& points = course_.at("points");
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (points[i].at(key).is_null()) continue;
      values.push_back({i, points[i][key].get<double>() * factor});
    }
    if (values.empty()) return {};
    Json line = {{"name", name}, {"points", values}, {"dots", true}};
    return ChartOf(Id(), label, Spec(name, Json::array({line}), MovedBy(kind)), page_);
  }

  Markup Points() const {
    std::vector<TableRow> rows;
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      const Json& point = course_.at("points").at(i);
      const std::string failure = TextAt(point, "class");
      std::vector<Markup> margins;
      for (const Json& margin : point.at("margins")) {
        margins.push_back(Words(NameOfMargin(margin) + ": ") + Shown(margin.at("median")) +
                          Words(" (") + Shown(margin.at("least")) + Words(" to ") +
                          Shown(margin.at("most")) + Words(") " + TextAt(margin, "unit")));
      }
      rows.push_back(
          {{Words(labels_[i]), Words(Join(TextsOf(point.at("runs")))),
            Words(TextAt(point, "started_utc")),
            Words(TextAt(point, "verdict") + (failure.empty() ? "" : " / " + failure)),
            Shown(point.at("step_seconds")), Shown(point.at("peak_memory_bytes")), List(margins)},
           ""});
    }
    return Table("runs",
                 {{"commit"},
                  {"runs"},
                  {"started"},
                  {"verdict"},
                  {"step, s", true},
                  {"peak, bytes", true},
                  {"margins: median (least to most)"}},
                 rows);
  }

  static std::vector<std::string> TextsOf(const Json& list) {
    std::vector<std::string> texts;
    for (const Json& one : list)
      texts.push_back(one.is_string() ? one.get<std::string>() : one.dump());
    return texts;
  }

  const Json& course_;
  const int index_;
  HtmlPage& page_;
  std::vector<std::string> labels_;
  std::map<std::string, std::set<std::int64_t>> moved_kinds_;
  int charts_ = 0;
};

void HistoryPage(const Json& report, HtmlPage& page) {
  const Json& courses = report.at("courses");
  int moves = 0, worse = 0;
  for (const Json& course : courses) {
    moves += static_cast<int>(course.at("moves").size());
    for (const Json& move : course.at("moves")) worse += move.at("worse").get<bool>();
  }
  page.title = courses.size() == 1 ? "trainwreck history: " + TextAt(courses.at(0), "case")
                                   : fmt::format("trainwreck history: {} cases", courses.size());
  page.source = "the history's JSON (--format json)";
  page.header =
      (Chip(worse > 0 ? "fail" : "pass",
            worse > 0 ? fmt::format("✗ {} moves to the worse", worse) : "✓ no move to the worse") +
       Chip("limit", fmt::format("≠ {} moves", moves)))
          .html;
  int index = 0;
  for (const Json& course : courses) page.main += Course(course, index++, page).Text().html;
}

const PageRegistration registration({.schema = "trainwreck/history", .write = HistoryPage});

}  // namespace
}  // namespace trainwreck
