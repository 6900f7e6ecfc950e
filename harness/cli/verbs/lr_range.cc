// trainwreck lr-range: runs a recipe at many learning rates, each a real run of its own length and
// schedule, and says which of them learn.
#include "harness/checkup/lr_range.h"

#include <fmt/format.h>

#include <iostream>
#include <utility>

#include "harness/cli/table.h"
#include "harness/cli/verb.h"
#include "harness/cli/verbs/page_file.h"
#include "harness/report/console.h"
#include "harness/report/text.h"
#include "harness/session/preflight.h"
#include "harness/session/storage.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

struct LrRangeOptions {
  CommonOptions common;
  std::string recipe;
  std::string arm = "control";
  RateGrid grid;
  int seeds = 2;
  int steps = 0;  // 0: as the recipe says
  int cores = 0;
  std::vector<std::string> set;
  std::string report;
  std::string html;
};

void PrintPoints(const std::vector<RatePoint>& points, const LrRange& range) {
  std::vector<std::vector<std::string>> rows = {{"rate", "end loss", ""}};
  for (int i = 0; i < static_cast<int>(points.size()); ++i) {
    std::string note;
    if (i >= range.plateau_from && i <= range.plateau_to && range.best >= 0) note = "plateau";
    for (const auto& [index, word] : {std::pair(range.best, "best"),
                                      {range.steepest, "steepest descent"},
                                      {range.largest_stable, "largest stable"}}) {
      if (i == index) note += (note.empty() ? "" : ", ") + std::string(word);
    }
    rows.push_back({FormatNumber(points[i].rate),
                    points[i].diverged ? "diverged" : FormatNumber(points[i].end), note});
  }
  PrintTable(std::cout, rows);
  std::vector<double> ends;
  for (const RatePoint& point : points) ends.push_back(point.end);
  std::cout << "# end loss by rate: "
            << Sparkline(ends, 80, ConsoleOptions::ForStream(1, ColorMode::kNever).unicode,
                         FitScale({&ends}))
            << "\n";
}

void PrintAdvice(const LrRangeResult& result, const std::string& recipe) {
  if (!result.verdict) {
    std::cout << "# no rate learns: the rate is not what is wrong; go on with 'trainwreck checkup "
              << recipe << "'\n";
    return;
  }
  std::cout << fmt::format("# the recipe's rate, {:g}, is {}\n", result.own_rate,
                           TextOf(*result.verdict));
  if (*result.verdict == RateVerdict::kGood) {
    std::cout << "next:      keep the rate, and go on with 'trainwreck checkup " << recipe << "'\n"
              << "not first: another rate\n";
    return;
  }
  std::cout << fmt::format("next:      {} = {:.2g}, the middle of the plateau\n", result.key,
                           result.range.suggested);
  const RateAdvice& advice = result.advice;
  if (advice.scenario.empty()) return;
  std::cout << "           or " << Join(advice.next) << "\n";
  if (!advice.not_first.empty()) std::cout << "not first: " << Join(advice.not_first) << "\n";
  std::cout << "see:       trainwreck run " << advice.scenario << "\n";
}

int LrRangeVerb(const LrRangeOptions& options) {
  if (!options.report.empty()) CheckWritable(options.report, "--report");
  CheckPage(options.html);
  const Session session = OpenSession(options.common, /*builds=*/true);
  PlanOptions plan;
  plan.seeds = options.seeds;
  plan.overrides = ParseOverrides(options.set, session.description);
  const Chosen chosen = ChooseCases(session, {.paths = {options.recipe}}, plan, /*points=*/{});
  RequirePreflight(options.common, session, chosen.cases);
  const Patient patient = OnePatient(chosen, options.arm, 0, options.seeds);
  RateGrid grid = options.grid;
  grid.own = OwnRateOf(patient, session.description);
  const int steps = options.steps > 0 ? options.steps : patient.runs.front().steps;
  std::cout << fmt::format("# lr-range of {} ({}): seeds of each rate: {}, {} steps\n",
                           patient.name, options.arm, options.seeds, steps);
  auto points = MeasureRange(grid, [&](const std::vector<double>& rates) {
    return RunAtRates(patient, rates, steps, session, options.cores);
  });
  if (!points) return kExitInterrupted;
  const LrRangeResult result = ConcludeRange(patient.name, grid.own, std::move(*points), session);
  PrintPoints(result.points, result.range);
  PrintAdvice(result, options.recipe);
  if (!options.report.empty()) {
    WriteWholeFile(options.report, ToJson(result).dump(1) + "\n");
    std::cout << "# report: " << options.report << "\n";
  }
  WritePage(options.html, ToJson(result));
  if (!result.verdict) return kExitInconclusive;
  return *result.verdict == RateVerdict::kGood ? kExitPassed : kExitFailed;
}

void Declare(VerbArguments& arguments, LrRangeOptions& options) {
  arguments
      .Positional("RECIPE", options.recipe, "A scenario's file or name, as nan/x or 'nan/x[sgd]'")
      .Required();
  arguments.PatientArm(options.arm);
  arguments.Option("--from", options.grid.from, "The lowest rate [the recipe's / 1000]", "RATE")
      .Positive();
  arguments.Option("--to", options.grid.to, "The highest rate [the recipe's x 100]", "RATE")
      .Positive();
  arguments.Option("--rates", options.grid.rates, "How many rates, ends included [16]", "N")
      .Between(3, 1000);
  arguments.Option("--seeds", options.seeds, "Seeds per rate [2]", "N").Between(1, 1000);
  arguments.Option("--steps", options.steps, "Steps of each run [as the recipe says]", "N")
      .Between(5, 100000);
  arguments.Set(options.set);
  arguments.Cores(options.cores);
  arguments.Option("--report", options.report, "Write a report as JSON", "FILE");
  DeclarePage(arguments, options.html);
  arguments.Preflight(options.common);
  arguments.Common(options.common);
}

const VerbRegistration registration(
    "lr-range", "Learning-rate range test: run a recipe at many rates and suggest one",
    kSearching + 4, Declare, LrRangeVerb);

}  // namespace
}  // namespace trainwreck
