// trainwreck schema: the JSON Schema of scenario and fault files for this target, for editors.
#include <iostream>

#include "harness/cli/verb.h"
#include "harness/session/session.h"
#include "harness/spec/fault_file.h"

namespace trainwreck {
namespace {

struct SchemaOptions {
  CommonOptions common;
};

int SchemaVerb(const SchemaOptions& options) {
  const Session session = OpenSession(options.common);
  const Json is_fault = {{"required", {"kind"}}, {"properties", {{"kind", {{"const", "Fault"}}}}}};
  const Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                       {"title", "trainwreck scenario or fault"},
                       {"if", is_fault},
                       {"then", FaultFileSchema(session.description)},
                       {"else", ScenarioSchema(session.description)}};
  std::cout << schema.dump(2) << "\n";
  return kExitPassed;
}

void Declare(VerbArguments& arguments, SchemaOptions& options) { arguments.Common(options.common); }

const VerbRegistration registration("schema", "Print the JSON Schema of scenario files",
                                    kLooking + 3, Declare, SchemaVerb);

}  // namespace
}  // namespace trainwreck
