// trainwreck overfit: can a recipe learn two examples and one batch by heart?
#include "harness/checkup/overfit.h"

#include <fmt/format.h>

#include <iostream>
#include <utility>

#include "harness/cli/table.h"
#include "harness/cli/verb.h"
#include "harness/report/text.h"
#include "harness/session/preflight.h"
#include "harness/session/storage.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

struct OverfitOptions {
  CommonOptions common;
  std::string recipe;
  std::string arm = "control";
  int seeds = 3;
  int steps = 0;  // 0: as the recipe says, 200 at least
  int cores = 0;
  std::vector<std::string> set;
  std::string report;
};

void PrintProbes(const OverfitReport& report) {
  std::vector<std::vector<std::string>> rows = {
      {"samples", "seeds that learn", "after steps", "first loss", "end loss"}};
  for (const auto* probes : {&report.probes, &report.more}) {
    for (const Probe& probe : *probes) {
      const Fit& first = probe.seeds.front();
      rows.push_back({probe.what, fmt::format("{} of {}", probe.learnt(), probe.seeds.size()),
                      probe.steps() ? std::to_string(*probe.steps()) : "",
                      FormatNumber(first.start), FormatNumber(first.end)});
    }
  }
  PrintTable(std::cout, rows);
}

void PrintVerdict(const OverfitReport& report, const std::string& recipe) {
  std::cout << "# " << report.recipe << ": " << TextOf(report.verdict()) << "\n";
  for (const FitClue& clue : report.clues) {
    std::cout << "seen: " << clue.seen << "\nlook: " << clue.look << "\n";
  }
  if (report.verdict() == FitVerdict::kLearns) {
    std::cout << "next: 'trainwreck checkup " << recipe
              << "': loop, loss and optimizer work; labels that are wrong in each epoch alike, too "
                 "few data or too small a model do not show here\n";
  } else if (report.clues.empty()) {
    std::cout << "seen: no signal is out of order\n"
                 "look: the loss and its mask, and equal inputs with different targets\n";
  }
}

int OverfitVerb(const OverfitOptions& options) {
  if (!options.report.empty()) CheckWritable(options.report, "--report");
  const Session session = OpenSession(options.common, /*builds=*/true);
  PlanOptions plan;
  plan.seeds = options.seeds;
  plan.overrides = ParseOverrides(options.set, session.description);
  const Chosen chosen = ChooseCases(session, {.paths = {options.recipe}}, plan, /*points=*/{});
  RequirePreflight(options.common, session, chosen.cases);
  const Patient patient = OnePatient(chosen, options.arm, 0, options.seeds);
  const auto report = Overfit(patient, options.steps, session, options.cores);
  if (!report) return kExitInterrupted;
  std::cout << fmt::format("# overfit of {} ({}): {} seeds, {} steps{}\n", report->recipe,
                           options.arm, options.seeds, report->steps,
                           report->off.empty() ? "" : ", without " + Join(report->off));
  PrintProbes(*report);
  PrintVerdict(*report, options.recipe);
  if (!options.report.empty()) {
    WriteWholeFile(options.report, ToJson(*report).dump(1) + "\n");
    std::cout << "# report: " << options.report << "\n";
  }
  switch (report->verdict()) {
    case FitVerdict::kLearns:
      return kExitPassed;
    case FitVerdict::kSomeSeeds:
      return kExitInconclusive;
    case FitVerdict::kDoesNotLearn:
      return kExitFailed;
  }
  return kExitFailed;
}

void Declare(VerbArguments& arguments, OverfitOptions& options) {
  arguments
      .Positional("RECIPE", options.recipe, "A scenario's file or name, as nan/x or 'nan/x[sgd]'")
      .Required();
  arguments.PatientArm(options.arm);
  arguments.Option("--seeds", options.seeds, "Seeds [3]", "N").Between(1, 1000);
  arguments
      .Option("--steps", options.steps, "Steps of each run [as the recipe says, 200 at least]", "N")
      .Between(5, 100000);
  arguments.Set(options.set);
  arguments.Cores(options.cores);
  arguments.Option("--report", options.report, "Write a report as JSON", "FILE");
  arguments.Preflight(options.common);
  arguments.Common(options.common);
}

const VerbRegistration registration(
    "overfit", "Overfit two examples and one batch: does training work at all?", kSearching + 4,
    Declare, OverfitVerb);

}  // namespace
}  // namespace trainwreck
