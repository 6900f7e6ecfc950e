#include "trainer/devices/nccl_log.h"

#include <cstdlib>
#include <fstream>

#include "trainer/ranks/rendezvous.h"

namespace trainwreck {

std::string NcclLogPath(const GroupOptions& options) {
  if (options.dump_dir.empty()) return "";
  return options.dump_dir + "/nccl-rank" + std::to_string(options.rank) + ".log";
}

void SetUpNcclEnvironment(const GroupOptions& options) {
  setenv("NCCL_DEBUG", "WARN", /*overwrite=*/0);
  if (const std::string log = NcclLogPath(options); !log.empty()) {
    setenv("NCCL_DEBUG_FILE", log.c_str(), 0);
  }
  if (IsLocalGroup(options)) setenv("NCCL_SOCKET_IFNAME", "=lo", 0);
}

std::string LastNcclWarning(const std::string& path) {
  std::ifstream file(path);
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (const std::size_t begin = line.find("NCCL WARN"); begin != line.npos) {
      last = line.substr(begin);
    }
  }
  return last;
}

}  // namespace trainwreck
