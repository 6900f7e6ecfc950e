#include "harness/inspect/repeat.h"

#include <ostream>
#include <utility>

#include "harness/checkup/known.h"
#include "harness/judge/verdict.h"

namespace trainwreck {

bool RepeatAside(const Run& run, const Session& session,
                 const std::function<void(RunResult&)>& finished) {
  return RunAside({{run}}, session, /*cores=*/0, [&](std::size_t, BatchResults& results) {
    finished(results.begin()->second.begin()->second);
  });
}

Run RunToRepeat(const StoredTrace& stored, const std::string& name) {
  if (stored.run) return *stored.run;
  throw UsageError("--again: '" + name + "' has no run.json, so its plan is not known");
}

std::optional<RunTrace> RecordAgain(const StoredTrace& stored, const std::string& name,
                                    const std::vector<std::string>& more, const Session& session,
                                    std::ostream& said) {
  Run run = RunToRepeat(stored, name);
  run.plan.record.insert(run.plan.record.end(), more.begin(), more.end());
  std::optional<RunTrace> trace;
  const bool is_done =
      RepeatAside(run, session, [&](RunResult& result) { trace = std::move(result.trace); });
  if (!is_done) return std::nullopt;
  const std::string difference = DifferenceFrom(stored.trace, *trace);
  said << (difference.empty() ? "# made again: the same bits in all stored signals\n"
                              : "# made again, and not the same run: " + difference + "\n");
  return trace;
}

std::string DifferenceFrom(const RunTrace& stored, RunTrace again) {
  std::erase_if(again.series,
                [&](const auto& item) { return !stored.series.contains(item.first); });
  return CompareTraces(stored, again);
}

}  // namespace trainwreck
