// One input for the fuzzers: a formula's text, parsed, printed, checked and read over runs of every
// sort.
#pragma once

#include <string_view>

namespace trainwreck::formula::testing {

// Aborts with a message when a promise of formula.h is broken.
void FuzzOne(std::string_view text);

}  // namespace trainwreck::formula::testing
