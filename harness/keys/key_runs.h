// Trials as runs of a target.
//
//   KeyRuns runs(session, {.seed = 0, .cores = 2});
//   SearchKeys(input, runs.ObserverOf(PlanContext(KeyContext::kPlain, base, description)));
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/keys/contexts.h"
#include "harness/keys/trial.h"
#include "harness/launch/launcher.h"
#include "harness/plan/run.h"
#include "harness/session/session.h"
#include "harness/session/workspace.h"

namespace trainwreck {

struct KeyRunOptions {
  int seed = 0;
  int cores = 0;
};

class KeyRuns {
 public:
  KeyRuns(const Session& session, const KeyRunOptions& options);

  // An observer for SearchKeys. This object and `context` must outlive it. The observer throws
  // ConfigurationError when a run could not be made.
  KeyObserver ObserverOf(const ContextPlan& context);

 private:
  std::vector<KeyObservation> Observe(const ContextPlan& context,
                                      const std::vector<KeyTrial>& trials);

  const Session& session_;
  KeyRunOptions options_;
  Workspace workspace_;
  Launcher launcher_;
  std::vector<std::string> record_;  // what the plans ask for
  int made_ = 0;
};

// The run of a trial. `id` names its folder.
Run RunOf(const ContextPlan& context, const KeyTrial& trial, const std::string& id,
          const TargetDescription& target);

// The observation of a run: all signals of all ranks except time and memory, events of the ranks,
// collectives, and how the run ended.
KeyObservation ObservationOf(const Run& run, const RunResult& result);

}  // namespace trainwreck
