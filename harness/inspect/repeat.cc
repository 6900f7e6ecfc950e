#include "harness/inspect/repeat.h"

#include "harness/checkup/known.h"
#include "harness/judge/verdict.h"

namespace trainwreck {

bool RepeatAside(const Run& run, const Session& session,
                 const std::function<void(RunResult&)>& finished) {
  return RunAside({{run}}, session, /*cores=*/0, [&](std::size_t, BatchResults& results) {
    finished(results.begin()->second.begin()->second);
  });
}

std::string DifferenceFrom(const RunTrace& stored, RunTrace again) {
  std::erase_if(again.series,
                [&](const auto& item) { return !stored.series.contains(item.first); });
  return CompareTraces(stored, again);
}

}  // namespace trainwreck
