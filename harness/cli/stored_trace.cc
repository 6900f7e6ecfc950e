#include "harness/cli/stored_trace.h"

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "harness/cli/session.h"

namespace trainwreck {

namespace fs = std::filesystem;
using formula::Formula;

// A folder that someone else's training loop wrote has no run.json: its size is what is there.
StoredTrace LoadStoredTrace(const std::string& folder) {
  if (!fs::is_directory(folder)) throw UsageError("'" + folder + "' is no folder");
  StoredTrace loaded;
  std::vector<std::string> problems;
  if (fs::is_regular_file(folder + "/run.json")) {
    StoredRun stored = LoadStoredRun(folder);
    loaded.trace = LoadTrace(folder, stored.run.ranks, stored.run.steps, &problems);
    loaded.run = std::move(stored.run);
    loaded.end = stored.end;
  } else {
    int ranks = 0;
    while (fs::is_regular_file(folder + "/rank" + std::to_string(ranks) + ".jsonl")) ++ranks;
    if (ranks == 0) throw UsageError("'" + folder + "' holds no trace: there is no rank0.jsonl");
    int steps = 0;
    RunTrace first = LoadTrace(folder, ranks, 0);
    for (int rank = 0; rank < ranks; ++rank) steps = std::max(steps, first.last_step(rank) + 1);
    loaded.trace = LoadTrace(folder, ranks, steps, &problems);
  }
  for (const std::string& problem : problems)
    std::cerr << "trainwreck: " << folder << ": " << problem << "\n";
  return loaded;
}

formula::Vocabulary VocabularyOf(const StoredTrace& loaded,
                                 const std::map<std::string, StoredTrace>& arms,
                                 const TargetDescription& target) {
  formula::Vocabulary vocabulary;
  vocabulary.target = &target;
  vocabulary.planned_steps = loaded.trace.planned_steps;
  vocabulary.world_size = loaded.trace.world_size;
  for (const auto& [name, arm] : arms) vocabulary.arms.insert(name);
  for (const Event& event : loaded.trace.events) {
    if (event.name == "fired" && event.fields.contains("id") && event.fields["id"].is_string()) {
      vocabulary.fault_ids.insert(event.fields["id"].get<std::string>());
    }
  }
  if (loaded.run) {
    for (const PlannedFault& fault : loaded.run->plan.faults) vocabulary.fault_ids.insert(fault.id);
  }
  return vocabulary;
}

// Other arms of the same seed lie beside a stored run: <case>/<arm>/<seed>.
std::map<std::string, StoredTrace> LoadStoredArms(
    const std::string& trace, const std::vector<std::pair<std::string, std::string>>& named,
    const StoredTrace& self, const std::vector<Formula>& formulas) {
  std::map<std::string, StoredTrace> arms;
  for (const auto& [name, folder] : named) arms.emplace(name, LoadStoredTrace(folder));
  if (!self.run) return arms;
  const fs::path here = fs::weakly_canonical(trace);
  for (const Formula& each : formulas) {
    for (const std::string& name : each.arms()) {
      fs::path folder = here.parent_path().parent_path() / name / here.filename();
      if (arms.count(name) == 0 && fs::is_regular_file(folder / "run.json")) {
        arms.emplace(name, LoadStoredTrace(folder.string()));
      }
    }
  }
  return arms;
}

std::optional<double> StoredMargin(const std::string& folder, const Formula& formula,
                                   const TargetDescription& target) {
  const StoredTrace self = LoadStoredTrace(folder);
  const std::map<std::string, StoredTrace> arms = LoadStoredArms(folder, {}, self, {formula});
  const std::vector<formula::FormulaError> errors = formula.Check(VocabularyOf(self, arms, target));
  if (!errors.empty()) {
    throw UsageError("--metric: " + errors.front().message +
                     (errors.front().hint.empty() ? "" : " (" + errors.front().hint + ")"));
  }
  formula::Runs runs{.self = &self.trace, .arms = {}};
  for (const auto& [name, arm] : arms) runs.arms[name] = &arm.trace;
  const formula::Reading reading = formula.Evaluate(runs, target);
  const auto& margin = reading.margins[static_cast<int>(reading.main_unit)];
  if (reading.truth == formula::Truth::kUnknown || !margin) return std::nullopt;
  return (margin->lo + margin->hi) / 2;
}

}  // namespace trainwreck
