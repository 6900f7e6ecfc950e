#include "harness/keys/contexts.h"

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

// A value of 2 for a key of which the recipe says 1.
ContextPlan WithTwo(KeyRole role, const Recipe& base, const TargetDescription& target) {
  ContextPlan plan;
  const char* key = KeyOf(role);
  const ParamInfo* info = target.FindRecipeKey(key);
  if (info == nullptr) {
    plan.lacking = std::string("the target has no key ") + key;
  } else if (RecipeView(base, &target).Int(role).value_or(1) > 1) {
    plan.lacking = std::string("the recipe itself has ") + key + " above 1: see plain";
  } else if (const std::string wrong = CheckValue(*info, 2); !wrong.empty()) {
    plan.lacking = std::string(key) + " " + wrong;
  } else {
    plan.recipe = base;
    plan.recipe[key] = 2;
  }
  return plan;
}

ContextPlan WithResume(const Recipe& base, const TargetDescription& target) {
  ContextPlan plan;
  // A target of level 2 is trusted to know what phases are.
  if (target.level < 2 && !(target.HasFeature("phases") && target.HasFeature("resume"))) {
    plan.lacking = "the target cannot stop at a step and resume";
  } else if (RecipeView(base, &target).Int(KeyRole::kSteps).value_or(0) < 2) {
    plan.lacking = std::string("the recipe has no ") + KeyOf(KeyRole::kSteps) + ", or less than 2";
  } else {
    plan.recipe = base;
    plan.changes_late = true;
  }
  return plan;
}

}  // namespace

const char* ToString(KeyContext context) { return kRows[static_cast<int>(context)].name; }

const char* MeaningOf(KeyContext context) { return kRows[static_cast<int>(context)].meaning; }

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
      return WithTwo(KeyRole::kRanks, base, target);
    case KeyContext::kAccumulation:
      return WithTwo(KeyRole::kAccumulation, base, target);
  }
  return {};
}

std::string ReasonToLeaveOut(const std::string& key, KeyContext context,
                             const TargetDescription& target) {
  if (key == KeyOf(KeyRole::kMaxRestarts) || key == KeyOf(KeyRole::kStallSeconds)) {
    return "read by trainwreck, not by the target";
  }
  if (key == KeyOf(KeyRole::kDevice) && target.devices.size() < 2) {
    return "this machine has no other device";
  }
  if (key == KeyOf(KeyRole::kRanks) && context == KeyContext::kResume) {
    return "a run has the same ranks in all phases";
  }
  if ((key == KeyOf(KeyRole::kRanks) && context == KeyContext::kRanks) ||
      (key == KeyOf(KeyRole::kAccumulation) && context == KeyContext::kAccumulation)) {
    return "it makes this context";
  }
  return "";
}

}  // namespace trainwreck
