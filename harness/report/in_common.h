// What failing cases have in common. A defect of the program under test rarely breaks only one
// case, and the common part says more than each case by itself.
#pragma once

#include <string>
#include <vector>

#include "harness/judge/verdict.h"

namespace trainwreck {

// Lines for the end of a report, each a sentence or a list; empty where fewer than two cases fail.
// First the claim that fails in most cases, then the parts of the training stack that most of them
// point to, then the earliest place at which two runs come apart.
std::vector<std::string> InCommon(const std::vector<Verdict>& verdicts);

// The parts that the cases point to, the likeliest first: ordered by the number of cases in which a
// part is the first suspect, then by the number in which it is a suspect at all.
std::vector<std::string> Suspects(const std::vector<Verdict>& verdicts);

}  // namespace trainwreck
