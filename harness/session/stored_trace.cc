#include "harness/session/stored_trace.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "harness/session/session.h"

namespace trainwreck {

namespace fs = std::filesystem;
using formula::Formula;

namespace {

constexpr int kMostSteps = 10'000'000;  // of a run whose length its own trace says

bool HasFile(const std::string& folder, const std::string& name) {
  return fs::is_regular_file(fs::path(folder) / name);
}

std::string RankFile(int rank) { return "rank" + std::to_string(rank) + ".jsonl"; }

void Lose(StoredTrace& stored, int rank, const std::string& problem) {
  stored.trace.lost.insert(rank);
  stored.problems.push_back(problem);
}

// What the launcher knows of a run that it stored must still be there.
void FindWhatIsGone(const std::string& folder, StoredTrace& stored) {
  if (!HasFile(folder, "launcher.jsonl")) Lose(stored, -1, "launcher.jsonl is missing");
  if (stored.end == RunEnd::kDecided) stored.trace.finished = false;  // we stopped it
  if (stored.end != RunEnd::kCompleted) return;
  const int ranks = stored.run->processes > 0 ? stored.run->processes : stored.run->ranks;
  for (int rank = 0; rank < ranks; ++rank) {
    if (stored.trace.end_why.contains(rank)) continue;
    Lose(stored, rank,
         RankFile(rank) + (HasFile(folder, RankFile(rank))
                               ? " is cut off: the run came to its end, the file does not"
                               : " is missing"));
  }
}

// One more than the highest number of a file rank<N>.jsonl.
int RanksIn(const std::string& folder) {
  int ranks = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    int rank = 0, used = 0;
    const std::string name = entry.path().filename().string();
    if (std::sscanf(name.c_str(), "rank%d.jsonl%n", &rank, &used) == 1 && used > 0 &&
        name == RankFile(rank) && rank < 4096) {
      ranks = std::max(ranks, rank + 1);
    }
  }
  if (ranks > 0) return ranks;
  const bool packed = HasFile(folder, "rank0.jsonl.gz");
  throw UsageError("'" + folder + "' holds no trace: there is no rank0.jsonl" +
                   (packed ? " (unpack rank0.jsonl.gz first)" : ""));
}

int StepsSaid(const RunTrace& trace) {
  int steps = 0;
  for (const Event& event : trace.events) {
    if (event.name == "ended" && event.step <= kMostSteps) steps = std::max(steps, event.step);
  }
  return steps;
}

// How long a run is that nobody stored a plan of, and whether it is over.
void FindItsEnd(StoredTrace& stored, const TraceFacts& facts) {
  RunTrace& trace = stored.trace;
  int made = 0;
  bool ended = true;
  for (int rank = 0; rank < trace.world_size; ++rank) {
    made = std::max(made, trace.last_step(rank) + 1);
    ended = ended && trace.end_why.contains(rank);
  }
  trace.finished = ended || facts.finished;
  if (facts.steps > 0 && facts.steps < made) {
    throw UsageError("--steps " + std::to_string(facts.steps) + ": the trace has " +
                     std::to_string(made) + " steps already");
  }
  trace.planned_steps =
      facts.steps > 0 ? facts.steps : std::max(made, ended ? StepsSaid(trace) : 0);
  stored.has_open_end = !trace.finished && facts.steps == 0;
  if (!stored.has_open_end) return;
  if (facts.furthest_step > kMostSteps) {
    throw UsageError("--assert: a run of more than " + std::to_string(kMostSteps) + " steps");
  }
  // One more step at least, so that nothing holds "to the end"; and those that are asked for.
  trace.planned_steps = std::max(made + 1, static_cast<int>(facts.furthest_step) + 1);
}

}  // namespace

StoredTrace LoadStoredTrace(const std::string& folder, const TraceFacts& facts) {
  if (!fs::is_directory(folder)) throw UsageError("'" + folder + "' is no folder");
  StoredTrace loaded;
  if (HasFile(folder, "run.json")) {
    StoredRun stored = LoadStoredRun(folder);
    loaded.trace = LoadTrace(folder, stored.run.ranks, stored.run.steps, &loaded.problems);
    loaded.run = std::move(stored.run);
    loaded.end = stored.end;
    FindWhatIsGone(folder, loaded);
  } else {
    const int ranks = RanksIn(folder);
    loaded.trace = LoadTrace(folder, ranks, 0, &loaded.problems);
    for (int rank = 0; rank < ranks; ++rank) {
      if (!HasFile(folder, RankFile(rank))) Lose(loaded, rank, RankFile(rank) + " is missing");
    }
    FindItsEnd(loaded, facts);
  }
  for (const std::string& problem : loaded.problems) {
    std::cerr << "trainwreck: " << folder << ": " << problem << "\n";
  }
  if (!loaded.trace.lost.empty()) {
    std::cerr << "trainwreck: " << folder
              << ": records are lost: what they could have said is unknown\n";
  }
  if (loaded.has_open_end) {
    std::cerr
        << "trainwreck: " << folder
        << ": the trace has no `end` record, so the run may go on, and what later steps could "
           "change is unknown (--finished: it is over; --steps N: it plans N steps)\n";
  }
  return loaded;
}

void RequireRank(const StoredTrace& stored, int rank) {
  const int ranks = stored.trace.world_size;
  if (rank >= 0 && rank < ranks) return;
  throw UsageError("--rank " + std::to_string(rank) + ": the run has " +
                   (ranks == 1 ? "rank 0 alone" : "the ranks 0 to " + std::to_string(ranks - 1)));
}

formula::Vocabulary VocabularyOf(const StoredTrace& loaded,
                                 const std::map<std::string, StoredTrace>& arms,
                                 const TargetDescription& target) {
  formula::Vocabulary vocabulary;
  vocabulary.target = &target;
  // A run that goes on may come to any step.
  vocabulary.planned_steps = loaded.has_open_end ? 0 : loaded.trace.planned_steps;
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
    const StoredTrace& self, const std::vector<Formula>& formulas, const TraceFacts& facts) {
  std::map<std::string, StoredTrace> arms;
  for (const auto& [name, folder] : named) arms.emplace(name, LoadStoredTrace(folder, facts));
  if (!self.run) return arms;
  const fs::path here = fs::weakly_canonical(trace);
  for (const Formula& each : formulas) {
    for (const std::string& name : each.arms()) {
      fs::path folder = here.parent_path().parent_path() / name / here.filename();
      if (!arms.contains(name) && fs::is_regular_file(folder / "run.json")) {
        arms.emplace(name, LoadStoredTrace(folder.string()));
      }
    }
  }
  return arms;
}

std::optional<double> StoredMargin(const std::string& folder, const Formula& metric,
                                   const TargetDescription& target) {
  const Formula formula = metric.WithRoles(target);
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
