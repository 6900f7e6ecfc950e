// What NCCL itself said in a run that failed or stalled. The reference trainer points each rank's
// log to nccl-rank<k>.log in the run's folder, and NCCL's warnings there name the cause (a peer
// that closed its connection, a call with other arguments), also those of a rank that hung and was
// killed before it could say them.
#pragma once

#include <string>

namespace trainwreck {

// One sentence over all ranks, "NCCL: rank 0: NCCL WARN Cuda failure 2 'out of memory'; rank 1:
// ...", with the last warning of each; empty when there is none. A log that is older than the file
// `since` is of an earlier attempt and left out, and so are words that stand in `said` already.
std::string DescribeNcclLogs(const std::string& folder, int ranks, const std::string& since,
                             const std::string& said);

}  // namespace trainwreck
