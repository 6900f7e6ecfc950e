// Random combinations of faults, recipes, ranks and moments, drawn from a seed. A combination is a
// list of ingredients, so that a failing one can be made smaller by leaving some out.
//
//   const SwarmPool pool = PoolOf(chosen.cases, session.description);
//   const Combination drawn = DrawCombination(pool, session.description, seed, number);
//   const Run run = RunOf(drawn, AllOf(drawn), {}, session.description);
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/plan/run.h"
#include "harness/protocol/description.h"
#include "harness/spec/scenario.h"

namespace trainwreck {

// What combinations are drawn from: the healthy recipes and the faults of scenarios.
struct SwarmPool {
  struct Source {
    std::string name;  // of the case
    Recipe changes;    // of the target's defaults
    int steps = 0;
    std::vector<InjectedFault> faults;
  };
  std::vector<Source> sources;  // each with a fault
};
SwarmPool PoolOf(const std::vector<Case>& cases, const TargetDescription& target);

// A fault, or a key of the recipe that is not at its default.
struct Ingredient {
  InjectedFault fault;  // without a name: a change of the recipe
  std::string key;
  Json value;
  bool is_fault() const { return !fault.fault.empty(); }
};

struct Combination {
  std::uint64_t seed = 0;
  int number = 0;
  std::string source;  // the case whose recipe it begins with
  std::vector<Ingredient> ingredients;
};

// The same for the same pool, target, seed and number, whatever was drawn before.
Combination DrawCombination(const SwarmPool& pool, const TargetDescription& target,
                            std::uint64_t seed, int number);

using IngredientSet = std::set<int>;  // indices
IngredientSet AllOf(const Combination& drawn);

// The run with these ingredients; `overrides` stand above them and below faults of the recipe.
// `budget_s` is a hard limit.
Run RunOf(const Combination& drawn, const IngredientSet& with, const Changes& overrides,
          const TargetDescription& target, double budget_s);

Json ToJson(const Combination& drawn, const IngredientSet& with);

}  // namespace trainwreck
