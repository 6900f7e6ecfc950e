// Where faults of the recipe are found that users describe in files (spec/fault_file.h).
#pragma once

#include <string>
#include <vector>

namespace trainwreck {

// All files of faults below the folder, which may not be there; sorted.
std::vector<std::string> FindFaultFiles(const std::string& scenarios_root);

}  // namespace trainwreck
