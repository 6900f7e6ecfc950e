// Names of runs that a formula may read although no scenario has an arm of this name.
#pragma once

namespace trainwreck::formula {

// The same arm's run with the next seed; allowed in invariants.
inline constexpr char kOtherSeed[] = "other_seed";

}  // namespace trainwreck::formula
