// A run before all others, which checks that the declared program starts and that its signals can
// be read. Otherwise a wrong command or pattern would only show after all runs, as `unknown`
// everywhere.
//
//   RequirePreflight(options.common, session, cases);  // throws ConfigurationError
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/plan/run.h"
#include "harness/protocol/run_trace.h"
#include "harness/session/session.h"
#include "harness/targets/target_spec.h"
#include "harness/yaml/diagnostic.h"

namespace trainwreck {

struct PreflightFinding {
  Diagnostic diagnostic;           // the problem, its place in trainwreck.yaml, the likely fix
  std::vector<std::string> lines;  // what the program printed, or its last words
  bool is_error = true;            // else a warning
};

struct PreflightResult {
  std::vector<PreflightFinding> findings;
  std::string run;                   // "control of nan/x"; empty: none was made
  std::string signals;               // the signals read: "loss, gradient"
  double wall_seconds = 0;           // of the run
  std::int64_t disk_bytes = 0;       // that it wrote
  RunTrace trace;                    // what was seen until then
  std::vector<std::string> printed;  // the lines of its first MiB on stdout

  bool has_errors() const;
};

// Makes the control run of the first case that has to pass, up to the second step of all signals.
// Targets that describe themselves (level 2) have no such run. `cases` may be empty: then it uses
// the recipe's defaults, and all signals have to come.
PreflightResult Preflight(const Session& session, const std::vector<Case>& cases);

// How many steps the hooks see in a run to its end, where the program is asked for `asked`, with
// the recipe's defaults. A run that makes more than twice as many is stopped. Empty: it did not
// end well.
std::optional<int> StepsMade(const Session& session, int asked);

std::string Format(const PreflightFinding& finding, bool color);

// Prints the findings on stderr; throws ConfigurationError when one is an error. Does nothing with
// --no-preflight.
void RequirePreflight(const CommonOptions& options, const Session& session,
                      const std::vector<Case>& cases);

}  // namespace trainwreck
