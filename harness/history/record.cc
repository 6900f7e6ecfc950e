#include "harness/history/record.h"

#include <algorithm>
#include <cmath>

#include "harness/protocol/digest.h"

namespace trainwreck {
namespace {

MarginRecord MakeMargin(const CheckResult& check) {
  MarginRecord record{.arm = check.arm,
                      .check = check.check,
                      .formula = check.formula,
                      .expected = check.expected,
                      .unit = NameOf(check.unit),
                      .by_seed = {},
                      .agree = check.agree,
                      .seeds = static_cast<int>(check.readings.size())};
  for (std::size_t seed = 0; seed < check.readings.size(); ++seed) {
    const auto& margin = check.readings[seed].margins[static_cast<int>(check.unit)];
    if (!margin || margin->lo != margin->hi) continue;  // NaN is unequal to itself
    record.by_seed[static_cast<int>(seed)] = check.expected ? margin->lo : -margin->lo;
  }
  return record;
}

CaseRecord MakeCase(const Verdict& verdict, const RunInfo& info) {
  CaseRecord record{.name = verdict.case_name,
                    .scenario = verdict.scenario,
                    .scenario_digest = verdict.scenario_digest,
                    .environment = verdict.environment,
                    .verdict = verdict.verdict,
                    .failure_class = verdict.failure_class,
                    .reason = verdict.reason,
                    .wall_seconds = verdict.wall_seconds,
                    .cpu_seconds = verdict.cpu_seconds,
                    .margins = {},
                    .trainings = {}};
  record.environment.insert(info.environment.begin(), info.environment.end());
  for (const CheckResult& check : verdict.checks) {
    if (!check.readings.empty()) record.margins.push_back(MakeMargin(check));
  }
  for (const auto& [arm, runs] : verdict.runs) {
    for (std::size_t seed = 0; seed < runs.size(); ++seed) {
      const RunResult& run = runs[seed];
      record.trainings.push_back({.arm = arm,
                                  .seed = static_cast<int>(seed),
                                  .end = ToString(run.end),
                                  .step_seconds = run.step_seconds,
                                  .peak_memory_bytes = static_cast<double>(run.peak_memory_bytes),
                                  .final_signals = run.final_signals,
                                  .bits = run.bits});
    }
  }
  return record;
}

}  // namespace

int CaseRecord::seeds() const {
  int seeds = 0;
  for (const TrainingRecord& training : trainings) seeds = std::max(seeds, training.seed + 1);
  return seeds;
}

Record MakeRecord(const std::vector<Verdict>& verdicts, const RunInfo& info) {
  Record record{.id = 0,
                .started_utc = info.started_utc,
                .version = info.version,
                .command_line = info.command_line,
                .commit = info.commit,
                .is_dirty = info.is_dirty,
                .target = info.target,
                .target_digest = info.target_digest,
                .isolation = info.isolation,
                .host = info.host,
                .cores = info.cores,
                .output_dir = info.output_dir,
                .wall_seconds = info.wall_seconds,
                .cpu_seconds = info.cpu_seconds,
                .cases = {}};
  for (const Verdict& verdict : verdicts) record.cases.push_back(MakeCase(verdict, info));
  return record;
}

std::string Fingerprint(const std::map<std::string, std::string>& environment) {
  return DigestText(Json(environment).dump(-1, ' ', false, Json::error_handler_t::replace))
      .substr(0, 8);
}

}  // namespace trainwreck
