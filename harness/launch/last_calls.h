// The last collective calls of each rank: rank<k>.calls in a run's folder, which the rank writes as
// it makes them (trainer/ranks/call_log.h) and which stays when the rank is killed or stopped.
#pragma once

#include <string>
#include <vector>

namespace trainwreck {

enum class CallState { kWaits, kEnded, kFailed };
const char* ToString(CallState state);

struct LastCall {
  int call = 0;  // index on its rank, from 0
  int step = 0;
  std::string op;
  std::string shape;
  std::string dtype;
  double began_s = 0;  // since the rank's trace began
  double ended_s = 0;  // of a call that ended
  CallState state = CallState::kWaits;
};

std::string CallsPath(const std::string& folder, int rank);

// The calls of a rank, oldest first. Lines that cannot be read are left out; empty: there is no
// such file.
std::vector<LastCall> ReadLastCalls(const std::string& folder, int rank);

// One phrase for each rank: "last calls: rank 0 is in all_reduce [4] float64 (call 80, step 11) since
// 0.31 s, after all_reduce [128] float32 (call 79, step 11); rank 1 ...". Empty: nobody wrote any.
std::string DescribeLastCalls(const std::string& folder, int ranks);

}  // namespace trainwreck
