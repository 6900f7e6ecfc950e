// Reads twins: changes that must not matter, the signals that must agree, and the bugs that the
// comparison must notice.
#pragma once

#include <vector>

#include "harness/spec/reader.h"
#include "harness/yaml/fields.h"

namespace trainwreck {

// Reads twins, agree and must_notice.
void ReadTwins(Fields& fields, const TargetDescription& target, Errors& errors, Draft& draft);

// A list of phases, of a scenario or of a twin.
std::vector<Phase> ReadPhases(const YamlNode& node, Errors& errors);

}  // namespace trainwreck
