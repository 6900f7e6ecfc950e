// One case in report.html. Private to this package.
#pragma once

#include <cstddef>
#include <string>
#include <tuple>

#include "harness/judge/verdict.h"
#include "harness/report/html_text.h"
#include "harness/report/report.h"

namespace trainwreck {

Sign SignOf(const Verdict& verdict);

// The smaller, the more it needs to be looked at.
std::tuple<int, double> WeaknessOf(const Verdict& verdict);

// ", margin +0.25 octaves"; empty: there is none.
std::string MarginWords(const Verdict& verdict);

// A link to the case, which is the `index`-th of the invocation.
std::string LinkTo(const Verdict& verdict, std::size_t index);

struct CaseHtml {
  std::string part;  // a <details>: tables of its arms and checks
  std::string data;  // a <script> of JSON for its charts; they stand at the page's end, so that
                     // browsers show the tables first
};
CaseHtml HtmlOf(const Verdict& verdict, std::size_t index, const RunInfo& info);

}  // namespace trainwreck
