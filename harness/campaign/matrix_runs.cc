#include "harness/campaign/matrix_runs.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "harness/session/storage.h"
#include "harness/session/stored_trace.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

bool IsWanted(const ArmPlan& arm) {
  return arm.kind == ArmKind::kControl || arm.kind == ArmKind::kFault ||
         arm.kind == ArmKind::kReference;
}

// What a matrix that kept its runs left of a case.
MatrixColumn ReadStored(const Case& one, const std::string& folder,
                        const std::vector<SuiteSymptom>& symptoms,
                        const TargetDescription& target) {
  std::map<std::string, std::map<int, StoredTrace>> stored;
  const std::string point = one.point->name.empty() ? "" : "/" + one.point->name;
  for (const ArmPlan& arm : one.arms) {
    if (!IsWanted(arm)) continue;
    const std::string runs = folder + "/" + one.scenario->name + point + "/" + arm.name;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(runs, error)) {
      if (!fs::is_regular_file(entry.path() / "run.json")) continue;
      StoredTrace trace = LoadStoredTrace(entry.path().string());
      const int seed = trace.run->seed;
      stored[arm.name].emplace(seed, std::move(trace));
    }
  }
  ArmTraces traces;
  for (const auto& [arm, by_seed] : stored) {
    for (const auto& [seed, trace] : by_seed) traces[arm][seed] = &trace.trace;
  }
  return ReadColumn(one, traces, symptoms, target);
}

}  // namespace

Batch MatrixRunsOf(const Case& one, const std::vector<std::string>& record,
                   const MatrixRequest& request) {
  Batch batch;
  for (const ArmPlan& arm : one.arms) {
    if (!IsWanted(arm)) continue;
    const int declared = one.scenario->seed_count;
    const int seeds = request.seeds > 0 ? request.seeds : declared;
    const int limit =
        arm.kind == ArmKind::kFault || request.control_seeds == 0 ? seeds : request.control_seeds;
    for (const Run& run : arm.runs) {
      if (run.seed >= limit) continue;
      batch.push_back(run);
      std::vector<std::string>& own = batch.back().plan.record;
      own.insert(own.end(), record.begin(), record.end());
      std::sort(own.begin(), own.end());
      own.erase(std::unique(own.begin(), own.end()), own.end());
    }
  }
  return batch;
}

std::vector<Case> StartMatrix(const std::vector<Case>& cases, Matrix& matrix) {
  matrix.symptoms = SymptomsOf(cases);
  std::vector<Case> rest;
  for (const Case& one : cases) {
    if (one.skip_reason.empty()) {
      rest.push_back(one);
    } else {
      matrix.skipped[one.name] = one.skip_reason;
    }
  }
  return rest;
}

BatchesEnd RunMatrix(const std::vector<Case>& cases, const MatrixRequest& request,
                     const Session& session, const std::string& output, Matrix& matrix) {
  const std::vector<std::string> record = AskedBy(matrix.symptoms, session.description);
  std::vector<Batch> batches;
  for (const Case& one : cases) batches.push_back(MatrixRunsOf(one, record, request));
  LauncherOptions launcher;
  launcher.target = session.target;
  launcher.isolation = request.exec ? Isolation::kExec : Isolation::kFork;
  launcher.cores = request.cores;
  launcher.output_dir = fs::absolute(output).lexically_normal().string();
  if (request.keep) StoreDescription(output, session.description);
  std::vector<MatrixColumn> columns(cases.size());
  std::vector<std::string> unhealthy;
  BatchesEnd end =
      RunBatches(batches, launcher, request.keep, [&](std::size_t index, BatchResults& results) {
        for (const auto& [seed, result] : results["control"]) {
          if (result.end == RunEnd::kCompleted) continue;
          unhealthy.push_back(cases[index].name + "/control/" + std::to_string(seed) +
                              ": a healthy run ended as '" + ToString(result.end) + "'");
        }
        columns[index] =
            ReadColumn(cases[index], TracesOf(results), matrix.symptoms, session.description);
      });
  end.troubles.insert(end.troubles.end(), unhealthy.begin(), unhealthy.end());
  for (MatrixColumn& column : columns) {
    if (!column.name.empty()) matrix.columns.push_back(std::move(column));
  }
  return end;
}

void ReadKeptMatrix(const std::vector<Case>& cases, const std::string& folder,
                    const TargetDescription& target, Matrix& matrix) {
  for (const Case& one : cases) {
    matrix.columns.push_back(ReadStored(one, folder, matrix.symptoms, target));
    if (matrix.columns.back().control_runs > 0) continue;
    matrix.skipped[one.name] = "no runs in " + folder;
    matrix.columns.pop_back();
  }
}

}  // namespace trainwreck
