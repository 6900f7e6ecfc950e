#include "harness/inspect/replay.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "harness/inspect/layer_table.h"
#include "harness/inspect/repeat.h"
#include "harness/launch/trace_bits.h"
#include "harness/protocol/recipe_view.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

constexpr char kBefore[] = "before", kReplay[] = "replay", kBatchEvent[] = "batch",
               kExceptionEvent[] = "exception";

bool AreSame(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof a) == 0;
}

void RefusePhases(const Run& run) {
  bool has = run.phases.size() > 1 || !run.later_changes.empty();
  for (const PlannedFault& fault : run.plan.faults) has = has || !fault.trigger.phase.empty();
  if (!has) return;
  throw UsageError(run.id +
                   " has phases of its own; `trainwreck rerun` makes such a run again as a whole");
}

void Record(Run& run, const TargetDescription& target) {
  for (const std::string& signal : LayerSignals()) {
    if (target.FindSignal(signal) != nullptr) run.plan.record.push_back(signal + "{*}");
  }
  if (target.FindEvent(kBatchEvent) != nullptr) run.plan.record.emplace_back(kBatchEvent);
}

std::vector<ReplayedSignal> Compare(const RunTrace& stored, const RunTrace& now, int step) {
  std::vector<ReplayedSignal> signals;
  for (const auto& [key, series] : stored.series) {
    const auto& [signal, rank] = key;
    const Series* again = now.Find(signal, rank);
    if (IsTimeOrMemory(signal) || !series.Has(step) || again == nullptr || !again->Has(step)) {
      continue;
    }
    const double before = series.values[step], after = again->values[step];
    signals.push_back({signal, rank, before, after, AreSame(before, after)});
  }
  return signals;
}

Phase TheStep(int step, bool is_last) {
  Phase phase{.name = kReplay};
  if (!is_last) phase.until = step + 1;
  return phase;
}

std::optional<Replay> Make(const Run& run, const StoredTrace& stored, int step,
                           const Session& session) {
  Replay replay;
  replay.step = step;
  replay.from_saved_state = !run.checkpoint_files.empty();
  replay.reports_batches = session.description.FindEvent(kBatchEvent) != nullptr;
  const bool is_done = RepeatAside(run, session, [&](RunResult& result) {
    replay.trace = std::move(result.trace);
    replay.end = result.end;
    replay.detail = result.detail;
  });
  if (!is_done) return std::nullopt;
  replay.signals = Compare(stored.trace, replay.trace, step);
  replay.stored_deaths = DeathsIn(stored.trace, step);
  replay.deaths = DeathsIn(replay.trace, step);
  return replay;
}

}  // namespace

std::optional<int> FailingStep(const RunTrace& trace) {
  std::optional<int> first;
  const auto take = [&](int step) { first = std::min(first.value_or(step), step); };
  for (int rank = 0; rank < trace.world_size; ++rank) {
    const Series* loss = trace.Find("loss", rank);
    for (int step = 0; loss != nullptr && step < static_cast<int>(loss->values.size()); ++step) {
      if (loss->Has(step) && !std::isfinite(loss->values[step])) take(step);
    }
  }
  for (const Event& event : trace.events) {
    if ((event.name == kExceptionEvent || event.name == "first_nonfinite") && event.step >= 0) {
      take(event.step);
    }
  }
  return first;
}

Run RunToReplay(Run run, int step, const TargetDescription& target) {
  RefusePhases(run);
  if (step < 0 || step >= run.steps) {
    throw UsageError("step " + std::to_string(step) + ": " + run.id + " has the steps 0 to " +
                     std::to_string(run.steps - 1));
  }
  Record(run, target);
  return run;
}

Run ReplayOf(Run run, int step, bool is_last) {
  std::vector<Phase> phases = {TheStep(step, is_last)};
  if (step > 0) phases.insert(phases.begin(), {kBefore, step});
  SetPhases(run, std::move(phases));
  return run;
}

std::vector<std::string> SavedState(const StoredTrace& stored, const std::string& folder,
                                    int step) {
  std::vector<std::string> files;
  std::set<int> ranks;
  for (const Event& event : stored.trace.events) {
    if (event.name != "evidence_saved" || event.step != step) continue;
    if (!event.fields.value("state", false)) continue;
    // The stored run may have been moved since.
    const fs::path saved = event.fields.value("folder", "");
    std::error_code error;
    for (const auto& file : fs::directory_iterator(folder / saved.filename() / "state", error)) {
      files.push_back(file.path());
      ranks.insert(event.rank);
    }
  }
  if (static_cast<int>(ranks.size()) != stored.trace.world_size) return {};
  return files;
}

Run ReplayFrom(std::vector<std::string> checkpoint_files, Run run, int step, bool is_last) {
  run = ReplayInOnePiece(std::move(run), step, is_last);
  run.plan.resume = true;
  run.checkpoint_files = std::move(checkpoint_files);
  return run;
}

Run ReplayInOnePiece(Run run, int step, bool is_last) {
  SetPhases(run, {TheStep(step, is_last)});
  return run;
}

Deaths DeathsIn(const RunTrace& trace, int step) {
  Deaths deaths;
  for (const Event& event : trace.events) {
    if (event.name != kExceptionEvent || event.step != step) continue;
    deaths.emplace(event.rank, event.fields.value("stage", ""));
  }
  return deaths;
}

int Replay::different() const {
  return static_cast<int>(std::count_if(signals.begin(), signals.end(),
                                        [](const ReplayedSignal& one) { return !one.same; }));
}

const Event* Replay::EventOf(const std::string& name, int rank) const {
  for (const Event& event : trace.events) {
    if (event.name == name && event.rank == rank && event.step == step) return &event;
  }
  return nullptr;
}

std::vector<const Event*> Replay::Batches(int rank) const {
  std::vector<const Event*> batches;
  for (const Event& event : trace.events) {
    if (event.name == kBatchEvent && event.rank == rank && event.step == step) {
      batches.push_back(&event);
    }
  }
  return batches;
}

std::optional<Replay> ReplayStep(const StoredTrace& stored, const std::string& folder, int step,
                                 const Session& session) {
  const Run run = RunToReplay(*stored.run, step, session.description);
  const bool is_last = step + 1 == stored.trace.planned_steps;
  const auto make = [&](const Run& plan) { return Make(plan, stored, step, session); };
  bool saved_state_differs = false;
  if (auto files = SavedState(stored, folder, step); !files.empty()) {
    auto replay = make(ReplayFrom(std::move(files), run, step, is_last));
    if (!replay || replay->is_same()) return replay;
    saved_state_differs = true;
  }
  auto replay = make(ReplayOf(run, step, is_last));
  if (replay && step > 0 && replay->has_record() && !replay->is_same()) {
    auto whole = make(ReplayInOnePiece(run, step, is_last));
    if (!whole) return std::nullopt;
    if (whole->is_same()) {
      replay = std::move(whole);
      replay->checkpoint_differs = true;
    }
  }
  if (replay) replay->saved_state_differs = saved_state_differs;
  return replay;
}

}  // namespace trainwreck
