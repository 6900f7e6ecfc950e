#include "harness/campaign/campaign.h"

#include <utility>

#include "harness/picture/picture.h"
#include "harness/process/interruption.h"
#include "harness/protocol/digest.h"
#include "harness/session/storage.h"

namespace trainwreck {
namespace {

constexpr const char* kAgain = ".again";

bool Counts(const Verdict& verdict) {
  return verdict.verdict == VerdictKind::kPass || verdict.verdict == VerdictKind::kSkip;
}

std::size_t RunsIn(const CaseResults& results) {
  std::size_t runs = 0;
  for (const auto& [arm, by_seed] : results.runs) runs += by_seed.size();
  return runs;
}

}  // namespace

int CountRuns(const std::vector<Case>& cases) {
  std::size_t runs = 0;
  for (const Case& one : cases) {
    for (const ArmPlan& arm : one.arms) runs += arm.runs.size();
  }
  return static_cast<int>(runs);
}

Campaign::Campaign(const std::vector<Case>& cases, const TargetDescription& target,
                   LauncherOptions launcher, CampaignOptions options)
    : cases_(cases),
      target_(target),
      launcher_options_(std::move(launcher)),
      options_(options),
      progress_(cases.size()) {}

// Control and one other arm of each case, at a seed that the case's name draws.
void Campaign::PlanRepetitions(std::size_t index) {
  const Case& one = cases_[index];
  if (one.arms.empty()) return;
  const std::uint64_t draw = Digest(one.name);
  for (std::size_t arm_index :
       {std::size_t{0}, 1 + draw % std::max<std::size_t>(one.arms.size() - 1, 1)}) {
    if (arm_index >= one.arms.size() || one.arms[arm_index].runs.empty()) continue;
    const ArmPlan& arm = one.arms[arm_index];
    const Run& run = arm.runs[draw % arm.runs.size()];
    Run again = run;
    again.id += kAgain;
    again.copies_first_phase = false;
    in_full_.insert({run.id, again.id});
    repetitions_.push_back(std::move(again));
    places_[repetitions_.back().id] = {index, nullptr, true};
    ++progress_[index].missing;
  }
}

CampaignResult Campaign::Execute(const std::function<void(const Verdict&)>& judged,
                                 const std::function<void(int, int, int)>& progress) {
  judged_ = judged;
  std::vector<const Run*> runs;
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    progress_[i].results.plan = &cases_[i];
    if (!cases_[i].skip_reason.empty()) continue;
    for (const ArmPlan& arm : cases_[i].arms) {
      for (const Run& run : arm.runs) {
        runs.push_back(&run);
        places_[run.id] = {i, &run, false};
        ++progress_[i].missing;
      }
    }
    const bool expects_difference =
        cases_[i].scenario->expect.failure_class == FailureClass::kNondeterministic;
    if (options_.verify_determinism || expects_difference) PlanRepetitions(i);
  }
  for (const Run& run : repetitions_) runs.push_back(&run);
  for (std::size_t i = 0; i < cases_.size() && !stopped_; ++i) {
    if (progress_[i].missing == 0) JudgeCase(i);
  }
  if (!runs.empty() && !stopped_) {
    launcher_options_.room_of = [this](const Run& run) {
      return progress_[places_.at(run.id).index].room;
    };
    Launcher launcher(launcher_options_);
    launcher_ = &launcher;
    LauncherCallbacks callbacks;
    if (options_.stop_early) {
      callbacks.is_decided = [this](const Run& run, const RunTrace& trace) {
        return IsRunDecided(run, trace);
      };
    }
    callbacks.finished = [this](const Run& run, RunResult result) { Take(run, std::move(result)); };
    callbacks.progress = progress;
    launcher.RunAll(runs, callbacks);
    launcher_ = nullptr;
  }
  for (Progress& one : progress_) {
    if (one.missing == 0) continue;
    ++result_.unjudged;
    for (const auto& [arm, by_seed] : one.results.runs) {
      for (const auto& [seed, run] : by_seed) result_.unjudged_cpu_seconds += run.cpu_seconds;
    }
    StoreOrRemove(one, options_.keep == KeepRuns::kAll);
  }
  result_.interrupted = WasInterrupted();
  return std::move(result_);
}

bool Campaign::IsRunDecided(const Run& run, const RunTrace& trace) const {
  auto place = places_.find(run.id);
  if (place == places_.end() || in_full_.contains(run.id)) return false;
  std::map<std::string, const RunTrace*> finished;
  for (const auto& [arm, by_seed] : progress_[place->second.index].results.runs) {
    if (auto found = by_seed.find(run.seed); found != by_seed.end())
      finished[arm] = &found->second.trace;
  }
  return IsDecided(cases_[place->second.index], run, trace, finished, target_);
}

void Campaign::Take(const Run& run, RunResult result) {
  auto place = places_.find(run.id);
  if (place == places_.end() || stopped_ || WasInterrupted()) return;
  ++result_.runs;
  Progress& progress = progress_[place->second.index];
  if (place->second.is_again) {
    std::string id = run.id.substr(0, run.id.size() - std::string(kAgain).size());
    progress.again.emplace(std::move(id), std::move(result));
  } else {
    progress.results.runs[run.arm].emplace(run.seed, std::move(result));
  }
  if (--progress.missing == 0) JudgeCase(place->second.index);
}

void Campaign::JudgeCase(std::size_t index) {
  Progress& progress = progress_[index];
  Verdict verdict = Judge(progress.results, target_);
  const std::string difference = CompareRepetitions(progress);
  if (!difference.empty()) {
    FailAsNondeterministic(*cases_[index].scenario, difference, verdict);
  }
  if (options_.picture_bytes > 0 && !verdict.runs.empty()) {
    verdict.picture =
        PictureOf(progress.results, target_, {options_.picture_bytes * RunsIn(progress.results)});
  }
  const bool keep =
      options_.keep == KeepRuns::kAll || (options_.keep == KeepRuns::kFailed && !Counts(verdict));
  StoreOrRemove(progress, keep);
  progress.results.runs.clear();
  progress.again.clear();
  progress.room = std::make_shared<TraceRoom>();
  judged_(verdict);
  const bool stop = options_.fail_fast && !Counts(verdict);
  result_.verdicts.push_back(std::move(verdict));
  if (stop) {
    stopped_ = true;
    if (launcher_ != nullptr) launcher_->Stop();
  }
}

// Empty, or which of the repeated runs came out differently, and where first.
std::string Campaign::CompareRepetitions(Progress& progress) const {
  for (const auto& [id, again] : progress.again) {
    const Run& run = *places_.at(id).run;
    const RunResult& first = progress.results.runs.at(run.arm).at(run.seed);
    if (first.end != again.end) {
      return "run " + id + " ended as '" + ToString(first.end) + "', its repetition as '" +
             ToString(again.end) + "'";
    }
    // A run that was killed was killed at a moment of its own: only whole runs are comparable.
    if (first.end != RunEnd::kCompleted) continue;
    std::string difference = CompareTraces(first.trace, again.trace);
    if (!difference.empty()) {
      return "run " + id + " and its repetition differ: " + difference;
    }
  }
  return "";
}

// After a signal the report comes first: on some disks thousands of folders take a minute to
// remove.
void Campaign::Remove(const RunResult& result) {
  if (WasInterrupted()) {
    result_.left_folders = true;
  } else {
    RemoveRunFolder(result.folder, launcher_options_.output_dir);
  }
}

void Campaign::StoreOrRemove(Progress& progress, bool keep) {
  for (const auto& [arm, by_seed] : progress.results.runs) {
    for (const ArmPlan& plan : progress.results.plan->arms) {
      if (plan.name != arm) continue;
      for (const Run& run : plan.runs) {
        auto found = by_seed.find(run.seed);
        if (found == by_seed.end()) continue;
        if (keep) {
          StoreRun(run, found->second);
        } else {
          Remove(found->second);
        }
      }
    }
  }
  for (const auto& [id, again] : progress.again) {
    if (!keep) Remove(again);
  }
}

}  // namespace trainwreck
