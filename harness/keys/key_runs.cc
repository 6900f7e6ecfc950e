#include "harness/keys/key_runs.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <list>
#include <set>
#include <utility>

#include "harness/launch/trace_bits.h"
#include "harness/plan/device.h"
#include "harness/process/interruption.h"
#include "harness/protocol/digest.h"
#include "harness/protocol/recipe_view.h"
#include "harness/session/storage.h"

namespace trainwreck {
namespace {

std::string OfRank(const std::string& what, int rank) {
  return what + " of rank " + std::to_string(rank);
}

std::string DigestOf(const Series& series) {
  std::uint64_t digest = 0;
  for (int step = 0; step < static_cast<int>(series.values.size()); ++step) {
    if (!series.Has(step)) continue;
    double value = series.values[step];
    // Payloads and signs of NaN are no part of a trace.
    if (std::isnan(value)) value = std::numeric_limits<double>::quiet_NaN();
    char bytes[sizeof step + sizeof value];
    std::memcpy(bytes, &step, sizeof step);
    std::memcpy(bytes + sizeof step, &value, sizeof value);
    digest = Digest({bytes, sizeof bytes}, digest);
  }
  return std::to_string(digest);
}

// The launcher's own, which tell of processes.
std::set<std::string> LauncherEvents() {
  TargetDescription nothing;
  AddHarnessVocabulary(nothing);
  std::set<std::string> names;
  for (const EventInfo& event : nothing.events) names.insert(event.name);
  return names;
}

void AddEvents(const RunTrace& trace, std::map<std::string, std::string>& records) {
  static const std::set<std::string> kOfTheRecord = {"t", "event", "rank", "time", "pid"};
  static const std::set<std::string> kOfTheLauncher = LauncherEvents();
  for (const Event& event : trace.events) {
    if (kOfTheLauncher.contains(event.name) || !event.fields.is_object()) continue;
    records[OfRank("event " + event.name + ".", event.rank)] += "+";  // how often
    for (const auto& [field, value] : event.fields.items()) {
      if (kOfTheRecord.contains(field)) continue;
      std::string& text = records[OfRank("event " + event.name + "." + field, event.rank)];
      text = DigestText(text + value.dump(-1, ' ', false, Json::error_handler_t::replace));
    }
  }
}

void AddCollectives(const RunTrace& trace, std::map<std::string, std::string>& records) {
  for (const auto& [rank, calls] : trace.collectives) {
    std::string text;
    for (const Collective& call : calls) {
      text += std::to_string(call.step) + " " + call.op + call.shape + call.dtype + "\n";
    }
    records[OfRank("collectives", rank)] = DigestText(text);
  }
}

void AddEnd(const RunResult& result, std::map<std::string, std::string>& records) {
  std::string text = ToString(result.end);
  for (const auto& [rank, why] : result.trace.end_why) {
    text += "\n" + std::to_string(rank) + " " + why;
  }
  records["end"] = text;
}

}  // namespace

Run RunOf(const ContextPlan& context, const KeyTrial& trial, const std::string& id,
          const TargetDescription& target) {
  Run run;
  run.id = id;
  run.scenario = "keys";
  run.arm = "control";
  run.plan.run = id;
  run.plan.scenario = run.scenario;
  run.plan.arm = run.arm;
  Recipe& recipe = run.plan.recipe;
  recipe = context.recipe;
  for (const auto& [key, value] : trial.condition) recipe[key] = value;
  Recipe changed = recipe;
  for (const auto& [key, value] : trial.changes) changed[key] = value;
  const auto steps_of = [&](const Recipe& one) {
    return std::max(0, RecipeView(one, &target).Int(kStepsKey).value_or(0));
  };
  const int steps = std::max(steps_of(recipe), steps_of(changed));
  if (context.changes_late) {
    SetPhases(run, {{"train", std::max(1, steps_of(recipe) / 2)}, {"resume", std::nullopt}});
    run.later_changes = trial.changes;
  } else {
    SetPhases(run, {});
    recipe = std::move(changed);
  }
  run.device = PickDevice(recipe, {}, target, {}).kind;
  if (!run.device.empty()) recipe[kDeviceKey] = run.device;
  TakeFromRecipe(run, target);
  run.steps = steps;
  run.policy = {.max_restarts = 0, .has_seconds = false, .has_stall_seconds = false};
  return run;
}

KeyObservation ObservationOf(const Run& run, const RunResult& result) {
  KeyObservation seen;
  seen.is_whole = result.end == RunEnd::kCompleted;
  seen.is_usable = seen.is_whole || result.end == RunEnd::kFailed;
  const int first = run.phases.front().until.value_or(0);
  for (const auto& [key, series] : result.trace.series) {
    if (static_cast<int>(series.values.size()) > first) seen.has_begun = true;
    if (!IsTimeOrMemory(key.first)) {
      seen.records[OfRank(key.first, key.second)] = DigestOf(series);
    }
  }
  AddEvents(result.trace, seen.records);
  AddCollectives(result.trace, seen.records);
  AddEnd(result, seen.records);
  if (seen.is_whole) return seen;
  seen.words = result.detail;
  for (const RankExit& exit : result.exits) {
    if (exit.code != 0 && !exit.last_words.empty()) seen.words = exit.last_words;
  }
  return seen;
}

KeyRuns::KeyRuns(const Session& session, const KeyRunOptions& options)
    : session_(session),
      options_(options),
      launcher_({.target = session.target,
                 .cores = options.cores > 0 ? options.cores : UsableCores(),
                 .output_dir = workspace_.path()}) {
  for (const SignalInfo& signal : session.description.signals) {
    record_.push_back(signal.name);
    if (signal.per_module && signal.exact) record_.push_back(signal.name + "{*}");
  }
}

KeyObserver KeyRuns::ObserverOf(const ContextPlan& context) {
  return [this, &context](const std::vector<KeyTrial>& trials) { return Observe(context, trials); };
}

std::vector<KeyObservation> KeyRuns::Observe(const ContextPlan& context,
                                             const std::vector<KeyTrial>& trials) {
  std::list<Run> runs;
  std::vector<const Run*> asked;
  std::map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    Run run = RunOf(context, trials[i], "keys/" + std::to_string(made_++), session_.description);
    run.seed = options_.seed;
    run.plan.seed = static_cast<std::uint64_t>(options_.seed);
    run.plan.record = record_;
    index[run.id] = i;
    asked.push_back(&runs.emplace_back(std::move(run)));
  }
  std::vector<KeyObservation> seen(trials.size());
  std::string trouble;
  LauncherCallbacks callbacks;
  callbacks.finished = [&](const Run& run, const RunResult& result) {
    if (result.end == RunEnd::kInfrastructure) trouble = result.detail;
    seen[index.at(run.id)] = ObservationOf(run, result);
    RemoveRunFolder(result.folder, workspace_.path());
  };
  launcher_.RunAll(asked, callbacks);
  if (WasInterrupted()) throw SearchInterrupted();
  if (!trouble.empty()) throw ConfigurationError("cannot run: " + trouble);
  return seen;
}

}  // namespace trainwreck
