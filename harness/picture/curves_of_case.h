// Chooses the curves of a case that fit into its picture. Private to this package.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/judge/verdict.h"
#include "harness/protocol/json.h"

namespace trainwreck {

struct CurvesOfCase {
  std::map<std::pair<std::string, int>, Json> curves;  // (arm, seed) -> {"loss": curve, ..}
  std::vector<std::string> left_out;                   // names of signals that did not fit
};

// The loss and what the case's formulas read come first, then what the target describes first; of
// the first rank before others. A signal is there for all runs that have it, or for none.
CurvesOfCase ChooseCurves(const CaseResults& results, const TargetDescription& target,
                          std::size_t bytes);

}  // namespace trainwreck
