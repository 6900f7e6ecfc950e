// Runs trainings that are looked at together and gives no verdict: for verbs that ask something
// else than whether a scenario holds (`matrix`, `checkup`, `lr-range`).
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
  int runs = 0;  // that came to an end
  bool interrupted = false;
  // Runs that could not be made, or left something behind: "nan/x/fault/0: ...". How a training
  // ends, by a crash or a hang, is not the launcher's fault and no trouble.
  std::vector<std::string> troubles;
};

// No run is stopped early. Calls `complete` once for each batch, when its last run is in, after
// which the runs' folders go unless they are to be kept.
BatchesEnd RunBatches(const std::vector<Batch>& batches, const LauncherOptions& launcher, bool keep,
                      const std::function<void(std::size_t, BatchResults&)>& complete);

ArmTraces TracesOf(const BatchResults& results);

}  // namespace trainwreck
