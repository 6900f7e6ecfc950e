#include "harness/keys/contexts.h"

#include <algorithm>
#include <iterator>

#include "harness/protocol/recipe_view.h"

namespace trainwreck {
namespace {

struct ContextRow {
  KeyContext context;
  const char* name;
  const char* meaning;
};

constexpr ContextRow kRows[] = {
    {KeyContext::kPlain, "plain", "the recipe as it is"},
    {KeyContext::kResume, "resume", "half of the steps, a save, then the changed key"},
    {KeyContext::kRanks, "ranks", "two ranks"},
    {KeyContext::kAccumulation, "accumulation", "two micro-batches a step"},
};

const ContextRow& RowOf(KeyContext context) {
  return *std::find_if(std::begin(kRows), std::end(kRows),
                       [&](const ContextRow& row) { return row.context == context; });
}

// A value of 2 for a key of which the recipe says 1; `info`: null, if there is no such key.
ContextPlan WithTwo(const ParamInfo* info, const std::string& what, const Recipe& base,
                    const TargetDescription& target) {
  ContextPlan plan;
  if (info == nullptr) {
    plan.lacking = "the target has no " + what;
  } else if (RecipeView(base, &target).Int(info->name).value_or(1) > 1) {
    plan.lacking = "the recipe itself has " + info->name + " above 1: see plain";
  } else if (const std::string wrong = CheckValue(*info, 2); !wrong.empty()) {
    plan.lacking = info->name + " " + wrong;
  } else {
    plan.recipe = base;
    plan.recipe[info->name] = 2;
  }
  return plan;
}

ContextPlan WithResume(const Recipe& base, const TargetDescription& target) {
  ContextPlan plan;
  // A target of level 2 is trusted to know what phases are.
  if (target.level < 2 && !(target.HasFeature("phases") && target.HasFeature("resume"))) {
    plan.lacking = "the target cannot stop at a step and resume";
  } else if (RecipeView(base, &target).Int(kStepsKey).value_or(0) < 2) {
    plan.lacking = std::string("the recipe has no ") + kStepsKey + ", or less than 2";
  } else {
    plan.recipe = base;
    plan.changes_late = true;
  }
  return plan;
}

}  // namespace

const char* ToString(KeyContext context) { return RowOf(context).name; }

const char* MeaningOf(KeyContext context) { return RowOf(context).meaning; }

std::optional<KeyContext> FindKeyContext(const std::string& name) {
  for (const ContextRow& row : kRows) {
    if (name == row.name) return row.context;
  }
  return std::nullopt;
}

ContextPlan PlanContext(KeyContext context, const Recipe& base, const TargetDescription& target) {
  switch (context) {
    case KeyContext::kPlain:
      return {.lacking = "", .recipe = base};
    case KeyContext::kResume:
      return WithResume(base, target);
    case KeyContext::kRanks:
      return WithTwo(target.FindRecipeKey(kRanksKey), std::string("key ") + kRanksKey, base,
                     target);
    case KeyContext::kAccumulation:
      return WithTwo(KeyWithRole(target, KeyRole::kAccumulation),
                     std::string("key with the role ") + ToString(KeyRole::kAccumulation), base,
                     target);
  }
  return {};
}

std::string ReasonToLeaveOut(const std::string& key, KeyContext context,
                             const TargetDescription& target) {
  if (key == kMaxRestartsKey || key == kBackoffSecondsKey || key == kWindowSecondsKey ||
      key == kStallSecondsKey) {
    return "read by trainwreck, not by the target";
  }
  if (key == kLauncherKey) return "another launcher may not be on this machine";
  if (key == kDeviceKey && target.devices.size() < 2) {
    return "this machine has no other device";
  }
  if (key == kRanksKey && context == KeyContext::kResume) {
    return "a run has the same ranks in all phases";
  }
  const ParamInfo* accumulation = KeyWithRole(target, KeyRole::kAccumulation);
  if ((key == kRanksKey && context == KeyContext::kRanks) ||
      (accumulation != nullptr && key == accumulation->name &&
       context == KeyContext::kAccumulation)) {
    return "it makes this context";
  }
  return "";
}

}  // namespace trainwreck
