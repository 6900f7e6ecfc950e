#include "harness/report/html_case.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <vector>

#include "harness/protocol/parse_json.h"
#include "harness/report/console.h"
#include "harness/report/html_page.h"
#include "harness/report/text.h"
#include "harness/text/clean_text.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

constexpr int kSparkWidth = 32;

std::string Element(const std::string& tag, const std::string& text) {
  return "<" + tag + ">" + Html(text) + "</" + tag.substr(0, tag.find(' ')) + ">";
}

// Positive agrees with the claim; the end of the interval that speaks against it.
std::vector<double> MarginsBySeed(const CheckResult& check) {
  std::vector<double> margins;
  for (const formula::Reading& reading : check.readings) {
    const auto& margin = reading.margins[static_cast<int>(check.unit)];
    if (margin) margins.push_back(check.expected ? margin->lo : -margin->hi);
  }
  return margins;
}

class CasePage {
 public:
  CasePage(const Verdict& verdict, std::size_t index, const RunInfo& info)
      : verdict_(verdict), index_(index), info_(info), picture_(TryParseJson(verdict.picture)) {
    if (!picture_.is_object()) picture_ = PictureOfLosses();
  }

  std::string Text() const {
    const Sign sign = SignOf(verdict_);
    std::string html = "<details class=\"case " + std::string(sign.css_class) + "\" id=c" +
                       std::to_string(index_) + Attributes() + "><summary><span class=sign>" +
                       sign.symbol + "</span> " + Element("b", verdict_.case_name) + " " +
                       Element("span class=outcome", Outcome()) + Margin() +
                       Element("span class=seconds", FormatSeconds(verdict_.wall_seconds) + " s") +
                       "</summary><div class=body><p class=title>" + Html(verdict_.title) + "</p>";
    if (!verdict_.reason.empty()) html += Element("p class=reason", verdict_.reason);
    for (const std::string& remark : verdict_.remarks) html += Element("p class=remark", remark);
    html += Claims() + "<div class=charts></div>" + Arms() + Checks() + Changes() + Notes() +
            Folders() + "</div></details>\n";
    return html;
  }

  std::string DataText() const { return DataScript("d" + std::to_string(index_), Data()); }

 private:
  std::string Outcome() const {
    std::string text = ToString(verdict_.verdict);
    if (!verdict_.failure_class.empty()) text += " / " + verdict_.failure_class.text();
    if (verdict_.expected_limit) text += " (known limit)";
    return text;
  }

  std::string Attributes() const {
    std::string html = " data-name=\"" + Html(verdict_.case_name) + "\" data-verdict=\"" +
                       ToString(verdict_.verdict) + "\" data-seconds=\"" +
                       Json(verdict_.wall_seconds).dump() + "\"";
    if (verdict_.worst_margin) {
      html += " data-margin=\"" + Html(EncodeNumber(*verdict_.worst_margin).dump()) +
              "\" data-unit=\"" + formula::NameOf(verdict_.worst_margin_unit) + "\"";
    }
    return html;
  }

  std::string Margin() const {
    if (!verdict_.worst_margin) return "<span class=margin></span>";
    const std::string text = FormatMargin(*verdict_.worst_margin, verdict_.worst_margin_unit);
    return "<span class=margin>" +
           MarginBar(*verdict_.worst_margin, {}, {}, verdict_.worst_margin_unit,
                     "worst margin " + text) +
           " " + Html(text) + "</span>";
  }

  const Json* PictureArm(const std::string& name) const {
    const auto arms = picture_.find("arms");
    if (arms == picture_.end() || !arms->is_array()) return nullptr;
    for (const Json& arm : *arms) {
      if (arm.is_object() && arm.value("arm", Json()) == Json(CleanText(name))) return &arm;
    }
    return nullptr;
  }

  std::vector<const CheckResult*> ChecksOf(const std::string& arm) const {
    std::vector<const CheckResult*> checks;
    for (const CheckResult& check : verdict_.checks) {
      if (check.arm == arm) checks.push_back(&check);
    }
    return checks;
  }

  // "fault (fault): bad_sample: data.corrupt_sample (..). Must hold: turns_nan. Must not: .."
  std::string Claims() const {
    std::string html;
    for (const ArmSummary& arm : verdict_.arms) {
      std::string line = Element("b", arm.arm) + " (" + ToString(arm.kind) + ")";
      const Json* drawn = PictureArm(arm.arm);
      if (drawn != nullptr && drawn->contains("faults")) {
        for (const Json& fault : (*drawn)["faults"]) {
          if (fault.is_string()) line += ", with the fault " + Element("code", fault);
        }
      }
      if (arm.is_undo) line += ": it only takes the fault back, so it was not run";
      if (!arm.note.empty()) line += ": " + Html(arm.note);
      std::vector<std::string> holds, fails;
      for (const CheckResult* check : ChecksOf(arm.arm)) {
        (check->expected ? holds : fails).push_back(check->check);
      }
      if (!holds.empty()) line += "<br>must hold: " + Element("span", Join(holds));
      if (!fails.empty()) line += "<br>must not hold: " + Element("span", Join(fails));
      html += "<li>" + line + "</li>";
    }
    if (html.empty()) return "";
    return "<details class=part><summary>What it claims</summary><ul>" + html + "</ul></details>";
  }

  std::string Arms() const {
    if (verdict_.arms.empty()) return "";
    std::vector<const std::vector<double>*> all;
    for (const ArmSummary& arm : verdict_.arms) all.push_back(&arm.loss);
    const SparkScale scale = FitScale(all);
    std::string html =
        "<h3>Arms</h3><div class=scroll tabindex=0 role=group "
        "aria-label=arms><table><tr><th>arm<th>kind<th>status<th>final loss<th>loss "
        "of the median seed<th>ended</tr>";
    for (const ArmSummary& arm : verdict_.arms) {
      html += "<tr><td>" + Html(arm.arm) + "<td>" + ToString(arm.kind) + "<td>" +
              ToString(arm.status) + "<td class=n>" + FormatNumber(arm.final_loss) +
              "<td class=spark>" + Sparkline(arm.loss, kSparkWidth, true, scale) + "<td>" +
              Html(arm.ended) + "</tr>";
    }
    return html + "</table></div>";
  }

  std::optional<double> LeastMargin(const CheckResult& check) const {
    const auto margins = picture_.find("min_margins");
    if (margins == picture_.end() || !margins->is_object() || !check.expected) return {};
    const auto least = margins->find(CleanText(check.check));
    if (least == margins->end() || !least->is_array() || least->size() != 2) return {};
    if ((*least)[1] != Json(formula::NameOf(check.unit))) return {};
    return DecodeNumber((*least)[0]);
  }

  std::string Row(const CheckResult& check) const {
    const bool is_broken = !check.failure_class.empty();
    std::string html = std::string("<tr") + (is_broken ? " class=broken" : "") + "><td>" +
                       (is_broken ? "✗ " : "✓ ") + Html(check.arm) + "<td>" +
                       (check.expected ? "must hold" : "must not hold") + "<td>" +
                       Html(check.check) + "<td><code>" + (is_broken ? "<mark>" : "") +
                       Html(check.formula) + (is_broken ? "</mark>" : "") + "</code>";
    if (is_broken) {
      html += "<br><b>" + Html(check.failure_class.text()) + "</b>: " + Html(check.message);
      if (!check.place.empty()) html += "<br>" + Html(check.place);
      if (!check.suspects.empty()) html += "<br>look at: " + Html(Join(check.suspects));
      if (!check.rerun_command.empty()) {
        html += "<br><code class=copy>" + Html(check.rerun_command) + "</code>";
      }
    }
    html += "<td class=n>" + std::to_string(check.agree) + "/" +
            std::to_string(check.agree + check.disagree + check.unknown) + "<td class=margin>";
    if (check.worst_margin) {
      const std::string text = FormatMargin(*check.worst_margin, check.unit);
      const std::optional<double> least = LeastMargin(check);
      html += MarginBar(*check.worst_margin, MarginsBySeed(check), least, check.unit,
                        "margin " + text) +
              " " + Html(text);
      if (least) html += " (at least " + Html(FormatNumber(*least)) + ")";
    }
    return html + "<td>" + Html(check.seen) + "</tr>";
  }

  std::string Checks() const {
    if (verdict_.checks.empty()) return "";
    std::string broken, held;
    for (const CheckResult& check : verdict_.checks) {
      (check.failure_class.empty() ? held : broken) += Row(check);
    }
    return "<h3>Checks</h3><div class=scroll tabindex=0 role=group aria-label=checks><table "
           "class=checks><tr><th>arm<th>claim<th>check"
           "<th>formula<th>seeds<th>margin<th>seen</tr>" +
           broken + held + "</table></div>";
  }

  std::string Changes() const {
    std::string html;
    for (const ArmSummary& arm : verdict_.arms) {
      const Json* drawn = PictureArm(arm.arm);
      if (drawn == nullptr || !drawn->contains("changes")) continue;
      for (const Json& change : (*drawn)["changes"]) {
        if (!change.is_array() || change.size() != 3) continue;
        html += "<tr><td>" + Html(arm.arm);
        for (const Json& cell : change) {
          html += "<td><code>" + Html(cell.is_string() ? cell.get<std::string>() : cell.dump()) +
                  "</code>";
        }
        html += "</tr>";
      }
    }
    if (html.empty()) return "";
    return "<details class=part><summary>Recipes against control</summary><table><tr><th>arm"
           "<th>key<th>control<th>here</tr>" +
           html + "</table></details>";
  }

  std::string Notes() const {
    std::string html;
    for (const Note& note : verdict_.notes) html += Element("li", NoteLine(note));
    return html.empty()
               ? ""
               : "<details class=part><summary>Notes</summary><ul>" + html + "</ul></details>";
  }

  // What is not in this file lies there. Folders that were not kept have no link.
  std::string Folders() const {
    namespace fs = std::filesystem;
    std::error_code ignored;
    const fs::path here = fs::absolute(info_.report_file, ignored).parent_path();
    std::string html;
    for (const ArmSummary& arm : verdict_.arms) {
      const auto runs = verdict_.runs.find(arm.arm);
      if (runs == verdict_.runs.end()) continue;
      for (std::size_t seed = 0; seed < runs->second.size(); ++seed) {
        const std::string& folder = runs->second[seed].folder;
        if (folder.empty() || !fs::is_directory(folder, ignored)) continue;
        const std::string relative =
            fs::absolute(folder, ignored).lexically_relative(here).generic_string();
        html += "<a href=\"" + Html(PercentEncoded(relative)) + "/\">" + Html(arm.arm) + "/" +
                std::to_string(seed) + "</a> ";
      }
    }
    if (html.empty()) return "";
    return "<details class=part><summary>Folders of its runs, with all that was recorded"
           "</summary><p class=folders>" +
           html + "</p></details>";
  }

  static std::string PercentEncoded(const std::string& path) {
    std::string text = "./";  // a name with a colon is no scheme
    for (unsigned char c : path) {
      const bool is_plain = std::isalnum(c) != 0 || c == '/' || c == '.' || c == '-' || c == '_';
      char code[8];
      std::snprintf(code, sizeof code, is_plain ? "%c" : "%%%02X", c);
      text += code;
    }
    return text;
  }

  // Without stored curves: the loss of the median seed, which verdicts.json has.
  Json PictureOfLosses() const {
    Json arms = Json::array();
    for (const ArmSummary& arm : verdict_.arms) {
      Json runs = Json::array();
      if (!arm.steps.empty()) {
        Json gaps = Json::array(), values = Json::array();
        for (std::size_t i = 0; i < arm.steps.size(); ++i) {
          if (i > 0) gaps.push_back(arm.steps[i] - arm.steps[i - 1]);
          values.push_back(EncodeNumber(arm.loss[i]));
        }
        runs.push_back(
            {{"seed", arm.median_seed}, {"curves", {{"loss", {arm.steps.front(), gaps, values}}}}});
      }
      arms.push_back({{"arm", CleanText(arm.arm)}, {"kind", ToString(arm.kind)}, {"runs", runs}});
    }
    return {{"case", CleanText(verdict_.case_name)}, {"arms", arms}, {"log", {"loss"}}};
  }

  // The picture, and what the verdict says of each check in each seed.
  Json Data() const {
    Json checks = Json::array();
    for (const CheckResult& check : verdict_.checks) {
      std::string truths;
      Json steps = Json::array();
      for (const formula::Reading& reading : check.readings) {
        truths += formula::ToString(reading.truth)[0];
        steps.push_back(reading.step);
      }
      checks.push_back({CleanText(check.check), CleanText(check.arm), check.expected,
                        !check.failure_class.empty(), truths, std::move(steps),
                        CleanText(check.formula)});
    }
    return {{"picture", picture_}, {"checks", std::move(checks)}};
  }

  const Verdict& verdict_;
  std::size_t index_;
  const RunInfo& info_;
  Json picture_;
};

}  // namespace

Sign SignOf(const Verdict& verdict) {
  if (verdict.expected_limit) return {"≈", "limit", "passes: a known limit"};
  switch (verdict.verdict) {
    case VerdictKind::kPass:
      return {"✓", "pass", "passes"};
    case VerdictKind::kFail:
      return {"✗", "fail", "fails"};
    case VerdictKind::kInconclusive:
      return {"?", "open", "inconclusive"};
    case VerdictKind::kError:
      return {"!", "error", "error"};
    case VerdictKind::kSkip:
      return {"–", "skip", "skipped"};
  }
  return {"", "", ""};
}

std::tuple<int, double> WeaknessOf(const Verdict& verdict) {
  int place = 4;
  switch (verdict.verdict) {
    case VerdictKind::kFail:
      place = 0;
      break;
    case VerdictKind::kError:
      place = 1;
      break;
    case VerdictKind::kInconclusive:
      place = 2;
      break;
    case VerdictKind::kPass:
      place = verdict.expected_limit ? 4 : 3;
      break;
    case VerdictKind::kSkip:
      place = 5;
      break;
  }
  const double strength =
      verdict.worst_margin ? MarginStrength(*verdict.worst_margin, verdict.worst_margin_unit) : 1;
  return {place, strength};
}

std::string MarginWords(const Verdict& verdict) {
  if (!verdict.worst_margin) return "";
  return ", margin " + FormatMargin(*verdict.worst_margin, verdict.worst_margin_unit);
}

std::string LinkTo(const Verdict& verdict, std::size_t index) {
  const Sign sign = SignOf(verdict);
  return "<a class=\"" + std::string(sign.css_class) + "\" href=\"#c" + std::to_string(index) +
         "\">" + sign.symbol + " " + Html(verdict.case_name) + "</a>";
}

CaseHtml HtmlOf(const Verdict& verdict, std::size_t index, const RunInfo& info) {
  const CasePage page(verdict, index, info);
  return {page.Text(), page.DataText()};
}

}  // namespace trainwreck
