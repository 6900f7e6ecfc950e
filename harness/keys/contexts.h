// Contexts: kinds of runs in which a key might be ignored. The roles of recipe keys
// (protocol/recipe_view.h) and the target's features say how to make such a run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/protocol/description.h"
#include "harness/protocol/plan.h"

namespace trainwreck {

enum class KeyContext { kPlain, kResume, kRanks, kAccumulation };
inline constexpr KeyContext kKeyContexts[] = {KeyContext::kPlain, KeyContext::kResume,
                                              KeyContext::kRanks, KeyContext::kAccumulation};
const char* ToString(KeyContext context);  // "plain", "resume", "ranks", "accumulation"
const char* MeaningOf(KeyContext context);
std::optional<KeyContext> FindKeyContext(const std::string& name);

struct ContextPlan {
  std::string lacking;        // not empty: why the target cannot have it
  Recipe recipe;              // of the base run
  bool changes_late = false;  // keys are changed after a save and a resume only
};

ContextPlan PlanContext(KeyContext context, const Recipe& base, const TargetDescription& target);

// Why the key is not tried in the context; empty: it is.
std::string ReasonToLeaveOut(const std::string& key, KeyContext context,
                             const TargetDescription& target);

}  // namespace trainwreck
