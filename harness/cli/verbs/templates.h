// The texts that `trainwreck new` writes: skeletons that validate, build and pass at once.
#pragma once

#include <string>

namespace trainwreck {

// A scenario for the reference trainer.
std::string ScenarioSkeleton(const std::string& name);

struct FaultSkeleton {
  std::string source;
  std::string test;
};

// A document of `kind: Fault` that multiplies a key of the recipe.
std::string RecipeFaultSkeleton(const std::string& name, const std::string& key);

// A fault in C++ that wraps a part of the loop.
FaultSkeleton MakeFaultSkeleton(const std::string& site, const std::string& name);

}  // namespace trainwreck
