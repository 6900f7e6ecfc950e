// Runs trainings in batches and gives no verdict: for verbs that do not ask whether a scenario
// holds (`matrix`, `checkup`, `lr-range`).
//
//   std::vector<Batch> batches = {{control runs and fault runs of a case}, ...};
//   RunBatches(batches, launcher, /*keep=*/false, [&](std::size_t index, BatchResults results) {
//     Read(results["control"][0].trace);
//   });
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/launch/launcher.h"
#include "harness/matrix/matrix.h"
#include "harness/plan/run.h"

namespace trainwreck {

using Batch = std::vector<Run>;
using BatchResults = std::map<std::string, std::map<int, RunResult>>;  // arm -> seed

struct BatchesEnd {
  int runs = 0;  // finished
  bool interrupted = false;
  // Runs that could not be made, or left processes behind: "nan/x/fault/0: ...". A training that
  // crashes or hangs is no trouble: the launcher did its work.
  std::vector<std::string> troubles;
};

// No run is stopped early. Calls `complete` once for each batch, when its last run has ended. Then
// the runs' folders are removed, unless `keep`.
BatchesEnd RunBatches(const std::vector<Batch>& batches, const LauncherOptions& launcher, bool keep,
                      const std::function<void(std::size_t, BatchResults&)>& complete);

ArmTraces TracesOf(const BatchResults& results);

}  // namespace trainwreck
