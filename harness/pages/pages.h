// The pages of verbs other than `run`: each shows one JSON report as an HTML file, in the look of
// report.html (report/html_page.h). A page is made from the report alone, so its numbers are those
// of the report, and a stored report can be drawn again. A page is one file that registers itself:
//
//   const PageRegistration registration({.schema = "trainwreck/dose", .write = DosePage});
//
//   WriteWholeFile(path, PageOf(search.ToJson(), version));
#pragma once

#include <stdexcept>
#include <string>

#include "harness/protocol/json.h"
#include "harness/report/html_page.h"

namespace trainwreck {

// The JSON is no report that has a page, or not as its schema says.
struct PageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws PageError.
std::string PageOf(const Json& report, const std::string& version);

bool HasPage(const std::string& schema);

// Reads a stored report. Throws PageError.
Json ReadReport(const std::string& path);

struct PageKind {
  std::string schema;
  void (*write)(const Json& report, HtmlPage& page) = nullptr;  // may throw Json::exception
};

class PageRegistration {
 public:
  explicit PageRegistration(PageKind kind);
};

}  // namespace trainwreck
