// trainwreck fits: how much memory a recipe will need, and how large a batch fits.
#include "harness/inspect/fits.h"

#include <fmt/format.h>

#include <iostream>
#include <utility>

#include "harness/cli/table.h"
#include "harness/cli/verb.h"
#include "harness/session/preflight.h"
#include "harness/session/storage.h"

namespace trainwreck {
namespace {

struct FitsVerbOptions {
  CommonOptions common;
  std::string recipe;
  std::string arm = "control";
  std::string budget;
  FitsOptions fits;
  int cores = 0;
  std::vector<std::string> set;
  std::string report;
};

// The owners of most of it.
std::string OwnersOf(const PeakAt& point) {
  MemoryReport report;
  report.peak = point.peak;
  report.parts = point.parts;
  return SharesText(report);
}

void PrintPoints(const FitsReport& report) {
  std::vector<std::vector<std::string>> rows = {{report.key, "peak", "", "owners"}};
  const auto add = [&](const PeakAt& point, const char* note) {
    rows.push_back({std::to_string(point.size), BytesText(point.peak), note, OwnersOf(point)});
  };
  for (const PeakAt& point : report.points) add(point, "measured");
  if (!report.is_measured) {
    rows.push_back({std::to_string(report.own), BytesText(report.predicted), "predicted", ""});
  }
  if (report.fits) add(*report.fits, "measured, fits");
  if (report.exceeds) add(*report.exceeds, "measured, does not fit");
  PrintTable(std::cout, rows);
}

void PrintAnswer(const FitsReport& report, const std::optional<double>& budget) {
  if (report.miss && !report.is_measured) {
    std::cout << fmt::format("# the curve of the sizes before it misses {} by {:.2g}%\n",
                             report.points.back().size, 100 * *report.miss);
  }
  if (report.verified) {
    std::cout << fmt::format("# the recipe needs {}, {:.2g}% from what is predicted\n",
                             BytesText(*report.verified),
                             100 * std::abs(report.predicted / *report.verified - 1));
  }
  if (!budget) return;
  if (!report.largest) {
    std::cout << "# no answer: the peak does not rise with " << report.key << "\n";
  } else if (*report.largest == 0) {
    std::cout << "# not even 1 fits into " << BytesText(*budget) << "\n";
  } else {
    std::cout << "# largest " << report.key << " in " << BytesText(*budget) << ": "
              << *report.largest << "; the recipe's is " << report.own << "\n";
  }
}

int FitsVerb(const FitsVerbOptions& given) {
  if (!given.report.empty()) CheckWritable(given.report, "--report");
  FitsOptions options = given.fits;
  if (!given.budget.empty()) options.budget = ParseBytes(given.budget);
  const Session session = OpenSession(given.common, /*builds=*/true);
  PlanOptions plan;
  plan.seeds = 1;
  plan.overrides = ParseOverrides(given.set, session.description);
  const Chosen chosen = ChooseCases(session, {.paths = {given.recipe}}, plan, /*points=*/{});
  RequirePreflight(given.common, session, chosen.cases);
  const Patient patient = OnePatient(chosen, given.arm, 0, 1);
  const auto report = MeasureFits(patient, options, session, given.cores);
  if (!report) return kExitInterrupted;
  std::cout << "# memory of " << report->recipe << " (" << given.arm << "), rank 0, by "
            << report->key << "\n";
  PrintPoints(*report);
  PrintAnswer(*report, options.budget);
  if (!given.report.empty()) {
    WriteWholeFile(given.report, ToJson(*report).dump(1) + "\n");
    std::cout << "# report: " << given.report << "\n";
  }
  if (!options.budget) return kExitPassed;
  if (!report->largest) return kExitInconclusive;
  return *report->largest >= report->own ? kExitPassed : kExitFailed;
}

void Declare(VerbArguments& arguments, FitsVerbOptions& options) {
  arguments
      .Positional("RECIPE", options.recipe, "A scenario's file or name, as nan/x or 'nan/x[sgd]'")
      .Required();
  arguments.PatientArm(options.arm);
  arguments.Option("--budget", options.budget,
                   "Find the largest size whose peak is within it, as 24MB or 1.5GiB", "BYTES");
  arguments.Option("--vary", options.fits.key, "The recipe key of the size [the batch size]",
                   "KEY");
  arguments.Flag("--verify", options.fits.verify, "Also measure the recipe's own size");
  arguments.Set(options.set);
  arguments.Cores(options.cores);
  arguments.Option("--report", options.report, "Write a report as JSON", "FILE");
  arguments.Preflight(options.common);
  arguments.Common(options.common);
}

const VerbRegistration registration(
    "fits", "Predict a recipe's peak of memory, and the largest batch that fits", kSearching + 6,
    Declare, FitsVerb);

}  // namespace
}  // namespace trainwreck
