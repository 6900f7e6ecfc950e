// trainwreck schema: the JSON Schema of scenario files for this target, for editors.
#include <iostream>

#include "harness/cli/verb.h"
#include "harness/session/session.h"

namespace trainwreck {
namespace {

struct SchemaOptions {
  CommonOptions common;
};

int SchemaVerb(const SchemaOptions& options) {
  const Session session = OpenSession(options.common);
  std::cout << ScenarioSchema(session.description).dump(2) << "\n";
  return kExitPassed;
}

void Declare(VerbArguments& arguments, SchemaOptions& options) { arguments.Common(options.common); }

const VerbRegistration registration("schema", "Print the JSON Schema of scenario files",
                                    kLooking + 3, Declare, SchemaVerb);

}  // namespace
}  // namespace trainwreck
