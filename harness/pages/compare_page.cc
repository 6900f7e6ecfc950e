// Two sides against each other: what changed and why it counts, the margins that moved, and the
// curves of both laid over each other.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/pages/compare_curves.h"
#include "harness/pages/pages.h"
#include "harness/pages/parts.h"
#include "harness/report/text.h"
#include "harness/text/clean_text.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

// What a comparison says of one case, the gravest first.
enum Change { kWorse, kUnknown, kBetter, kChanged, kSame };

struct Look {
  const char* sign;
  const char* css_class;
  const char* word;
};

constexpr Look kLooks[] = {{"✗", "fail", "worse"},
                           {"?", "open", "unknown"},
                           {"✓", "pass", "better"},
                           {"≠", "limit", "changed"},
                           {"=", "skip", "the same"}};

struct OfCase {
  Change change = kSame;
  double strength = 2;  // of the margin nearest to flipping on side B
  std::vector<const Json*> bits, margins;
  int unknown = 0, more_seeds = 0;  // margins
  std::vector<Markup> said;

  void Say(Change what, Markup words) {
    change = std::min(change, what);
    said.push_back(Markup{std::string(kLooks[what].sign) + " "} + std::move(words));
  }
};

std::string StepsText(const Json& change) {
  if (!change.at("first_step").is_array()) return "";
  const int first = change["first_step"].at(0).get<int>();
  const int last = change["first_step"].at(1).get<int>();
  return first == last ? fmt::format(", first at step {}", first)
                       : fmt::format(", first between steps {} and {}", first, last);
}

// The rule that decided, with its numbers: docs/guide/history.md.
Markup WhyOf(const Json& margin, const Json& report) {
  const std::string answer = margin.at("answer");
  if (margin.at("identical").get<bool>()) {
    return Words("same: every common seed has the same value");
  }
  if (margin.at("by_clock").get<bool>()) {
    return Words("only shown: it depends on the load of the machine");
  }
  if (!margin.at("counts").get<bool>()) {
    return Words("only shown: the program is the same, so only chance moves it");
  }
  const double level = 1 - report.at("confidence").get<double>();
  if (answer == "different") {
    return Words("different: p, corrected for all margins, is ") + Shown(margin.at("adjusted_p")) +
           Words(fmt::format(", at most {:g}; the shift is not shown to be below {:g} standard "
                             "deviations of A's seeds (one is ",
                             level, report.at("relevant_shift").get<double>())) +
           Shown(margin.at("noise")) + Words(")");
  }
  if (answer == "same") {
    return Words(fmt::format("same: the shift is shown to be below {:g} standard deviations of "
                             "A's seeds (one is ",
                             report.at("relevant_shift").get<double>())) +
           Shown(margin.at("noise")) + Words(") or a hundredth of A's margin");
  }
  return Words("unknown: p, corrected for all margins, is ") + Shown(margin.at("adjusted_p")) +
         Words(fmt::format("; {} more seeds of each side would tell",
                           margin.at("more_seeds").get<int>()));
}

Markup ShiftOf(const Json& margin) {
  const Json& shift = margin.at("shift");
  if (margin.at("identical").get<bool>()) return Words("0");
  if (!shift.is_object()) return Words("–");
  return Shown(shift.at("estimate")) + Words(" [") + Shown(shift.at("lo")) + Words(", ") +
         Shown(shift.at("hi")) + Words("]");
}

Markup RatioOf(const Json& speed, const std::string& what) {
  const Json& ratio = speed.at(what);
  if (!ratio.is_object()) return Words("–");
  Markup words = Shown(ratio.at("ratio"));
  if (ratio.at("pairs").get<int>() > 1) {
    words += Words(" [") + Shown(ratio.at("lo")) + Words(", ") + Shown(ratio.at("hi")) + Words("]");
  }
  const std::string gate = TextAt(speed, what + "_gate");
  return gate.empty() ? words : words + Words(" " + gate);
}

std::string SideText(const Json& side) {
  std::string text =
      side.at("run").is_null() ? TextAt(side, "output_dir") : "run " + TextAt(side, "run");
  text += ", " + TextAt(side, "started_utc");
  const std::string commit = TextAt(side, "commit");
  if (!commit.empty()) {
    text += ", commit " + commit.substr(0, 12) + (side.at("dirty").get<bool>() ? "*" : "");
  }
  text += ", " + TextAt(side, "target");
  const std::string digest = TextAt(side, "target_digest");
  return digest.empty() ? text : text + " (" + digest.substr(0, 8) + ")";
}

class ComparePageWriter {
 public:
  ComparePageWriter(const Json& report, HtmlPage& page) : report_(report), page_(page) {
    Collect();
  }

  void Write() {
    page_.title = "trainwreck compare: " + TextAt(report_, "summary");
    page_.source = "the comparison's JSON report";
    page_.header = Header().html;
    Markup cases = Cases();
    page_.main = (Section("What changed, and why it counts", Changes()) +
                  Section("Code and environment", Environment()) + std::move(cases) +
                  Section("Step time and peak memory, B / A", Speed()))
                     .html;
  }

 private:
  void Collect() {
    for (const Json& change : report_.at("verdicts")) {
      const std::string direction = change.at("direction");
      std::string text = "verdict " + TextAt(change, "before") + " → " + TextAt(change, "after") +
                         "; possible cause: " + TextAt(change, "cause");
      if (change.at("scenario_changed").get<bool>()) text += "; the scenario claims something else";
      Of(change).Say(direction == "worse"    ? kWorse
                     : direction == "better" ? kBetter
                                             : kChanged,
                     Words(text) + Folded("checks that changed", List(ListOf(change, "checks"))));
    }
    for (const Json& lost : report_.at("lost_checks")) {
      Of(lost).Say(kWorse, Words("no longer checks " + Join(TextsAt(lost, "checks"))));
    }
    CollectMargins();
    CollectBits();
    for (const Json& speed : report_.at("speed")) {
      OfCase& one = Of(speed);
      for (const char* what : {"step_time", "memory"}) {
        if (TextAt(speed, std::string(what) + "_gate") != "exceeded") continue;
        one.Say(kWorse, Words(std::string(what) == "memory" ? "more peak memory: " : "slower: ") +
                            RatioOf(speed, what));
      }
    }
  }

  void CollectMargins() {
    for (const Json& margin : report_.at("margins")) {
      OfCase& one = Of(margin);
      one.margins.push_back(&margin);
      const auto unit = formula::FindUnit(TextAt(margin, "unit")).value_or(formula::Unit::kPlain);
      one.strength =
          std::min(one.strength, MarginStrength(NumberIn(margin.at("median_b")).value_or(0), unit));
      const std::string answer = margin.at("answer");
      if (!margin.at("counts").get<bool>() || answer == "same") continue;
      if (answer == "unknown") {
        ++one.unknown;
        one.more_seeds = std::max(one.more_seeds, margin.at("more_seeds").get<int>());
        continue;
      }
      one.Say(
          margin.at("worse").get<bool>() ? kWorse : kBetter,
          Words("margin of '" + TextAt(margin, "check") + "' in " + TextAt(margin, "arm") + ": ") +
              Shown(margin.at("median_a")) + Words(" → ") + Shown(margin.at("median_b")) +
              Words(" " + UnitOf(margin) + ": ") + WhyOf(margin, report_));
    }
    for (auto& [name, one] : cases_) {
      if (one.unknown == 0) continue;
      one.Say(kUnknown,
              Words(fmt::format(
                  "{} unknown, see the case: at most {} more seeds of each "
                  "side would tell",
                  one.unknown == 1 ? "1 margin is" : fmt::format("{} margins are", one.unknown),
                  one.more_seeds)));
    }
  }

  // Arms with the same change in one line.
  void CollectBits() {
    std::map<std::string, std::map<std::string, std::vector<std::string>>> arms;  // by case, text
    for (const Json& change : report_.at("bits")) {
      Of(change).bits.push_back(&change);
      std::string text = fmt::format("in {} of {} seeds", change.at("seeds").size(),
                                     change.at("seeds_compared").get<int>()) +
                         StepsText(change);
      for (const std::string& end : TextsAt(change, "ends")) text += "; " + end;
      arms[TextAt(change, "case")][text + "; possible cause: " + TextAt(change, "cause")].push_back(
          TextAt(change, "arm"));
    }
    for (const auto& [name, by_text] : arms) {
      for (const auto& [text, names] : by_text) {
        cases_[name].Say(kChanged, Words("other bits in " + Join(names) + ": " + text));
      }
    }
  }

  static std::vector<Markup> ListOf(const Json& part, const char* key) {
    std::vector<Markup> items;
    for (const std::string& text : TextsAt(part, key)) items.push_back(Words(text));
    return items;
  }

  OfCase& Of(const Json& part) { return cases_[part.at("case").get<std::string>()]; }

  static std::string UnitOf(const Json& margin) {
    return formula::ToString(
        formula::FindUnit(TextAt(margin, "unit")).value_or(formula::Unit::kPlain));
  }

  Markup Header() const {
    Markup header = Paragraph(Bold("A") + Words(": " + SideText(report_.at("a")))) +
                    Paragraph(Bold("B") + Words(": " + SideText(report_.at("b"))));
    std::map<Change, int> counts;
    for (const auto& [name, one] : cases_) ++counts[one.change];
    Markup chips;
    for (const auto& [change, count] : counts) {
      const Look& look = kLooks[change];
      chips += Chip(look.css_class, fmt::format("{} {} {}", look.sign, count, look.word));
    }
    const std::size_t gone = report_.at("only_in_a").size();
    if (gone > 0) chips += Chip("fail", fmt::format("✗ {} only in A", gone));
    const std::string hint = TextAt(report_, "hint");
    return header + Markup{"<p class=counts>" + chips.html + "</p>"} +
           (hint.empty() ? Markup() : Paragraph(Words(hint)));
  }

  Markup Changes() const {
    std::vector<Markup> items;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const OfCase& one = cases_.at(order_[i]);
      if (one.said.empty()) continue;
      const Look& look = kLooks[one.change];
      Markup lines;
      for (std::size_t line = 0; line < one.said.size(); ++line) {
        if (line == kMostLines) {
          lines += Markup{fmt::format("<br>{} more, see the case", one.said.size() - line)};
          break;
        }
        lines += Markup{"<div class=why>" + one.said[line].html + "</div>"};
      }
      items.push_back(
          Markup{fmt::format("<a class={} href=\"#c{}\">{} ", look.css_class, i, look.sign) +
                 Html(order_[i]) + "</a> " + Html(look.word)} +
          lines);
    }
    for (const std::string& name : TextsAt(report_, "only_in_a")) {
      items.push_back(Markup{"<b class=fail>✗</b> "} + Bold(name) +
                      Words(": only A has this case"));
    }
    for (const std::string& name : TextsAt(report_, "only_in_b")) {
      items.push_back(Bold(name) + Words(": only B has this case"));
    }
    if (items.empty()) return Paragraph(Words("Nothing: " + TextAt(report_, "summary") + "."));
    Markup list = List(items);
    return {"<div class=failed>" + list.html + "</div>"};
  }

  Markup Environment() const {
    Markup text = Paragraph(Words(report_.at("same_code").get<bool>()
                                      ? "The program and the commit are the same."
                                      : "The program or the commit differs."));
    std::vector<TableRow> rows;
    for (const auto& [key, values] : report_.at("environment").items()) {
      rows.push_back({{Words(key), Words(values.at(0)), Words(values.at(1))}, ""});
    }
    if (rows.empty()) text += Paragraph(Words("The environment is the same, as far as known."));
    return text + Table("environment", {{"what"}, {"A"}, {"B"}}, rows) +
           Paragraph(Words(fmt::format("{} arms compared bit by bit, {} have no bits to compare.",
                                       report_.at("arms_compared").get<int>(),
                                       report_.at("arms_without_bits").get<int>())));
  }

  // The order of the list, the gravest first.
  std::vector<std::string> Order() const {
    std::vector<std::string> names;
    for (const auto& [name, one] : cases_) names.push_back(name);
    std::stable_sort(names.begin(), names.end(), [&](const auto& x, const auto& y) {
      const OfCase &a = cases_.at(x), &b = cases_.at(y);
      return std::tie(a.change, a.strength) < std::tie(b.change, b.strength);
    });
    return names;
  }

  Markup Cases() {
    order_ = Order();
    if (order_.empty()) return {};
    const std::string in_a = TextAt(report_.at("a"), "output_dir");
    const std::string in_b = TextAt(report_.at("b"), "output_dir");
    std::vector<std::pair<std::string, std::string>> parts;  // above and below the curves
    std::size_t bytes = 0;
    for (const std::string& name : order_) {
      const OfCase& one = cases_.at(name);
      parts.emplace_back(PartAbove(parts.size(), one), Margins(one).html);
      bytes += parts.back().first.size() + parts.back().second.size();
    }
    bytes = bytes * 7 / 5;  // the first screen and the data of checks repeat some
    const std::size_t room =
        std::clamp(kPageBytes - std::min(bytes, kPageBytes), kLeastCurveBytes, kMostCurveBytes);
    const CurvesOfSides curves = CurvesOf(order_, in_a, in_b, room);
    std::string html =
        FilterForm("Change", {{"weak", "what got worse, weakest margins"}, {"name", "name"}});
    if (!curves.missing.empty()) {
      html += Hint("Some curves are not shown: " + curves.missing + ".").html;
    }
    html += "<div id=cases>";
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const bool has_curves = !curves.pictures[i].is_null();
      html += parts[i].first + (has_curves ? "<div class=charts></div>" : kNoCurves) +
              parts[i].second + "</div></details>\n";
      if (has_curves) AddData(i, cases_.at(order_[i]), curves.pictures[i]);
    }
    return Section("Cases", {html + "</div>"});
  }

  std::string PartAbove(std::size_t i, const OfCase& one) const {
    const Look& look = kLooks[one.change];
    return fmt::format("<details class=\"case {}\" id=c{} data-verdict=\"{}\" data-name=\"",
                       look.css_class, i, look.word) +
           Html(order_[i]) + "\" data-seconds=0><summary><span class=sign>" + look.sign +
           "</span> <b>" + Html(order_[i]) + "</b> <span class=outcome>" + look.word +
           "</span><span class=margin>" + (one.margins.empty() ? "" : Weakest(one).html) +
           "</span><span class=seconds></span></summary><div class=body>" + List(one.said).html;
  }

  // The margin of B that is nearest to flipping.
  static Markup Weakest(const OfCase& one) {
    const auto strength = [](const Json* margin) {
      const auto unit = formula::FindUnit(TextAt(*margin, "unit")).value_or(formula::Unit::kPlain);
      return MarginStrength(NumberIn(margin->at("median_b")).value_or(0), unit);
    };
    const Json& least =
        **std::min_element(one.margins.begin(), one.margins.end(),
                           [&](const Json* a, const Json* b) { return strength(a) < strength(b); });
    return MarginOf(least.at("median_b"), least.at("median_a"), TextAt(least, "unit"));
  }

  Markup Margins(const OfCase& one) const {
    std::vector<TableRow> rows;
    for (const Json* margin : one.margins) {
      const bool is_worse = margin->at("worse").get<bool>();
      rows.push_back(
          {{Words((is_worse ? "✗ " : "") + TextAt(*margin, "arm")), Words(TextAt(*margin, "check")),
            Shown(margin->at("median_a")),
            MarginOf(margin->at("median_b"), margin->at("median_a"), TextAt(*margin, "unit")),
            ShiftOf(*margin), Shown(margin->at("superiority")),
            Words(fmt::format("{} / {}", margin->at("seeds_a").get<int>(),
                              margin->at("seeds_b").get<int>())),
            WhyOf(*margin, report_)},
           is_worse ? "broken" : ""});
    }
    return Table("margins",
                 {{"arm"},
                  {"check"},
                  {"A", true},
                  {"B (bar), A (tick)"},
                  {"shift, 90% interval"},
                  {"P(B > A)", true},
                  {"seeds", true},
                  {"answer"}},
                 rows);
  }

  // Control where it has other bits: it is the simplest.
  static std::string ArmOfOtherBits(const OfCase& one) {
    for (const Json* change : one.bits) {
      if (TextAt(*change, "arm") == "control") return "control";
    }
    return one.bits.empty() ? "control" : CleanText(TextAt(*one.bits.front(), "arm"));
  }

  // A chart's data, as main.js and chart.js expect them.
  void AddData(std::size_t i, const OfCase& one, const Json& curves) {
    Json picture = curves, checks = Json::array();
    std::string shown;  // one arm: where a margin moved, else where bits did
    for (const Json* margin : one.margins) {
      const bool is_different =
          margin->at("counts").get<bool>() && margin->at("answer") == "different";
      if (is_different && shown.empty()) shown = CleanText(TextAt(*margin, "arm"));
      checks.push_back({CleanText(TextAt(*margin, "check")),
                        "B: " + CleanText(TextAt(*margin, "arm")), margin->value("expected", true),
                        is_different, "", Json::array(), CleanText(TextAt(*margin, "formula"))});
    }
    if (shown.empty()) shown = ArmOfOtherBits(one);
    picture["shown"] = {"A: " + shown, "B: " + shown};
    page_.data += DataScript(fmt::format("d{}", i), {{"picture", picture}, {"checks", checks}});
  }

  Markup Speed() const {
    std::vector<TableRow> rows;
    for (const Json& speed : report_.at("speed")) {
      rows.push_back(
          {{Words(TextAt(speed, "case")), RatioOf(speed, "step_time"), RatioOf(speed, "memory")},
           ""});
    }
    const std::string note = TextAt(report_, "speed_note");
    return Table("speed", {{"case"}, {"step time", true}, {"peak memory", true}}, rows) +
           (note.empty() ? Markup() : Hint(note));
  }

  // The page stays below 8 MB: what the tables leave, curves may take.
  static constexpr std::size_t kPageBytes = 7'500'000, kLeastCurveBytes = 1'000'000,
                               kMostCurveBytes = 5'500'000;
  static constexpr const char* kNoCurves =
      "<p class=hint>The curves of this case are not in this file.</p>";
  static constexpr std::size_t kMostLines = 8;  // of a case on the first screen

  const Json& report_;
  HtmlPage& page_;
  std::map<std::string, OfCase> cases_;
  std::vector<std::string> order_;
};

void ComparePage(const Json& report, HtmlPage& page) { ComparePageWriter(report, page).Write(); }

const PageRegistration registration({.schema = "trainwreck/comparison", .write = ComparePage});

}  // namespace
}  // namespace trainwreck
