#include "harness/protocol/rank_files.h"

#include <fstream>

namespace trainwreck {

std::string TraceFile(const std::string& folder, int rank) {
  return folder + "/rank" + std::to_string(rank) + ".jsonl";
}

std::string OutputFile(const std::string& folder, int rank, int fd) {
  return folder + "/rank" + std::to_string(rank) + (fd == 1 ? ".stdout" : ".stderr");
}

std::string NcclLogFile(const std::string& folder, int rank) {
  return folder + "/nccl-rank" + std::to_string(rank) + ".log";
}

std::string LastNcclWarning(const std::string& path, std::int64_t begin) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(begin);
  std::string last;
  for (std::string line; std::getline(file, line);) {
    const std::size_t warning = line.find("NCCL WARN");
    if (warning != std::string::npos) last = line.substr(warning);
  }
  return last;
}

}  // namespace trainwreck
