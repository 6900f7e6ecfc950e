// trainwreck schema: the JSON Schema of scenario files for this target, for editors.
#include <iostream>

#include "harness/cli/verbs.h"
#include "harness/session/session.h"

namespace trainwreck {

int SchemaVerb(const Options& options) {
  const Session session = OpenSession(options.common);
  std::cout << ScenarioSchema(session.description).dump(2) << "\n";
  return kExitPassed;
}

}  // namespace trainwreck
