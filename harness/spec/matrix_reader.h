// The matrix of a scenario: axes of named points, multiplied, less the excluded combinations.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/spec/scenario.h"
#include "harness/yaml/yaml.h"

namespace trainwreck {

// `faults` has the scenario's fault ids; nullptr where the fault itself is not known.
std::vector<Point> ReadMatrix(const YamlNode& node,
                              const std::map<std::string, const FaultInfo*>& faults,
                              const TargetDescription& target, Errors& errors);

}  // namespace trainwreck
