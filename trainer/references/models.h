// Whole models in plain double arithmetic, over the formulas beside: the loss of a batch as a
// function of its parameters.
#pragma once

#include <vector>

#include "trainer/recipe/recipe.h"
#include "trainer/references/formulas.h"

namespace trainwreck::reference {

// A batch: token sequences, or all feature vectors as one element.
struct Example {
  std::vector<int> tokens;
  std::vector<int> documents;  // the number of each token's document; empty: the row is one
  Matrix features;
  Targets targets;
};

// `parameters` have the names and shapes of the model's of that kind; a vector is one row. In
// training mode, without dropout.
double Loss(const ModelRecipe& recipe, const Parameters& parameters,
            const std::vector<Example>& examples);

}  // namespace trainwreck::reference
