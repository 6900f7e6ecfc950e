// The frame that all pages share: one HTML file that needs no network, with the style and the
// scripts of page/. Tables are plain HTML and can be read without JavaScript; page/*.js adds
// filters and charts.
//
//   HtmlPage page = {.title = "trainwreck: the same", .source = "comparison.json"};
//   page.main = "<section>" + Html(text) + "</section>" + Plot("p0", "loss by rate", spec, page.data);
//   WriteWholeFile(path, PageText(page));
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/protocol/json.h"

namespace trainwreck {

struct HtmlPage {
  std::string title;    // text; also its heading
  std::string header;   // HTML below the heading
  std::string main;     // HTML
  std::string data;     // <script> elements of JSON, for charts
  std::string source;   // the report whose numbers the page has; may be empty
  std::string version;  // of trainwreck; may be empty
};

std::string PageText(const HtmlPage& page);

// The form above a list of <details class=case> in <div id=cases>: search, filter by `kind`, sort
// by one of `orders` (a value for list.js, a text). Without JavaScript it stays hidden.
std::string FilterForm(const std::string& kind,
                       const std::vector<std::pair<std::string, std::string>>& orders);

// JSON for the scripts, found by its id.
std::string DataScript(const std::string& id, const Json& json);

// A chart of curves that page/plot.js draws when it comes into view. What it shows must stand in a
// table, too. `spec`:
//
//   { "x": {"name": "learning rate", "log": true, "labels": ["a1b2c3", ..]},  labels: of 0, 1, ..
//     "y": {"name": "end loss", "log": false, "from": 0, "to": 1},
//     "lines": [{"name": "loss", "points": [[x, y | "inf"], ..], "ranges": [[x, lo, hi], ..],
//                "dots": true}],
//     "bands": [{"from": x, "to": x, "name": ".."}],
//     "marks": [{"x": x, "name": ".."}],   a line across
//     "levels": [{"y": y, "name": ".."}] }
std::string Plot(const std::string& id, const std::string& label, const Json& spec,
                 std::string& data);

}  // namespace trainwreck
