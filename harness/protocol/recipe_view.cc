#include "harness/protocol/recipe_view.h"

#include <algorithm>
#include <limits>

namespace trainwreck {
namespace {

struct RoleName {
  KeyRole role;
  const char* name;
  const char* usual_key;  // has the role where no key says that it has; "": none has it unsaid
};

constexpr RoleName kRoles[] = {
    {KeyRole::kLearningRate, "learning_rate", "optimizer.lr"},
    {KeyRole::kClipNorm, "clip_norm", "optimizer.clip_norm"},
    {KeyRole::kWarmupSteps, "warmup_steps", "schedule.warmup_steps"},
    {KeyRole::kWeightDecay, "weight_decay", "optimizer.weight_decay"},
    {KeyRole::kBatchSize, "batch_size", "data.batch_size"},
    {KeyRole::kAccumulation, "accumulation", ""},
    {KeyRole::kSamples, "samples", ""},
    {KeyRole::kWorkers, "loader_workers", ""},
    {KeyRole::kEvaluateEvery, "evaluate_every", ""},
    {KeyRole::kSaveEvery, "save_every", ""},
    {KeyRole::kPrecision, "precision", ""},
    {KeyRole::kLoaderGuard, "loader_guard", ""},
    {KeyRole::kRegularisation, "regularisation", ""},
    {KeyRole::kCost, "cost", ""},
};

// Whether several keys may have the role.
bool IsOfSeveralKeys(KeyRole role) {
  return role == KeyRole::kRegularisation || role == KeyRole::kCost;
}

// The row of a name such as `role.learning_rate`; null: it is no such name.
const RoleName* RowNamed(const std::string& path) {
  for (const RoleName& row : kRoles) {
    if (!IsOfSeveralKeys(row.role) && path == std::string(kRolePrefix) + row.name) return &row;
  }
  return nullptr;
}

}  // namespace

const char* ToString(KeyRole role) {
  for (const RoleName& row : kRoles) {
    if (row.role == role) return row.name;
  }
  return "";
}

std::vector<std::string> KeyRoleNames() {
  std::vector<std::string> names;
  for (const RoleName& row : kRoles) names.emplace_back(row.name);
  return names;
}

const ParamInfo* KeyWithRole(const TargetDescription& target, KeyRole role) {
  const auto found = std::find_if(target.recipe.begin(), target.recipe.end(),
                                  [&](const ParamInfo& key) { return key.role == ToString(role); });
  return found == target.recipe.end() ? nullptr : &*found;
}

std::optional<KeyRole> RoleNamed(const std::string& path) {
  const RoleName* row = RowNamed(path);
  return row == nullptr ? std::nullopt : std::optional(row->role);
}

const ParamInfo* ResolveKey(const TargetDescription& target, const std::string& path) {
  if (const ParamInfo* key = target.FindRecipeKey(path)) return key;
  const RoleName* row = RowNamed(path);
  if (row == nullptr) return nullptr;
  const ParamInfo* key = KeyWithRole(target, row->role);
  return key != nullptr ? key : target.FindRecipeKey(row->usual_key);
}

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

std::string RecipeView::KeyOf(KeyRole role) const {
  const ParamInfo* key = target_ == nullptr ? nullptr : KeyWithRole(*target_, role);
  return key == nullptr ? "" : key->name;
}

std::optional<double> RecipeView::Number(KeyRole role) const { return Number(KeyOf(role)); }

std::optional<int> RecipeView::Int(KeyRole role) const { return Int(KeyOf(role)); }

}  // namespace trainwreck
