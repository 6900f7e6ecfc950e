// The flight recorders that ranks leave in a run's folder when a collective over GPUs fails or
// waits for long: flight-recorder-rank<k>.json, as LibTorch's dump_nccl_trace_json writes them.
#pragma once

#include <string>

namespace trainwreck {

// One sentence over all ranks, "flight recorder: rank 0 waits in nccl:all_reduce #12 (started);
// rank 1 has finished its last call, nccl:all_reduce #11"; empty when there is no recorder. A file
// that is none is said to be unreadable.
std::string DescribeFlightRecorders(const std::string& folder, int ranks);

}  // namespace trainwreck
