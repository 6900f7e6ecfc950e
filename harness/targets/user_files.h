// The user's files that a target runs, and the versions that it runs with, so that the history
// records exactly what ran.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/targets/target_spec.h"

namespace trainwreck {

// The files, each once, in the order of their paths: files and modules that the command names
// (`-m pkg`: the whole package), files that the Python files among them import from their own
// folder or the target's, and files that `digest` names.
std::vector<std::string> FilesOfTarget(const TargetSpec& spec);

// The Python that the command names; empty: none.
std::string PythonOf(const TargetSpec& spec);
// The flag of that Python which makes it ignore PYTHONPATH, as "-I"; empty: there is none.
std::string FlagAgainstPythonPath(const TargetSpec& spec);

// "python" -> "3.11.2", "torch" -> "2.3.0", "numpy" -> "missing", "fingerprint" -> what the
// target's command printed. Runs the command's interpreter, and the target's fingerprint command.
std::map<std::string, std::string> TakeFingerprint(const TargetSpec& spec);

}  // namespace trainwreck
