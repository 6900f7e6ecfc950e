// The checks and the choice that precede a corruption, on CPU and GPU alike.
#pragma once

#include "kernels/corrupt_element.h"

namespace trainwreck::kernels {

// Throws std::invalid_argument as Corrupt does.
Selection PlanCorruption(const TensorView& tensor, const Corruption& corruption);

}  // namespace trainwreck::kernels
