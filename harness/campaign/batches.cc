#include "harness/campaign/batches.h"

#include <unistd.h>

#include <iostream>
#include <memory>
#include <utility>

#include "harness/process/interruption.h"
#include "harness/protocol/trace_reader.h"
#include "harness/report/progress.h"
#include "harness/session/storage.h"

namespace trainwreck {
namespace {

struct Open {
  std::size_t missing = 0;
  BatchResults results;
  std::shared_ptr<TraceRoom> room = std::make_shared<TraceRoom>();
};

bool IsTrouble(RunEnd end) {
  return end == RunEnd::kInfrastructure || end == RunEnd::kGarbage || end == RunEnd::kLeak ||
         end == RunEnd::kDiskBudget;
}

}  // namespace

BatchesEnd RunBatches(const std::vector<Batch>& batches, const LauncherOptions& options, bool keep,
                      const std::function<void(std::size_t, BatchResults&)>& complete) {
  std::vector<Open> open(batches.size());
  std::map<std::string, std::size_t> batch_of;  // by run id
  std::vector<const Run*> runs;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    open[i].missing = batches[i].size();
    for (const Run& run : batches[i]) {
      runs.push_back(&run);
      batch_of[run.id] = i;
    }
  }
  BatchesEnd end;
  ProgressLine progress(std::cerr, ProgressLine::ForStream(STDERR_FILENO), STDERR_FILENO);
  LauncherCallbacks callbacks;
  callbacks.progress = [&](int running, int done, int total) {
    progress.Show(running, done, total);
  };
  callbacks.finished = [&](const Run& run, RunResult result) {
    if (WasInterrupted()) return;
    ++end.runs;
    if (IsTrouble(result.end)) end.troubles.push_back(run.id + ": " + result.detail);
    if (keep) StoreRun(run, result);
    const std::size_t index = batch_of.at(run.id);
    open[index].results[run.arm].emplace(run.seed, std::move(result));
    if (--open[index].missing > 0) return;
    complete(index, open[index].results);
    if (!keep) {
      for (const auto& [arm, by_seed] : open[index].results) {
        for (const auto& [seed, one] : by_seed) RemoveRunFolder(one.folder, options.output_dir);
      }
    }
    open[index] = Open{};
  };
  LauncherOptions bounded = options;
  bounded.room_of = [&](const Run& run) { return open[batch_of.at(run.id)].room; };
  if (!runs.empty()) Launcher(bounded).RunAll(runs, callbacks);
  end.interrupted = WasInterrupted();
  return end;
}

ArmTraces TracesOf(const BatchResults& results) {
  ArmTraces traces;
  for (const auto& [arm, by_seed] : results) {
    for (const auto& [seed, result] : by_seed) traces[arm][seed] = &result.trace;
  }
  return traces;
}

}  // namespace trainwreck
