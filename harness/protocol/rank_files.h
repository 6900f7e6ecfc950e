// Files of a rank in its run's folder, or in that of the run's guards, which one program writes and
// another one reads.
#pragma once

#include <cstdint>
#include <string>

namespace trainwreck {

std::string TraceFile(const std::string& folder, int rank);           // rank3.jsonl
std::string OutputFile(const std::string& folder, int rank, int fd);  // rank3.stdout (1), .stderr
std::string NcclLogFile(const std::string& folder, int rank);         // nccl-rank3.log: NCCL's own

// The last line with "NCCL WARN" behind the first `begin` bytes, from these words on: before them
// are machine, process and device. Empty when the file is not there or has none.
std::string LastNcclWarning(const std::string& path, std::int64_t begin = 0);

}  // namespace trainwreck
