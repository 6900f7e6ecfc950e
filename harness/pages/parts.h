// What the pages are made of. All texts are escaped here; HTML is a type of its own, so that a text
// cannot be taken for it. Private to this package.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/formula/formula.h"
#include "harness/protocol/json.h"
#include "harness/report/html_page.h"
#include "harness/report/html_text.h"

namespace trainwreck {

// HTML that was made here.
struct Markup {
  std::string html;
  Markup& operator+=(const Markup& more) {
    html += more.html;
    return *this;
  }
  friend Markup operator+(Markup a, const Markup& b) { return a += b; }
};

Markup Words(const std::string& text);  // escaped
Markup Code(const std::string& text);
Markup Bold(const std::string& text);
Markup Faint(const std::string& text);

// A number with four digits; the element has all of them. "–" for null.
Markup Shown(const Json& number);
Markup Shown(double number);
Markup Percent(const Json& share);  // "97.5%"

// "✗ 3 worse" in the colour of the class: pass, fail, open, error, skip, limit.
Markup Chip(const std::string& css_class, const std::string& text);

struct TableRow {
  std::vector<Markup> cells;
  std::string css_class;  // "broken" marks it
};

struct TableHead {
  std::string text;
  bool is_number = false;
};

// `label` is read out. Empty rows: nothing.
Markup Table(const std::string& label, const std::vector<TableHead>& heads,
             const std::vector<TableRow>& rows);

// Empty content: nothing.
Markup Section(const std::string& heading, const Markup& content);
Markup Paragraph(const Markup& content);
Markup Hint(const std::string& text);
Markup List(const std::vector<Markup>& items);
Markup Folded(const std::string& summary, const Markup& content);
Markup ChartOf(const std::string& id, const std::string& label, const Json& spec, HtmlPage& page);

// The text at `key`; a number or a list as JSON has it; empty: it is missing or null.
std::string TextAt(const Json& json, const std::string& key);
// The number; nothing for null. Throws Json::exception for what is none.
std::optional<double> NumberIn(const Json& json);
std::vector<std::string> TextsAt(const Json& json, const std::string& key);

// The margin as a bar with a tick where another side has it.
Markup MarginOf(const Json& margin, const Json& other, const std::string& unit);

}  // namespace trainwreck
