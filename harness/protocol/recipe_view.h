// Typed reading of a recipe, and everything that the harness knows about recipe keys.
//
//   const RecipeView recipe(plan.recipe, &target);
//   const int steps = recipe.Int(kStepsKey).value_or(0);
//   const std::optional<double> rate = recipe.Number(KeyRole::kLearningRate);
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/protocol/description.h"
#include "harness/protocol/plan.h"

namespace trainwreck {

// Keys that mean the same in every target.
inline constexpr char kStepsKey[] = "steps";
inline constexpr char kRanksKey[] = "parallel.ranks";
inline constexpr char kDeviceKey[] = "device";
inline constexpr char kMaxRestartsKey[] = "supervisor.max_restarts";
inline constexpr char kBackoffSecondsKey[] = "supervisor.backoff_s";
inline constexpr char kWindowSecondsKey[] = "supervisor.window_s";
inline constexpr char kStallSecondsKey[] = "supervisor.stall_s";
inline constexpr char kLauncherKey[] = "parallel.launcher";
inline constexpr char kResumeRanksKey[] = "supervisor.resume_ranks";

// The purpose of a key, whatever its name: the target's description states it.
enum class KeyRole {
  kLearningRate,    // the peak, or the constant one
  kClipNorm,        // largest global gradient norm
  kWarmupSteps,     // of the learning rate, in optimizer steps
  kWeightDecay,     // 0: none
  kBatchSize,       // samples of one rank and micro-batch
  kAccumulation,    // micro-batches of a step
  kSamples,         // number in an epoch
  kWorkers,         // processes or threads that load the data; 0: the loop itself does
  kEvaluateEvery,   // steps between evaluations on held-out data
  kSaveEvery,       // steps between checkpoints
  kPrecision,       // has the choice "fp32"
  kLoaderGuard,     // has the choice "stop": to end a run at a sample that is not sound
  kRegularisation,  // keeps samples from being fitted; 0 or false: none; of several keys
  kCost,            // a step takes time in proportion to it; of several keys
};
const char* ToString(KeyRole role);  // "learning_rate"
std::vector<std::string> KeyRoleNames();
// The first key with this role; null: there is none.
const ParamInfo* KeyWithRole(const TargetDescription& target, KeyRole role);

// A scenario may name a key by its role, so that it can run on any target that has such a key:
// `role.learning_rate`.
inline constexpr char kRolePrefix[] = "role.";
// The role of such a name; empty: it is no such name, or the role is of several keys.
std::optional<KeyRole> RoleNamed(const std::string& path);
// The key called `path`, else the one with the role that it names, else the one with the reference
// trainer's name for that role; null: there is none.
const ParamInfo* ResolveKey(const TargetDescription& target, const std::string& path);

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

  // Empty without a description, because only a description has roles.
  std::optional<double> Number(KeyRole role) const;
  std::optional<int> Int(KeyRole role) const;

 private:
  const Json* Find(const std::string& key) const;
  std::string KeyOf(KeyRole role) const;

  const Recipe& recipe_;
  const TargetDescription* target_;
};

}  // namespace trainwreck
