// The data of a run, as its recipe says.
#pragma once

#include <cstdint>
#include <memory>

#include "trainer/build.h"

namespace trainwreck {

// Streams of a run's seed, so that no two parts draw the same numbers.
enum SeedStream : std::uint64_t { kModelSeed = 1, kDataSeed, kOrderSeed };

// Held-out and training data, and those of the task before fine-tuning, into `parts`. Reports what
// training and held-out data have in common where the recipe asks. Throws GuardStop where it says
// stop and something is left.
void BuildData(const TrainingRecipe& recipe, const Plan& plan, TraceSink& sink,
               const Wrappers& wrappers, Parts& parts);

}  // namespace trainwreck
