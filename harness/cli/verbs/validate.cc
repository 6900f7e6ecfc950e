// trainwreck validate: are these scenario files right for this target? Starts no training.
#include <iostream>

#include "harness/cli/verbs.h"
#include "harness/session/chosen.h"
#include "harness/session/session.h"

namespace trainwreck {

int ValidateVerb(const Options& options) {
  const Session session = OpenSession(options.common);
  const Chosen chosen = ChooseCases(session, options.validate.selection, PlanOptions{}, {});
  SayUnnamedTarget(session);
  if (chosen.cases.empty()) {
    std::cerr << "trainwreck: nothing to validate: the selection leaves none of " << chosen.planned
              << " cases\n";
    return kExitNothingRun;
  }
  for (const Case& one : chosen.cases) {
    if (!one.scenario->unserved.empty()) {
      std::cout << one.name << ": will be skipped, " << one.skip_reason << " (target '"
                << session.description.name << "' is of level " << session.description.level
                << ")\n";
    } else if (options.common.verbose) {
      std::cout << one.name << ": valid\n";
    }
  }
  std::cout << chosen.scenarios.size()
            << (chosen.scenarios.size() == 1 ? " scenario, " : " scenarios, ")
            << chosen.cases.size()
            << (chosen.cases.size() == 1 ? " case: valid\n" : " cases: all valid\n");
  return kExitPassed;
}

}  // namespace trainwreck
