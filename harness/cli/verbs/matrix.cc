// trainwreck matrix: every symptom of the suite over every fault and every control.
#include "harness/matrix/matrix.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <utility>

#include "harness/campaign/batches.h"
#include "harness/cli/verbs.h"
#include "harness/session/chosen.h"
#include "harness/session/preflight.h"
#include "harness/session/session.h"
#include "harness/session/storage.h"
#include "harness/session/stored_trace.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

bool IsWanted(const ArmPlan& arm) {
  return arm.kind == ArmKind::kControl || arm.kind == ArmKind::kFault ||
         arm.kind == ArmKind::kReference;
}

// The runs of a case, with everything recorded that any symptom reads.
Batch RunsOf(const Case& one, const std::vector<std::string>& record,
             const MatrixOptions& options) {
  Batch batch;
  for (const ArmPlan& arm : one.arms) {
    if (!IsWanted(arm)) continue;
    const int declared = one.scenario->seed_count;
    const int seeds = options.seeds > 0 ? options.seeds : declared;
    const int limit =
        arm.kind == ArmKind::kFault || options.control_seeds == 0 ? seeds : options.control_seeds;
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

// What `matrix --keep` left of a case.
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

// Without a selection, what says of itself that it must fail is no part of the suite.
SelectionOptions WithoutNegatives(SelectionOptions selection) {
  if (selection.paths.empty() && selection.tag.empty()) selection.tag = "not negative";
  return selection;
}

BatchesEnd RunColumns(const std::vector<Case>& cases, const Options& options,
                      const Session& session, const std::string& output, Matrix& matrix) {
  const std::vector<std::string> record = SignalsOf(matrix.symptoms);
  std::vector<Batch> batches;
  for (const Case& one : cases) batches.push_back(RunsOf(one, record, options.matrix));
  LauncherOptions launcher;
  launcher.target = session.target;
  launcher.isolation = options.matrix.exec ? Isolation::kExec : Isolation::kFork;
  launcher.cores = options.matrix.cores;
  launcher.output_dir = fs::absolute(output).lexically_normal().string();
  if (options.matrix.keep) StoreDescription(output, session.description);
  std::vector<MatrixColumn> columns(cases.size());
  std::vector<std::string> unhealthy;
  BatchesEnd end = RunBatches(
      batches, launcher, options.matrix.keep, [&](std::size_t index, BatchResults& results) {
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

}  // namespace

int MatrixVerb(const Options& options) {
  const MatrixOptions& wanted = options.matrix;
  const Session session = OpenSession(options.common, /*builds=*/wanted.from.empty());
  PlanOptions plan;
  plan.overrides = ParseOverrides(wanted.set, session.description);
  plan.seeds = wanted.seeds;
  if (wanted.control_seeds > 0) plan.seeds = std::max(wanted.seeds, wanted.control_seeds);
  const Chosen chosen =
      ChooseCases(session, WithoutNegatives(wanted.selection), plan, /*points=*/{});
  if (wanted.from.empty()) RequirePreflight(options.common, session, chosen.cases);
  Matrix matrix;
  matrix.symptoms = SymptomsOf(chosen.cases);
  std::vector<Case> cases;
  for (const Case& one : chosen.cases) {
    if (one.skip_reason.empty()) {
      cases.push_back(one);
    } else {
      matrix.skipped[one.name] = one.skip_reason;
    }
  }
  BatchesEnd end;
  std::string output = wanted.output;
  if (!wanted.from.empty()) {
    const std::string folder = FindOutputFolder(wanted.from);
    if (output.empty()) output = folder;
    for (const Case& one : cases) {
      matrix.columns.push_back(ReadStored(one, folder, matrix.symptoms, session.description));
      if (matrix.columns.back().control_runs > 0) continue;
      matrix.skipped[one.name] = "no runs in " + folder;
      matrix.columns.pop_back();
    }
  } else if (!cases.empty()) {
    output = MakeOutputFolder(output, /*is_latest=*/false);
    end = RunColumns(cases, options, session, output, matrix);
  }
  if (end.interrupted) return kExitInterrupted;
  if (matrix.columns.empty()) {
    std::cerr << "trainwreck: nothing to read: no case was selected, or all were skipped\n";
    return kExitNothingRun;
  }
  std::cout << ToText(matrix);
  const Json json = ToJson(matrix);
  WriteWholeFile(output + "/matrix.json", json.dump(1) + "\n");
  WriteWholeFile(output + "/matrix.html", ToHtml(matrix));
  std::cout << "# report: " << output << "/matrix.json, " << output << "/matrix.html\n";
  for (const std::string& trouble : end.troubles) std::cerr << "trainwreck: " << trouble << "\n";
  if (FalsePositivesOf(matrix).alarmed_runs > 0) return kExitFailed;
  return end.troubles.empty() ? kExitPassed : kExitInfrastructure;
}

}  // namespace trainwreck
