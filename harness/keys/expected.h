// Keys that may change nothing, each declared with the reason. A declaration that does not hold is
// an error, so the list stays up to date.
//
//   apiVersion: trainwreck/v1
//   kind: IgnoredKeys
//   ignored:
//     - {keys: model.init, in: resume, reason: the weights come from the checkpoint}
//     - {keys: [parallel.timeout_s], reason: no collective of a healthy run waits so long}
#pragma once

#include <set>
#include <string>
#include <vector>

#include "harness/keys/contexts.h"
#include "harness/protocol/description.h"
#include "harness/yaml/diagnostic.h"

namespace trainwreck {

struct ExpectedIgnored {
  std::string key;
  std::set<KeyContext> contexts;
  std::string reason;
};

struct ExpectedFile {
  std::vector<ExpectedIgnored> entries;
  std::vector<Diagnostic> errors;
};

// Reads the declarations. One without `in` holds in all contexts. Throws std::runtime_error when
// the file cannot be read.
ExpectedFile LoadExpected(const std::string& path, const TargetDescription& target);

}  // namespace trainwreck
