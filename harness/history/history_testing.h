// Records with a known truth, for tests of the history and of comparisons.
#pragma once

#include <cmath>
#include <random>
#include <string>
#include <utility>

#include "harness/history/record.h"

namespace trainwreck {

inline MarginRecord TestMargin(const std::string& arm, const std::string& check,
                               std::map<int, double> by_seed) {
  const auto seeds = static_cast<int>(by_seed.size());
  int agree = 0;
  for (const auto& [seed, margin] : by_seed) agree += margin > 0;
  return {.arm = arm,
          .check = check,
          .formula = "at_end loss < 1",
          .expected = true,
          .unit = "octaves",
          .by_seed = std::move(by_seed),
          .agree = agree,
          .seeds = seeds};
}

inline CaseRecord TestCase(const std::string& name, VerdictKind verdict = VerdictKind::kPass) {
  CaseRecord record;
  record.name = record.scenario = name;
  record.scenario_digest = "claims-of-" + name;
  record.environment = {{"blas", "MKL"}, {"cpu", "model"}};
  record.verdict = verdict;
  if (verdict == VerdictKind::kFail) {
    record.failure_class = FailureClass::kControlUnhealthy;
  };
  record.reason = "because of \"it\"\n";
  record.margins = {
      TestMargin("control", "learns", {{0, 1.0}, {1, 1.25}, {2, 0.75}, {3, 1.5}, {4, 1.125}})};
  for (int seed = 0; seed < 5; ++seed) {
    record.trainings.push_back({.arm = "control",
                                .seed = seed,
                                .end = "completed",
                                .step_seconds = 0.001 * (seed + 1),
                                .peak_memory_bytes = 1e8,
                                .final_signals = {{"loss", 0.5 + seed}, {"grad_norm", 1.0 / 3}}});
  }
  return record;
}

inline Record TestRecord(const std::string& commit, const std::string& target_digest) {
  Record record;
  record.started_utc = "2026-01-31T12:00:00Z";
  record.version = "0.1.0";
  record.command_line = "trainwreck run";
  record.commit = commit;
  record.target = "trainwreck-trainer 0.1";
  record.target_digest = target_digest;
  record.isolation = "fork";
  record.host = "box";
  record.cores = 2;
  record.output_dir = "out";
  record.cases = {TestCase("nan/a"), TestCase("nan/b")};
  return record;
}

}  // namespace trainwreck
