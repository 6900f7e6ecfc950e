// Runs all trainings of the chosen cases and judges each case as soon as its last run has ended, so
// that reports appear early and memory is freed.
//
//   Campaign campaign(cases, session.description, launcher_options, options);
//   CampaignResult result = campaign.Execute(
//       [&](const Verdict& verdict) { console.Finished(verdict); },
//       [&](int running, int done, int total) { console.Progress(running, done, total); });
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "harness/judge/verdict.h"
#include "harness/launch/launcher.h"
#include "harness/plan/run.h"
#include "harness/protocol/description.h"
#include "harness/protocol/trace_reader.h"
#include "harness/session/options.h"

namespace trainwreck {

struct CampaignOptions {
  bool stop_early = true;  // a run whose checks are all decided is stopped
  bool fail_fast = false;
  bool verify_determinism = false;
  KeepRuns keep = KeepRuns::kFailed;
  std::size_t picture_bytes = 0;  // for each run, in the pictures of verdicts; 0: there are none
};

struct CampaignResult {
  std::vector<Verdict> verdicts;    // of the cases that were judged, in the order they ended
  int runs = 0;                     // finished trainings
  int unjudged = 0;                 // cases that were cut off
  double unjudged_cpu_seconds = 0;  // of their finished trainings
  bool interrupted = false;         // by a signal, not by fail_fast
  bool left_folders = false;  // folders of runs remain: removing them would have taken too long
};

class Campaign {
 public:
  // `cases` and `target` must outlive it.
  Campaign(const std::vector<Case>& cases, const TargetDescription& target,
           LauncherOptions launcher, CampaignOptions options);

  CampaignResult Execute(const std::function<void(const Verdict&)>& judged,
                         const std::function<void(int, int, int)>& progress);

 private:
  struct Progress {
    CaseResults results;
    std::map<std::string, RunResult> again;  // id of the run that was repeated -> its repetition
    int missing = 0;
    std::shared_ptr<TraceRoom> room = std::make_shared<TraceRoom>();
  };
  struct Place {
    std::size_t index = 0;  // of the case
    const Run* run = nullptr;
    bool is_again = false;
  };

  void PlanRepetitions(std::size_t index);
  bool IsRunDecided(const Run& run, const RunTrace& trace) const;
  void Take(const Run& run, RunResult result);
  void JudgeCase(std::size_t index);
  std::string CompareRepetitions(Progress& progress) const;
  void StoreOrRemove(Progress& progress, bool keep);
  void Remove(const RunResult& result);

  const std::vector<Case>& cases_;
  const TargetDescription& target_;
  LauncherOptions launcher_options_;
  CampaignOptions options_;
  std::vector<Progress> progress_;
  std::vector<Run> repetitions_;
  std::map<std::string, Place> places_;  // by run id
  std::set<std::string> in_full_;        // ids of runs that are never stopped early
  std::function<void(const Verdict&)> judged_;
  CampaignResult result_;
  Launcher* launcher_ = nullptr;  // while it runs
  bool stopped_ = false;          // by fail_fast
};

// How many runs the cases have.
int CountRuns(const std::vector<Case>& cases);

}  // namespace trainwreck
