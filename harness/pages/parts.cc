#include "harness/pages/parts.h"

#include <fmt/format.h>

#include "harness/report/console.h"
#include "harness/report/text.h"

namespace trainwreck {
namespace {

Markup Tagged(const std::string& tag, const std::string& text) {
  return {"<" + tag + ">" + Html(text) + "</" + tag.substr(0, tag.find(' ')) + ">"};
}

std::string IdOf(const std::string& heading) {
  std::string id = "h-";
  for (char c : heading) id += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '-';
  return id;
}

}  // namespace

Markup Words(const std::string& text) { return {Html(text)}; }
Markup Code(const std::string& text) { return Tagged("code", text); }
Markup Bold(const std::string& text) { return Tagged("b", text); }
Markup Faint(const std::string& text) { return Tagged("span class=hint", text); }

Markup Shown(const Json& number) {
  const std::optional<double> value = NumberIn(number);
  if (!value) return {"–"};
  return {"<data value=\"" + Html(number.is_string() ? number.get<std::string>() : number.dump()) +
          "\">" + Html(FormatNumber(*value)) + "</data>"};
}

Markup Shown(double number) { return Shown(EncodeNumber(number)); }

Markup Percent(const Json& share) {
  const std::optional<double> value = NumberIn(share);
  if (!value) return {"–"};
  return {"<data value=\"" + Html(share.dump()) + "\">" + fmt::format("{:.1f}%", 100 * *value) +
          "</data>"};
}

Markup Chip(const std::string& css_class, const std::string& text) {
  return {"<span class=\"chip " + css_class + "\">" + Html(text) + "</span> "};
}

Markup Table(const std::string& label, const std::vector<TableHead>& heads,
             const std::vector<TableRow>& rows) {
  if (rows.empty()) return {};
  std::string html = "<div class=scroll tabindex=0 role=group aria-label=\"" + Html(label) +
                     "\"><table class=plain><thead><tr>";
  for (const TableHead& head : heads) {
    html += std::string(head.is_number ? "<th class=n scope=col>" : "<th scope=col>") +
            Html(head.text) + "</th>";
  }
  html += "</tr></thead><tbody>";
  for (const TableRow& row : rows) {
    html += row.css_class.empty() ? "<tr>" : "<tr class=" + row.css_class + ">";
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      html += std::string(i < heads.size() && heads[i].is_number ? "<td class=n>" : "<td>") +
              row.cells[i].html + "</td>";
    }
    html += "</tr>";
  }
  return {html + "</tbody></table></div>"};
}

Markup Section(const std::string& heading, const Markup& content) {
  if (content.html.empty()) return {};
  const std::string id = IdOf(heading);
  return {"<section aria-labelledby=" + id + "><h2 id=" + id + ">" + Html(heading) + "</h2>" +
          content.html + "</section>"};
}

Markup Paragraph(const Markup& content) { return {"<p>" + content.html + "</p>"}; }
Markup Hint(const std::string& text) { return Tagged("p class=hint", text); }

Markup List(const std::vector<Markup>& items) {
  if (items.empty()) return {};
  std::string html = "<ul>";
  for (const Markup& item : items) html += "<li>" + item.html + "</li>";
  return {html + "</ul>"};
}

Markup Folded(const std::string& summary, const Markup& content) {
  if (content.html.empty()) return {};
  return {"<details class=part><summary>" + Html(summary) + "</summary>" + content.html +
          "</details>"};
}

Markup ChartOf(const std::string& id, const std::string& label, const Json& spec, HtmlPage& page) {
  return {Plot(id, label, spec, page.data)};
}

std::string TextAt(const Json& json, const std::string& key) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return "";
  return found->is_string() ? found->get<std::string>()
                            : found->dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<double> NumberIn(const Json& json) {
  if (json.is_null()) return std::nullopt;
  const std::optional<double> value = DecodeNumber(json);
  return value ? *value : json.get<double>();  // throws
}

std::vector<std::string> TextsAt(const Json& json, const std::string& key) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return {};
  return found->get<std::vector<std::string>>();
}

Markup MarginOf(const Json& margin, const Json& other, const std::string& unit) {
  const std::optional<double> value = NumberIn(margin), tick = NumberIn(other);
  if (!value) return {"–"};
  const formula::Unit known = formula::FindUnit(unit).value_or(formula::Unit::kPlain);
  const std::string text = FormatMargin(*value, known);
  return {"<span class=margin>" +
          MarginBar(*value, tick ? std::vector<double>{*tick} : std::vector<double>{}, {}, known,
                    "margin " + text) +
          " " + Shown(margin).html + " " + Html(formula::ToString(known)) + "</span>"};
}

}  // namespace trainwreck
