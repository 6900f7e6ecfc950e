// The agreement of two runs in a signal, as a formula.
#pragma once

#include <string>

#include "harness/protocol/description.h"

namespace trainwreck {

// The formula. `within` is "rounding", "bitwise", or a share of control's value such as "1e-4". The
// signal is written as in formulas: "grad_norm{head.*}".
std::string AgreementOn(const std::string& signal, const std::string& within,
                        const TargetDescription& target);

}  // namespace trainwreck
