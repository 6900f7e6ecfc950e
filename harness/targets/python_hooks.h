// The hooks that `adapter: python` sets in each Python process of a target: signals, events, and
// faults at exact steps, without a change of the program. They are a Python package
// (python/trainwreck), which comes with this program; its hooks.json describes what they can do.
#pragma once

#include <map>
#include <string>

#include "harness/protocol/description.h"
#include "harness/targets/target_spec.h"

namespace trainwreck {

// The path of hooks.json beside this program; empty where the package is not installed.
std::string FindPythonHooks();

// The description of the hooks alone. Throws std::runtime_error where the file is none.
TargetDescription DescribePythonHooks(const std::string& file);

// Adds what the hooks can do. What the target declares of a signal (its scale, its floor) holds,
// and a signal that a source gives is left out by the hooks.
void AddPythonHooks(const TargetSpec& spec, TargetDescription& target);

// Adds the variables that make each Python process of the program set the hooks.
void SetPythonHooks(const TargetSpec& spec, std::map<std::string, std::string>& environment);

}  // namespace trainwreck
