// Summaries of arms and runs for reports and the history. Private to this package.
#pragma once

#include <vector>

#include "harness/judge/verdict.h"

namespace trainwreck {

std::vector<ArmSummary> SummarizeArms(const CaseResults& results,
                                      const std::vector<CheckResult>& checks);

// Fills in `final_signals`, `step_seconds` and `bits`; `result.end` must be known.
void SummarizeTrace(const RunTrace& trace, RunResult& result);

// Adds the `environment` of the ranks' `start` records.
void AddEnvironment(const RunTrace& trace, std::map<std::string, std::string>& environment);
// Where runs differ, their values stand side by side.
void AddTo(std::map<std::string, std::string>& environment, const std::string& key,
           const std::string& value);

}  // namespace trainwreck
