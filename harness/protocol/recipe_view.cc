#include "harness/protocol/recipe_view.h"

#include <cstddef>
#include <iterator>
#include <limits>

namespace trainwreck {
namespace {

struct KeyName {
  KeyRole role;
  const char* name;
};

constexpr KeyName kKeys[] = {
    {KeyRole::kSteps, "steps"},
    {KeyRole::kRanks, "parallel.ranks"},
    {KeyRole::kDevice, "device"},
    {KeyRole::kPrecision, "precision"},
    {KeyRole::kLearningRate, "optimizer.lr"},
    {KeyRole::kClipNorm, "optimizer.clip_norm"},
    {KeyRole::kBatchSize, "data.batch_size"},
    {KeyRole::kSamples, "data.samples"},
    {KeyRole::kAccumulation, "accumulation"},
    {KeyRole::kLoaderGuard, "loader.guard"},
    {KeyRole::kModelKind, "model.kind"},
    {KeyRole::kModelLayers, "model.layers"},
    {KeyRole::kModelWidth, "model.width"},
    {KeyRole::kMaxRestarts, "supervisor.max_restarts"},
    {KeyRole::kStallSeconds, "supervisor.stall_s"},
};

constexpr bool IsInOrder() {
  for (std::size_t i = 0; i < std::size(kKeys); ++i) {
    if (static_cast<std::size_t>(kKeys[i].role) != i) return false;
  }
  return std::size(kKeys) == static_cast<std::size_t>(KeyRole::kStallSeconds) + 1;
}
static_assert(IsInOrder(), "each role has its row, at its own place");

}  // namespace

const char* KeyOf(KeyRole role) { return kKeys[static_cast<std::size_t>(role)].name; }

const Json* RecipeView::Find(const std::string& key) const {
  if (const auto found = recipe_.find(key); found != recipe_.end()) return &found->second;
  const ParamInfo* info = target_ == nullptr ? nullptr : target_->FindRecipeKey(key);
  return info == nullptr ? nullptr : &info->default_value;
}

std::optional<double> RecipeView::Number(const std::string& key) const {
  const Json* value = Find(key);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->get<double>();
}

std::optional<int> RecipeView::Int(const std::string& key) const {
  const std::optional<double> value = Number(key);
  const bool fits = value && *value >= std::numeric_limits<int>::min() &&
                    *value <= std::numeric_limits<int>::max();  // no NaN does
  return fits ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

std::optional<bool> RecipeView::Bool(const std::string& key) const {
  const Json* value = Find(key);
  if (value == nullptr || !value->is_boolean()) return std::nullopt;
  return value->get<bool>();
}

std::optional<std::string> RecipeView::Text(const std::string& key) const {
  const Json* value = Find(key);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return value->get<std::string>();
}

}  // namespace trainwreck
