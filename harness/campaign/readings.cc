#include "harness/campaign/readings.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <set>
#include <utility>

#include "harness/campaign/claims.h"
#include "harness/judge/endings.h"
#include "harness/process/interruption.h"
#include "harness/session/session.h"
#include "harness/session/storage.h"
#include "harness/text/nearest.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

using formula::Truth;

struct Wanted {
  const Case* one = nullptr;
  const ArmPlan* arm = nullptr;
  const Run* run = nullptr;
};

bool Has(const std::vector<std::string>& names, const std::string& name) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<Wanted> FindWanted(const std::vector<Case>& cases, const WantedArms& given) {
  std::vector<Wanted> wanted;
  for (const Case& one : cases) {
    for (const ArmPlan& arm : one.arms) {
      if (!Has(given.arms, arm.name)) continue;
      if (arm.is_undo) {
        std::cout << one.name << "/" << arm.name << ": undo, only takes the fault back; not run\n";
      }
      for (const Run& run : arm.runs) {
        const std::vector<int>& seeds = given.seeds;
        if (seeds.empty() || std::find(seeds.begin(), seeds.end(), run.seed) != seeds.end()) {
          wanted.push_back({&one, &arm, &run});
        }
      }
    }
  }
  return wanted;
}

// The wanted runs and those of other arms that their formulas refer to.
std::vector<const Run*> RunsNeeded(const std::vector<Wanted>& wanted) {
  std::set<std::string> seen;
  std::vector<const Run*> runs;
  for (const Wanted& each : wanted) {
    std::vector<std::string> names = ArmsNeeded(*each.one, *each.arm);
    for (const ArmPlan& arm : each.one->arms) {
      if (std::find(names.begin(), names.end(), arm.name) == names.end()) continue;
      for (const Run& run : arm.runs) {
        if (run.seed == each.run->seed && seen.insert(run.id).second) runs.push_back(&run);
      }
    }
  }
  return runs;
}

// Whether every fault that has to act in this run did, with what it changed.
bool PrintEvidence(const Wanted& each, const RunResult& result) {
  std::set<std::string> fired;
  for (const Event& event : result.trace.events) {
    if (event.name != "fired" || !event.fields.contains("id")) continue;
    const std::string id =
        event.fields["id"].is_string() ? event.fields["id"].get<std::string>() : "";
    if (!fired.insert(id).second) continue;
    std::cout << "    fired         " << id << ": " << event.fields.value("before", Json()).dump()
              << " -> " << event.fields.value("after", Json()).dump() << "\n";
  }
  if (!IsFaulty(each.arm->kind)) return true;
  bool all_fired = true;
  for (const InjectedFault& fault : each.arm->faults) {
    std::string seen;
    if (HasFired(result.trace, fault, &seen)) continue;
    std::cout << "    NOT FIRED     " << fault.id << ": " << seen << "\n";
    // A bug may show in the other of the two arms.
    if (each.arm->kind != ArmKind::kBug) all_fired = false;
  }
  return all_fired;
}

// Prints one run's readings; the exit status they call for.
int PrintReadings(const Wanted& each, const std::map<std::string, RunResult>& results,
                  const TargetDescription& target) {
  const RunResult& result = results.at(each.run->id);
  std::cout << each.run->id << ": " << ToString(result.end)
            << (result.detail.empty() ? "" : ": " + result.detail) << "  (" << result.folder
            << ")\n";
  const bool all_fired = PrintEvidence(each, result);
  formula::Runs runs{.self = &result.trace, .arms = {}};
  for (const ArmPlan& arm : each.one->arms) {
    for (const Run& run : arm.runs) {
      auto found = results.find(run.id);
      if (run.seed == each.run->seed && found != results.end()) {
        runs.arms[arm.name] = &found->second.trace;
      }
    }
  }
  int status = all_fired ? kExitPassed : kExitFailed;
  bool about_endings = false;
  for (const Claim& claim : ClaimsOf(*each.one, *each.arm)) {
    formula::Reading reading = claim.check->formula.Evaluate(runs, target);
    about_endings =
        about_endings || (claim.expected && IsAboutEnd(claim, runs, result.end, target));
    const char* word = "as claimed";
    if (reading.truth == Truth::kUnknown) {
      word = "UNKNOWN";
      if (status == kExitPassed) status = kExitInconclusive;
    } else if ((reading.truth == Truth::kTrue) != claim.expected) {
      word = "NOT AS CLAIMED";
      status = kExitFailed;
    }
    const std::string margin = MarginText(reading);
    std::cout << "    " << word << std::string(word == std::string("as claimed") ? 4 : 2, ' ')
              << ToString(claim.role) << " " << claim.check->name << " must "
              << (claim.expected ? "hold: " : "not hold: ") << claim.check->formula.text() << "\n";
    if (!reading.seen.empty()) std::cout << "                  seen " << reading.seen << "\n";
    if (!margin.empty()) std::cout << "                  margin " << margin << "\n";
  }
  const FailureClass end = ClassOfEnd(result, target);
  if (end.empty() || about_endings) return status;
  if (end == FailureClass::kIncomplete) std::cout << "    " << SentenceOfEnd(result) << "\n";
  return kExitInfrastructure;
}

}  // namespace

void CheckArmNames(const std::vector<Case>& cases, const std::vector<std::string>& arms) {
  std::set<std::string> names;
  for (const Case& one : cases) {
    for (const ArmPlan& arm : one.arms) names.insert(arm.name);
  }
  for (const std::string& arm : arms) {
    if (names.contains(arm)) continue;
    throw UsageError("no arm '" + arm + "'" + NearestHint(arm, {names.begin(), names.end()}) +
                     "; there are " + Join(names));
  }
}

int ReadArms(const std::vector<Case>& cases, const WantedArms& given,
             const TargetDescription& target, const LauncherOptions& launcher_options) {
  std::vector<Wanted> wanted = FindWanted(cases, given);
  if (wanted.empty()) {
    std::cerr << "trainwreck: nothing to run: no case has such an arm and seed\n";
    return kExitNothingRun;
  }
  std::map<std::string, RunResult> results;
  Launcher launcher(launcher_options);
  LauncherCallbacks callbacks;
  callbacks.finished = [&](const Run& run, RunResult result) {
    StoreRun(run, result);
    results.emplace(run.id, std::move(result));
  };
  launcher.RunAll(RunsNeeded(wanted), callbacks);
  if (WasInterrupted()) return kExitInterrupted;
  std::set<int> statuses;
  for (const Wanted& each : wanted) statuses.insert(PrintReadings(each, results, target));
  for (int status : {kExitInfrastructure, kExitFailed, kExitInconclusive}) {
    if (statuses.contains(status)) return status;
  }
  return kExitPassed;
}

}  // namespace trainwreck
