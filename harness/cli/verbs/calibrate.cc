// trainwreck calibrate: measures how strong the faults of scenarios must be with one target, and
// writes it down for later runs.
#include "harness/checkup/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "harness/cli/verb.h"
#include "harness/session/chosen.h"
#include "harness/session/preflight.h"
#include "harness/session/session.h"
#include "harness/session/storage.h"
#include "harness/targets/calibration_file.h"

namespace trainwreck {
namespace {

struct CalibrateOptions {
  CommonOptions common;
  SelectionOptions selection;
  int seeds = 3;
  int cores = 0;
};

std::string TextOf(const StrengthTrial& trial) {
  const bool is_all = trial.look == StrengthLook::kAll;
  std::string text = fmt::format("{:g}, {}: ", trial.strength, is_all ? "all" : "fault");
  switch (trial.answer) {
    case StrengthAnswer::kTooWeak:
      return text + "too weak, " + trial.why;
    case StrengthAnswer::kPasses:
      return text + (is_all ? "passes" : "shows");
    case StrengthAnswer::kNoControl:
      return text + "no strength can tell, " + trial.why;
    case StrengthAnswer::kFails:
      return text + trial.why;
    case StrengthAnswer::kInterrupted:
      return text + "interrupted";
  }
  return text;
}

// The chosen scenarios that have a strength and can be run with the target.
std::vector<Scenario> WithStrength(const Chosen& chosen) {
  std::vector<Scenario> scenarios;
  for (const Scenario& scenario : chosen.scenarios) {
    const bool can_run =
        std::any_of(chosen.cases.begin(), chosen.cases.end(), [&](const Case& one) {
          return one.scenario->name == scenario.name && one.skip_reason.empty();
        });
    if (scenario.strength && can_run) scenarios.push_back(scenario);
  }
  return scenarios;
}

void PrintFound(const Scenario& scenario, const StrengthSearch& search) {
  std::cout << scenario.name
            << fmt::format("  {:g}  passes from {:g} to {:g}; the scenario itself says {:g}\n",
                           *search.found, search.passed.first, search.passed.second,
                           scenario.strength->own);
}

void PrintNone(const Scenario& scenario, const StrengthSearch& search, bool verbose) {
  std::cout << scenario.name
            << fmt::format("  none: {:g}, its own, stays; no three octaves in a row pass\n",
                           scenario.strength->own);
  if (verbose) return;  // all were printed
  for (const StrengthTrial& trial : search.trials) std::cout << "    " << TextOf(trial) << "\n";
}

class Calibrator {
 public:
  Calibrator(const CalibrateOptions& options, const Session& session, const TargetSpec& spec)
      : options_(options), session_(session), path_(CalibrationPath(spec)) {
    file_ = LoadCalibrationFile(path_);
    MeasuredTarget& target = file_.targets[spec.name];
    MeasuredTarget now = AsMeasured(spec);
    // Strengths of another recipe or command would pass for measured ones of this.
    if (target.command == now.command && target.recipe == now.recipe) return;
    if (!target.strengths.empty()) {
      std::cout << "# forgets " << target.strengths.size()
                << (target.strengths.size() == 1 ? " strength" : " strengths")
                << " of another command or recipe\n";
    }
    target = std::move(now);
  }

  // False when interrupted.
  bool Calibrate(const Scenario& scenario, const std::string& target) {
    const StrengthSearch search =
        FindStrength(OctavesOf(*scenario.strength), [&](double strength, StrengthLook look) {
          StrengthTrial trial =
              TryStrength(session_, scenario.file, strength, look, options_.seeds, options_.cores);
          if (options_.common.verbose) std::cout << "    " << TextOf(trial) << "\n" << std::flush;
          return trial;
        });
    if (search.last().answer == StrengthAnswer::kInterrupted) return false;
    auto& strengths = file_.targets[target].strengths;
    if (search.found) {
      strengths[scenario.name] = {*search.found, search.passed};
      PrintFound(scenario, search);
      ++found_;
    } else {
      strengths.erase(scenario.name);
      PrintNone(scenario, search, options_.common.verbose);
    }
    std::cout << std::flush;
    WriteWholeFile(path_, CalibrationText(file_));
    return true;
  }

  int found() const { return found_; }
  const std::string& path() const { return path_; }

 private:
  const CalibrateOptions& options_;
  const Session& session_;
  const std::string path_;
  CalibrationFile file_;
  int found_ = 0;
};

int CalibrateVerb(const CalibrateOptions& options) {
  const std::shared_ptr<const TargetSpec> spec = FindTarget(options.common).spec;
  if (!spec) {
    throw UsageError("only a target that trainwreck.yaml declares can be calibrated");
  }
  const Session session = OpenSession(options.common, /*builds=*/true);
  const Chosen chosen = ChooseCases(session, options.selection, {}, {});
  const std::vector<Scenario> scenarios = WithStrength(chosen);
  if (scenarios.empty()) {
    std::cerr << "trainwreck: nothing to calibrate: no selected scenario has a strength and can be "
                 "run with this target\n";
    return kExitNothingRun;
  }
  RequirePreflight(options.common, session, chosen.cases);
  std::cout << "# calibrates " << scenarios.size()
            << (scenarios.size() == 1 ? " scenario" : " scenarios") << " for target '"
            << session.target_name << "' with " << options.seeds << " seeds, from "
            << kFirstCalibrationSeed << " on\n"
            << "# scenario  strength\n"
            << std::flush;
  Calibrator calibrator(options, session, *spec);
  for (const Scenario& scenario : scenarios) {
    if (!calibrator.Calibrate(scenario, spec->name)) return kExitInterrupted;
  }
  std::cout << "# wrote " << calibrator.path() << "\n";
  const bool are_all = calibrator.found() == static_cast<int>(scenarios.size());
  return are_all ? kExitPassed : kExitInconclusive;
}

void Declare(VerbArguments& arguments, CalibrateOptions& options) {
  arguments.Selection(options.selection);
  arguments.Option("--seeds", options.seeds, "Seeds that must pass at a strength [3]", "N")
      .Between(1, 100);
  arguments.Cores(options.cores);
  arguments.Preflight(options.common);
  arguments.Common(options.common);
}

const VerbRegistration registration(
    "calibrate", "Measure how strong the faults of scenarios must be with this target", kSearching,
    Declare, CalibrateVerb);

}  // namespace
}  // namespace trainwreck
