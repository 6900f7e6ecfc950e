// What is said of a text that is no YAML: where the mistake began, and what was meant.
#pragma once

#include <yaml-cpp/exceptions.h>

#include "harness/yaml/yaml.h"

namespace trainwreck {

// yaml-cpp says where it noticed; a person wants to know where it began.
void AddSyntaxError(const YAML::Exception& error, int source, Errors& errors);

}  // namespace trainwreck
