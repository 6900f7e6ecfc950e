// The texts that `trainwreck new` writes: skeletons that validate, build and pass at once.
#pragma once

#include <string>

#include "harness/protocol/description.h"

namespace trainwreck {

// A scenario for this target: the reference trainer, or a program of somebody's own.
std::string ScenarioSkeleton(const std::string& name, const TargetDescription& target);

struct FaultSkeleton {
  std::string source;
  std::string test;
};

// A document of `kind: Fault` that multiplies a key of the recipe.
std::string RecipeFaultSkeleton(const std::string& name, const std::string& key);

// A fault in C++ that wraps a part of the loop.
FaultSkeleton MakeFaultSkeleton(const std::string& site, const std::string& name);

}  // namespace trainwreck
