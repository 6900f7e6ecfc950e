// One run before all others: can the declared program be started, and are its signals read? What is
// wrong with a command or a pattern would else show as a wall of `unknown`, after all runs.
//
//   RequirePreflight(options.common, session, cases);  // throws ConfigurationError
#pragma once

#include <string>
#include <vector>

#include "harness/plan/run.h"
#include "harness/session/session.h"
#include "harness/targets/target_spec.h"
#include "harness/yaml/diagnostic.h"

namespace trainwreck {

struct PreflightFinding {
  Diagnostic diagnostic;           // what is wrong, where trainwreck.yaml says so, the likely fix
  std::vector<std::string> lines;  // what the program printed, or its last words
  bool is_error = true;            // else a warning
};

struct PreflightResult {
  std::vector<PreflightFinding> findings;
  std::string run;          // "control of nan/x"; empty: none was made
  std::string signals;      // that were read: "loss, gradient"
  double wall_seconds = 0;  // of the run

  bool has_errors() const;
};

// The control run of the first case that is to pass, up to the second step of all signals. Targets
// that describe themselves (level 2) have none. `cases` may be empty: then the recipe's defaults,
// and all signals have to come.
PreflightResult Preflight(const Session& session, const std::vector<Case>& cases);

std::string Format(const PreflightFinding& finding, bool color);

// Prints what was found on stderr; throws ConfigurationError when that is an error. Nothing with
// --no-preflight.
void RequirePreflight(const CommonOptions& options, const Session& session,
                      const std::vector<Case>& cases);

}  // namespace trainwreck
