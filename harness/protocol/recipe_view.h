// Typed reading of a recipe, and the one list of recipe keys that the harness knows by name.
//
//   const RecipeView recipe(plan.recipe, &target);
//   const int steps = recipe.Int(KeyRole::kSteps).value_or(0);
#pragma once

#include <optional>
#include <string>

#include "harness/protocol/description.h"
#include "harness/protocol/plan.h"

namespace trainwreck {

// What a key is for, whatever a target calls it.
enum class KeyRole {
  kSteps,
  kRanks,
  kDevice,
  kPrecision,
  kLearningRate,
  kClipNorm,
  kBatchSize,
  kSamples,
  kAccumulation,
  kLoaderGuard,
  kModelKind,
  kModelLayers,
  kModelWidth,
  kMaxRestarts,
  kStallSeconds,
};
const char* KeyOf(KeyRole role);  // "optimizer.lr"

// A value is the recipe's, else the description's default (with a description). Empty: there is no
// such key, or its value is of another type. The recipe and the description must outlive it.
class RecipeView {
 public:
  explicit RecipeView(const Recipe& recipe, const TargetDescription* target = nullptr)
      : recipe_(recipe), target_(target) {}

  std::optional<double> Number(const std::string& key) const;
  std::optional<int> Int(const std::string& key) const;  // of 2.7: 2
  std::optional<bool> Bool(const std::string& key) const;
  std::optional<std::string> Text(const std::string& key) const;

  std::optional<double> Number(KeyRole role) const { return Number(KeyOf(role)); }
  std::optional<int> Int(KeyRole role) const { return Int(KeyOf(role)); }
  std::optional<std::string> Text(KeyRole role) const { return Text(KeyOf(role)); }

 private:
  const Json* Find(const std::string& key) const;

  const Recipe& recipe_;
  const TargetDescription* target_;
};

}  // namespace trainwreck
