// What it means that two runs agree in a signal, in the language of formulas.
#pragma once

#include <string>

#include "harness/protocol/description.h"

namespace trainwreck {

// `within`: "rounding", "bitwise", or a share of control's value such as "1e-4". The signal as in
// formulas: "grad_norm{head.*}".
std::string AgreementOn(const std::string& signal, const std::string& within,
                        const TargetDescription& target);

}  // namespace trainwreck
