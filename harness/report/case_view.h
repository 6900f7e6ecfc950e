// One case in full, as text for a terminal of any width: why it went as it did, the curves of all
// arms on one scale with the moment the fault fired, events, checks with their margins, and the
// commands that repeat it.
//
//   out << CaseView(verdict, runs, {.width = 80, .unicode = true});
#pragma once

#include <map>
#include <string>

#include "harness/judge/verdict.h"
#include "harness/protocol/run_trace.h"

namespace trainwreck {

struct CaseViewOptions {
  int width = 100;
  bool unicode = true;
  bool color = false;
  int height = 4;               // lines of a curve
  std::string signal = "loss";  // of rank 0; one that is not `loss` needs the trace
};

// A run whose folder was kept.
struct KeptTrace {
  int seed = 0;
  std::string folder;
  RunTrace trace;
};

// `runs`: of each arm the one to show, as far as there is one. Without it, the curve of the loss is
// that of the verdict, and there are no events.
std::string CaseView(const Verdict& verdict, const std::map<std::string, KeptTrace>& runs,
                     const CaseViewOptions& options);

}  // namespace trainwreck
