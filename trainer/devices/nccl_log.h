// What NCCL itself says of a failure: it writes to a file of the run's folder, and its last warning
// belongs into the error of the call that failed.
#pragma once

#include <string>

#include "trainer/parts.h"

namespace trainwreck {

// The file of this rank; empty: there is no folder for it.
std::string NcclLogPath(const GroupOptions& options);

// Points NCCL's log to that file and, for ranks of one machine, its sockets to the loopback
// interface. What the environment says already stays. Before the first call of NCCL.
void SetUpNcclEnvironment(const GroupOptions& options);

}  // namespace trainwreck
