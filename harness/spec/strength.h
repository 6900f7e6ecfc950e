// The strength of a scenario's fault: one number that stands wherever the scenario says
// `$strength`. `trainwreck calibrate` measures it for each target.
#pragma once

#include <optional>
#include <string>

#include "harness/protocol/description.h"
#include "harness/spec/scenario.h"
#include "harness/yaml/yaml.h"

namespace trainwreck {

// Reads `strength` of the scenario's tree and puts its value in the place of `$strength` and
// `NUMBER / $strength` below `recipe`, `with`, `set` and `scale`, and nowhere else: what decides a
// verdict cannot depend on it. `calibration` is that of the target.
std::optional<Strength> ApplyStrength(YamlNode& root, const std::string& scenario,
                                      const Calibration& calibration, Errors& errors);

}  // namespace trainwreck
