// trainwreck check: formulas over the trace of a run that is over, without running anything.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>

#include "harness/cli/claims.h"
#include "harness/cli/session.h"
#include "harness/cli/storage.h"
#include "harness/cli/verbs.h"
#include "harness/formula/formula.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;
using formula::Formula;
using formula::Truth;

struct Loaded {
  RunTrace trace;
  std::optional<Run> run;  // of folders that `run` stored
  std::string end;
};

// A folder that someone else's training loop wrote has no run.json: its size is what is there.
Loaded Load(const std::string& folder) {
  if (!fs::is_directory(folder)) throw UsageError("'" + folder + "' is no folder");
  Loaded loaded;
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

void PrintErrors(const std::string& text, const std::vector<formula::FormulaError>& errors) {
  for (const formula::FormulaError& error : errors) {
    const std::size_t begin = std::min(error.begin, text.size());
    const std::size_t length = std::max<std::size_t>(std::max(error.end, begin) - begin, 1);
    std::cerr << "--assert:1:" << begin + 1 << ": error: " << error.message << "\n    " << text
              << "\n    " << std::string(begin, ' ') << "^" << std::string(length - 1, '~') << "\n";
    if (!error.hint.empty()) std::cerr << "  " << error.hint << "\n";
  }
}

formula::Vocabulary VocabularyOf(const Loaded& loaded, const std::map<std::string, Loaded>& arms,
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
std::map<std::string, Loaded> LoadArms(const CheckOptions& options, const Loaded& self,
                                       const std::vector<Formula>& formulas) {
  std::map<std::string, Loaded> arms;
  for (const auto& [name, folder] : options.arms) arms.emplace(name, Load(folder));
  if (!self.run) return arms;
  const fs::path here = fs::weakly_canonical(options.trace);
  for (const Formula& each : formulas) {
    for (const std::string& name : each.arms()) {
      fs::path folder = here.parent_path().parent_path() / name / here.filename();
      if (arms.count(name) == 0 && fs::is_regular_file(folder / "run.json")) {
        arms.emplace(name, Load(folder.string()));
      }
    }
  }
  return arms;
}

std::vector<Formula> ParseAll(const std::vector<std::string>& texts) {
  std::vector<Formula> formulas;
  for (const std::string& text : texts) {
    Formula::ParseResult parsed = Formula::Parse(text);
    PrintErrors(text, parsed.errors);
    if (parsed.formula && parsed.errors.empty()) formulas.push_back(*parsed.formula);
  }
  if (formulas.size() != texts.size()) throw UsageError("--assert: no formula");
  return formulas;
}

TargetDescription DescriptionFor(const Options& options) {
  if (options.common.target.empty()) {
    if (auto stored = FindStoredDescription(options.check.trace)) return *stored;
  }
  return OpenSession(options.common).description;
}

}  // namespace

int CheckVerb(const Options& options) {
  const std::vector<Formula> formulas = ParseAll(options.check.formulas);
  const Loaded self = Load(options.check.trace);
  const std::map<std::string, Loaded> arms = LoadArms(options.check, self, formulas);
  const TargetDescription target = DescriptionFor(options);
  const formula::Vocabulary vocabulary = VocabularyOf(self, arms, target);
  formula::Runs runs{.self = &self.trace, .arms = {}};
  for (const auto& [name, arm] : arms) runs.arms[name] = &arm.trace;

  bool has_errors = false;
  for (const Formula& each : formulas) {
    std::vector<formula::FormulaError> errors = each.Check(vocabulary);
    PrintErrors(each.text(), errors);
    has_errors = has_errors || !errors.empty();
  }
  if (has_errors) throw UsageError("--assert: the formula does not fit this trace and target");

  int status = kExitPassed;
  for (const Formula& each : formulas) {
    const formula::Reading reading = each.Evaluate(runs, target);
    const char* truth = reading.truth == Truth::kTrue    ? "true"
                        : reading.truth == Truth::kFalse ? "false"
                                                         : "unknown";
    const std::string margin = MarginText(reading);
    std::cout << truth << ": " << each.text() << "\n";
    if (!margin.empty()) std::cout << "  margin " << margin << "\n";
    if (!reading.seen.empty()) std::cout << "  seen " << reading.seen << "\n";
    if (reading.step >= 0) std::cout << "  at step " << reading.step << "\n";
    if (reading.truth == Truth::kFalse) status = kExitFailed;
    if (reading.truth == Truth::kUnknown && status == kExitPassed) status = kExitInconclusive;
  }
  return status;
}

}  // namespace trainwreck
