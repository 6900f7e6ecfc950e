// Loss scaling for 16-bit gradients (Micikevicius et al. 2018, "Mixed precision training"): the
// loss is multiplied by a scale, so that small gradients do not vanish on their way back, and the
// gradients are divided by it before anyone looks at them.
#pragma once

#include <c10/core/Device.h>

#include <memory>

#include "trainer/parts.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {

// The scaler of the recipe's kind, for gradients on `device`:
// none     the scale is 1, nothing is checked and no update is left out;
// static   the scale stays what it was at first, updates that overflowed are left out;
// dynamic  such an update multiplies the scale by backoff_factor, growth_interval good ones in a
//          row by growth_factor (as torch.amp.GradScaler).
// State: scaler.scale and scaler.good_steps (dynamic).
std::unique_ptr<LossScaler> MakeLossScaler(const ScalerRecipe& recipe, c10::Device device);

}  // namespace trainwreck
