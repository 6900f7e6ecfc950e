// trainwreck schema: the JSON Schema of scenario and fault files for this target, for editors.
#include <iostream>

#include "harness/cli/verbs.h"
#include "harness/session/session.h"
#include "harness/spec/fault_file.h"

namespace trainwreck {

int SchemaVerb(const Options& options) {
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

}  // namespace trainwreck
