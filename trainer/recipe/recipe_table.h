// The table behind recipe.h: every key of the recipe with its description and how it is set. What
// `--describe` lists and what ParseRecipe takes both follow from a row.
#pragma once

#include <functional>
#include <vector>

#include "harness/protocol/description.h"
#include "harness/protocol/json.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {

struct RecipeKey {
  ParamInfo info;
  std::function<void(TrainingRecipe&, const Json&)> set;
};

const std::vector<RecipeKey>& RecipeTable();

// Its rows of data, of fine-tuning on other data, and of evaluations.
void AddDataKeys(std::vector<RecipeKey>& keys);

}  // namespace trainwreck
