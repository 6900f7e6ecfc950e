// trainwreck seeds: how much a recipe's final loss differs from seed to seed, and how many seeds
// tell two recipes apart.
#include <fmt/format.h>

#include <iostream>
#include <utility>

#include "harness/checkup/seed_power.h"
#include "harness/cli/table.h"
#include "harness/cli/verb.h"
#include "harness/session/preflight.h"
#include "harness/session/storage.h"

namespace trainwreck {
namespace {

struct SeedsOptions {
  CommonOptions common;
  std::string recipe;
  std::string arm = "control";
  std::string against_arm;
  std::vector<std::string> set, against;
  int seeds = 8;
  int cores = 0;
  SeedPowerOptions power;
  std::string report;
};

std::string Number(double value) { return fmt::format("{:.4g}", value); }

std::string Range(double lo, double hi) { return Number(lo) + " to " + Number(hi); }

std::string Count(const std::optional<int>& seeds) {
  return seeds ? std::to_string(*seeds) : "more than 100000";
}

void PrintRecipes(const SeedPowerReport& report) {
  std::vector<std::vector<std::string>> rows = {
      {"recipe", "mean", "interval", "spread", "interval"}};
  for (const SeedLosses& one : report.recipes) {
    if (!one.spread) {
      rows.push_back({one.name,
                      fmt::format("{} of {} seeds diverged", one.diverged(), one.losses.size()), "",
                      "", ""});
      continue;
    }
    rows.push_back({one.name, Number(one.mean->value), Range(one.mean->lo, one.mean->hi),
                    Number(one.spread->value), Range(one.spread->lo, one.spread->hi)});
  }
  PrintTable(std::cout, rows);
}

void PrintNeeded(const SeedPowerReport& report) {
  if (report.needed.empty()) {
    std::cout << "# no spread: a run diverged, or there is one seed\n";
    return;
  }
  if (report.difference) {
    const statistics::Difference& difference = *report.difference;
    std::cout << fmt::format(
        "# second - first: {} ({}), p = {:.2g}: {}\n", Number(difference.value),
        Range(difference.lo, difference.hi), difference.p,
        report.is_told() ? "they differ" : "these seeds do not tell them apart");
  }
  std::vector<std::vector<std::string>> rows = {{"difference", "seeds of each", "to be safe"}};
  for (const SeedsNeeded& needed : report.needed) {
    const double mean = report.recipes.front().mean->value;
    rows.push_back(
        {fmt::format("{} ({:.2g}%)", Number(needed.difference), 100 * needed.difference / mean),
         Count(needed.seeds), Count(needed.cautious)});
  }
  PrintTable(std::cout, rows);
  std::cout << fmt::format(
      "# {} seeds of each find a difference of {} or more, with a power of "
      "{:g}\n",
      report.seeds, Number(*report.least), report.options.power);
}

// Overrides that come later win.
Chosen Choose(const Session& session, const SeedsOptions& options,
              const std::vector<std::string>& more) {
  std::vector<std::string> set = options.set;
  set.insert(set.end(), more.begin(), more.end());
  PlanOptions plan;
  plan.seeds = options.seeds;
  plan.overrides = ParseOverrides(set, session.description);
  return ChooseCases(session, {.paths = {options.recipe}}, plan, /*points=*/{});
}

int SeedsVerb(const SeedsOptions& options) {
  if (!options.report.empty()) CheckWritable(options.report, "--report");
  const Session session = OpenSession(options.common, /*builds=*/true);
  const Chosen first = Choose(session, options, {});
  RequirePreflight(options.common, session, first.cases);
  std::vector<std::pair<std::string, Patient>> recipes = {
      {"first", OnePatient(first, options.arm, 0, options.seeds)}};
  if (!options.against.empty() || !options.against_arm.empty()) {
    const std::string& arm = options.against_arm.empty() ? options.arm : options.against_arm;
    recipes.emplace_back(
        "second", OnePatient(Choose(session, options, options.against), arm, 0, options.seeds));
  }
  const auto report = MeasureSeeds(recipes, options.power, session, options.cores);
  if (!report) return kExitInterrupted;
  std::cout << fmt::format(
      "# seeds of {} ({}): {} of each, {} steps; loss: mean of the last {} steps\n", report->recipe,
      options.arm, report->seeds, report->steps, report->options.last);
  PrintRecipes(*report);
  PrintNeeded(*report);
  if (!options.report.empty()) {
    WriteWholeFile(options.report, ToJson(*report).dump(1) + "\n");
    std::cout << "# report: " << options.report << "\n";
  }
  return report->is_told() ? kExitPassed : kExitInconclusive;
}

void Declare(VerbArguments& arguments, SeedsOptions& options) {
  arguments
      .Positional("RECIPE", options.recipe, "A scenario's file or name, as nan/x or 'nan/x[sgd]'")
      .Required();
  arguments.PatientArm(options.arm);
  arguments.Set(options.set);
  arguments.Option("--against", options.against,
                   "A second recipe: the first with this key changed; may be repeated",
                   "KEY=VALUE");
  arguments.Option("--against-arm", options.against_arm, "A second recipe: this arm", "ARM")
      .OneOf({"control", "fault"});
  arguments.Option("--seeds", options.seeds, "Seeds of each recipe [8]", "N").Between(2, 1000);
  arguments
      .Option("--last", options.power.last,
              "Steps whose mean loss is the final loss [a tenth of the run]", "N")
      .Between(1, 1000000);
  arguments
      .Option("--power", options.power.power,
              "Probability of finding a difference that is there [0.8]", "P")
      .Between(0.5, 0.999);
  arguments
      .Option("--confidence", options.power.confidence, "Of intervals and of the test [0.95]", "P")
      .Between(0.5, 0.9999);
  arguments.Cores(options.cores);
  arguments.Option("--report", options.report, "Write a report as JSON", "FILE");
  arguments.Preflight(options.common);
  arguments.Common(options.common);
}

const VerbRegistration registration("seeds",
                                    "Spread over seeds, and how many seeds tell two recipes apart",
                                    kSearching + 5, Declare, SeedsVerb);

}  // namespace
}  // namespace trainwreck
