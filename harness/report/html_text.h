// Foreign texts and small drawings for pages.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/formula/formula.h"
#include "harness/protocol/json.h"

namespace trainwreck {

// Text as the content of an element or of a quoted attribute. Control characters and marks that
// change the writing direction are shown as text (CleanText).
std::string Html(const std::string& text);

// JSON as the content of a <script>: nothing in it ends the element or begins a comment.
std::string JsonInScript(const Json& json);

// "✓", "✗", "≈" for a known limit, "?", "!", "–".
struct Sign {
  const char* symbol;
  const char* css_class;
  const char* meaning;
};

// Where a margin lies between -1 (far from holding) and 1 (holds by far): half way at one octave,
// 10 steps, 1 second or 1 of a plain quantity. So margins of different units can be sorted.
double MarginStrength(double margin, formula::Unit unit);

// An <svg> with a bar from 0 to `worst`, a tick for each of `seeds` and, if given, a mark at
// `least`, the smallest margin that the scenario allows. `label` is read out instead.
std::string MarginBar(double worst, const std::vector<double>& seeds,
                      const std::optional<double>& least, formula::Unit unit,
                      const std::string& label);

}  // namespace trainwreck
