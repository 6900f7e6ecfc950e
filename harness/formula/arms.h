// Names of runs that a formula may read although no scenario has an arm of this name.
#pragma once

namespace trainwreck::formula {

// In invariants: the same arm's run with the next seed.
inline constexpr char kOtherSeed[] = "other_seed";

}  // namespace trainwreck::formula
