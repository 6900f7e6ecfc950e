// Checks that name other checks of their section: `loss_tells: never_moves and ...`. The name means
// that check's formula, so its truth and its margin combine like those of any other part.
#pragma once

#include "harness/spec/reader.h"

namespace trainwreck {

// Puts formulas in place of names. A check whose references are wrong is dropped, with an error.
void ResolveReferences(const TargetDescription& target, Errors& errors, Draft& draft);

// Where bytes [from, to) of a check's formula were written.
Position PlaceOf(const FormulaPlace& place, std::size_t from, std::size_t to, const Errors& errors);

// The check whose formula stands there in place of its name; empty: none does.
std::string ReferenceAt(const FormulaPlace& place, std::size_t from, std::size_t to);

}  // namespace trainwreck
