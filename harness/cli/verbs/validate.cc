// trainwreck validate: are these scenario files right for this target? Starts no training.
#include <iostream>

#include "harness/cli/verb.h"
#include "harness/session/chosen.h"
#include "harness/session/session.h"
#include "harness/text/clean_text.h"

namespace trainwreck {
namespace {

struct ValidateOptions {
  CommonOptions common;
  SelectionOptions selection;
};

int ValidateVerb(const ValidateOptions& options) {
  const Session session = OpenSession(options.common);
  const Chosen chosen = ChooseCases(session, options.selection, PlanOptions{}, {});
  SayUnnamedTarget(session);
  if (chosen.cases.empty()) {
    std::cerr << "trainwreck: nothing to validate: the selection leaves none of " << chosen.planned
              << " cases\n";
    return kExitNothingRun;
  }
  for (const Scenario& scenario : chosen.scenarios) {
    for (const std::string& remark : RemarksOn(scenario)) std::cout << CleanText(remark) << "\n";
  }
  for (const Case& one : chosen.cases) {
    if (!one.scenario->misfit.empty()) {
      std::cout << one.name << ": will be skipped, " << one.skip_reason << ": "
                << CleanText(one.scenario->misfit) << "\n";
    } else if (!one.scenario->unserved.empty()) {
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

void Declare(VerbArguments& arguments, ValidateOptions& options) {
  arguments.Selection(options.selection);
  arguments.Common(options.common);
}

const VerbRegistration registration("validate", "Check scenario files; start nothing", kLooking,
                                    Declare, ValidateVerb);

}  // namespace
}  // namespace trainwreck
