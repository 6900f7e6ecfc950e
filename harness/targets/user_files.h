// Which files of the user's a target runs, and which versions it runs with: what runs is what is
// recorded.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/targets/target_spec.h"

namespace trainwreck {

// Each once, in the order of their paths: files that the command names, the modules that it names
// (`-m pkg`: the whole package), what Python files among them import from their own folder or the
// target's, and what `digest` names.
std::vector<std::string> FilesOfTarget(const TargetSpec& spec);

// "python" -> "3.11.2", "torch" -> "2.3.0", "numpy" -> "missing", "fingerprint" -> what the
// target's command printed. Runs the interpreter of the command, and that command.
std::map<std::string, std::string> TakeFingerprint(const TargetSpec& spec);

}  // namespace trainwreck
