// The words in which messages of checks say what was claimed, and in which seeds.
#pragma once

#include <string>
#include <vector>

#include "harness/formula/formula.h"
#include "harness/judge/arm_judge.h"

namespace trainwreck {

std::string SeedList(const std::vector<int>& seeds);    // "seeds 0, 3"
std::string AmountText(const formula::Amount& amount);  // "0.5 octaves"
// ", false in 2 (seeds 0, 3)"; empty where there is no seed.
std::string CountedSeeds(const std::string& what, const std::vector<int>& seeds);

// The messages for twins and their bugs: what must be true, and what was seen instead.
struct Words {
  std::string expected;
  std::string seen;
};
Words WordsOf(const ArmPlan& arm, const Claim& claim);

}  // namespace trainwreck
