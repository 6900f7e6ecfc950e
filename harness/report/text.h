// Makes foreign texts, such as a dying rank's last words, safe to print and to store. For this
// package and other reports.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "harness/judge/verdict.h"
#include "harness/text/clean_text.h"

namespace trainwreck {

// One cell or line of Markdown: nothing in it is markup.
std::string EscapeMarkdown(const std::string& text);

// "0.31", "1.2e-05", "nan", "-inf": four significant digits.
std::string FormatNumber(double value);

// "12.3"
std::string FormatSeconds(double seconds);

// A failed check, as every report shows it: "file:12:5: symptom_absent: 'blows_up' in fault", then
// labels with their texts (formula, claim, seen, margin, repeat), as far as there are any.
std::string FailureHeading(const CheckResult& check);
std::vector<std::pair<std::string, std::string>> FailureLines(const CheckResult& check);

// Arms that are broken on purpose are strange on purpose: notes of their runs are for those who
// look closely.
bool IsForAllReaders(const Note& note);

// "note: control seed 0, step 12 (and 2 more seeds): loss is exactly 0"
std::string NoteLine(const Note& note);

// The text in ASCII.
std::string UpperCase(std::string text);

}  // namespace trainwreck
