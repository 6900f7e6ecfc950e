// One row of the recipe's table (recipe_table.h): its makers, which take name, default, range and
// meaning of a key and how it is set from one mention of the member. For recipe_table.cc alone.
#pragma once

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "harness/protocol/recipe_view.h"
#include "trainer/recipe/recipe_table.h"

namespace trainwreck {

// `field` maps a recipe to a reference to the member; the default is the member's own.
template <typename Field>
RecipeKey Number(const char* name, Field field, const char* unit, double min, const char* doc) {
  TrainingRecipe fresh;
  using T = std::remove_reference_t<decltype(field(fresh))>;
  RecipeKey key;
  key.info.name = name;
  key.info.type = std::is_integral_v<T> ? ValueType::kInt : ValueType::kNumber;
  key.info.default_value = field(fresh);
  key.info.min = min;
  key.info.unit = unit;
  key.info.doc = doc;
  key.set = [field](TrainingRecipe& recipe, const Json& value) { field(recipe) = value.get<T>(); };
  return key;
}

template <typename Field>
RecipeKey Plain(const char* name, Field field, const char* doc) {
  TrainingRecipe fresh;
  using T = std::remove_reference_t<decltype(field(fresh))>;
  RecipeKey key;
  key.info.name = name;
  key.info.type = std::is_same_v<T, bool> ? ValueType::kBool : ValueType::kString;
  key.info.default_value = field(fresh);
  key.info.doc = doc;
  key.set = [field](TrainingRecipe& recipe, const Json& value) { field(recipe) = value.get<T>(); };
  return key;
}

// An enumerator and what recipes call it.
template <typename Field>
using Choices = std::vector<
    std::pair<std::string, std::remove_reference_t<std::invoke_result_t<Field, TrainingRecipe&>>>>;

template <typename Field>
RecipeKey Choice(const char* name, Field field, Choices<Field> choices, const char* doc) {
  TrainingRecipe fresh;
  RecipeKey key;
  key.info.name = name;
  key.info.type = ValueType::kString;
  key.info.doc = doc;
  for (const auto& [text, value] : choices) {
    key.info.choices.push_back(text);
    if (value == field(fresh)) key.info.default_value = text;
  }
  key.set = [field, choices = std::move(choices)](TrainingRecipe& recipe, const Json& value) {
    for (const auto& [text, enumerator] : choices) {
      if (text == value) field(recipe) = enumerator;
    }
  };
  return key;
}

inline RecipeKey Bounded(RecipeKey key, double max) {
  key.info.max = max;
  return key;
}

inline RecipeKey WithRole(KeyRole role, RecipeKey key) {
  key.info.role = ToString(role);
  return key;
}

}  // namespace trainwreck
