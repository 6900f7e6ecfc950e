// trainwreck schema: the JSON Schema of scenario and fault files, or of folder defaults, for this
// target, for editors.
#include <iostream>

#include "harness/cli/verb.h"
#include "harness/session/session.h"
#include "harness/spec/defaults.h"
#include "harness/spec/fault_file.h"

namespace trainwreck {
namespace {

struct SchemaOptions {
  CommonOptions common;
  bool defaults = false;
};

Json FilesSchema(const TargetDescription& target) {
  const Json is_fault = {{"required", {"kind"}}, {"properties", {{"kind", {{"const", "Fault"}}}}}};
  return {{"$schema", "http://json-schema.org/draft-07/schema#"},
          {"title", "trainwreck scenario or fault"},
          {"if", is_fault},
          {"then", FaultFileSchema(target)},
          {"else", ScenarioSchema(target)}};
}

int SchemaVerb(const SchemaOptions& options) {
  const TargetDescription target = OpenSession(options.common).description;
  const Json schema = options.defaults ? DefaultsSchema(target) : FilesSchema(target);
  std::cout << schema.dump(2) << "\n";
  return kExitPassed;
}

void Declare(VerbArguments& arguments, SchemaOptions& options) {
  arguments.Flag("--defaults", options.defaults, "The schema of a folder's defaults.yaml instead");
  arguments.Common(options.common);
}

const VerbRegistration registration("schema", "Print the JSON Schema of scenario files",
                                    kLooking + 3, Declare, SchemaVerb);

}  // namespace
}  // namespace trainwreck
