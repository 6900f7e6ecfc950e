// trainwreck matrix: every symptom of the suite over every fault and every control.
#include "harness/matrix/matrix.h"

#include <algorithm>
#include <iostream>

#include "harness/campaign/matrix_runs.h"
#include "harness/cli/verb.h"
#include "harness/pages/pages.h"
#include "harness/session/chosen.h"
#include "harness/session/preflight.h"
#include "harness/session/session.h"
#include "harness/session/storage.h"

namespace trainwreck {
namespace {

struct MatrixOptions {
  CommonOptions common;
  SelectionOptions selection;
  MatrixRequest request;
  std::vector<std::string> set;
  std::string output;
  std::string from;  // the folder of a matrix that kept its runs; nothing is run
};

// Without a selection, what says of itself that it must fail is no part of the suite.
SelectionOptions WithoutNegatives(SelectionOptions selection) {
  if (selection.paths.empty() && selection.tag.empty()) selection.tag = "not negative";
  return selection;
}

int MatrixVerb(const MatrixOptions& options) {
  const MatrixOptions& wanted = options;
  const Session session = OpenSession(options.common, /*builds=*/wanted.from.empty());
  PlanOptions plan;
  plan.overrides = ParseOverrides(wanted.set, session.description);
  plan.seeds = wanted.request.seeds;
  if (wanted.request.control_seeds > 0)
    plan.seeds = std::max(wanted.request.seeds, wanted.request.control_seeds);
  const Chosen chosen =
      ChooseCases(session, WithoutNegatives(wanted.selection), plan, /*points=*/{});
  if (wanted.from.empty()) RequirePreflight(options.common, session, chosen.cases);
  Matrix matrix;
  const std::vector<Case> cases = StartMatrix(chosen.cases, matrix);
  BatchesEnd end;
  std::string output = wanted.output;
  if (!wanted.from.empty()) {
    const std::string folder = FindOutputFolder(wanted.from);
    if (output.empty()) output = folder;
    ReadKeptMatrix(cases, folder, session.description, matrix);
  } else if (!cases.empty()) {
    output = MakeOutputFolder(output, /*is_latest=*/false);
    end = RunMatrix(cases, wanted.request, session, output, matrix);
  }
  if (end.interrupted) return kExitInterrupted;
  if (matrix.columns.empty()) {
    std::cerr << "trainwreck: nothing to read: no case was selected, or all were skipped\n";
    return kExitNothingRun;
  }
  std::cout << ToText(matrix);
  const Json json = ToJson(matrix);
  WriteWholeFile(output + "/matrix.json", json.dump(1) + "\n");
  WriteWholeFile(output + "/matrix.html", PageOf(json, kVersion));
  std::cout << "# report: " << output << "/matrix.json, " << output << "/matrix.html\n";
  for (const std::string& trouble : end.troubles) std::cerr << "trainwreck: " << trouble << "\n";
  if (FalsePositivesOf(matrix).alarmed_runs > 0) return kExitFailed;
  return end.troubles.empty() ? kExitPassed : kExitInfrastructure;
}

void Declare(VerbArguments& arguments, MatrixOptions& options) {
  arguments.Selection(options.selection);
  arguments.Seeds(options.request.seeds);
  arguments
      .Option("--control-seeds", options.request.control_seeds,
              "Seeds of control arms [as many as of the fault]", "N")
      .Between(1, 10000);
  arguments.Set(options.set);
  arguments.Cores(options.request.cores);
  arguments.Option("--output", options.output,
                   "Folder for matrix.json and matrix.html [.trainwreck/runs/<UTC time>]", "DIR");
  arguments.Flag("--keep", options.request.keep,
                 "Keep the runs, so that --from can read them again");
  arguments.Option("--from", options.from, "Read the runs that --keep left here; run nothing",
                   "DIR");
  arguments.Isolation(options.request.exec);
  arguments.Preflight(options.common);
  arguments.Common(options.common);
}

const VerbRegistration registration(
    "matrix", "Read every symptom over every fault and control: which tell faults apart?",
    kSearching + 2, Declare, MatrixVerb);

}  // namespace
}  // namespace trainwreck
