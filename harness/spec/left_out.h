// Arms that a target cannot have: their change names a role, and no key of the target has it.
// A scenario that names keys by their roles runs without them, and its verdict says so.
#pragma once

#include <vector>

#include "harness/protocol/description.h"
#include "harness/spec/scenario.h"
#include "harness/yaml/yaml.h"

namespace trainwreck {

// Takes such arms out of 'remedies', 'decoys' and 'twins'. A section of which nothing would be left
// stays whole: reading it says what the target lacks.
std::vector<LeftOut> LeaveOutArms(YamlNode& root, const TargetDescription& target);

}  // namespace trainwreck
