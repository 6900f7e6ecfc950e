#include "trainer/devices/nccl_log.h"

#include <cstdlib>

#include "harness/protocol/rank_files.h"
#include "trainer/ranks/rendezvous.h"

namespace trainwreck {

std::string NcclLogPath(const GroupOptions& options) {
  if (options.dump_dir.empty()) return "";
  return NcclLogFile(options.dump_dir, options.rank);
}

void SetUpNcclEnvironment(const GroupOptions& options) {
  setenv("NCCL_DEBUG", "WARN", /*overwrite=*/0);
  if (const std::string log = NcclLogPath(options); !log.empty()) {
    setenv("NCCL_DEBUG_FILE", log.c_str(), 0);
  }
  if (IsLocalGroup(options)) setenv("NCCL_SOCKET_IFNAME", "=lo", 0);
}

}  // namespace trainwreck
