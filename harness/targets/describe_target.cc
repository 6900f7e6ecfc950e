// What a program that knows nothing of us can offer: its recipe, its signals, and the faults that
// can be done to it from outside.
#include <algorithm>

#include "harness/targets/nccl_faults.h"
#include "harness/targets/python_hooks.h"
#include "harness/targets/target_spec.h"

namespace trainwreck {
namespace {

std::string Flat(std::string key) {
  std::replace(key.begin(), key.end(), '.', '_');
  return key;
}

// Each key can be set to a bad value, each number scaled to one.
void AddRecipeFaults(const ParamInfo& key, std::vector<FaultInfo>& faults) {
  ParamInfo value = key;
  value.name = "value";
  value.default_value = nullptr;
  value.doc = "The new value.";
  faults.push_back({.name = "recipe.set_" + Flat(key.name),
                    .doc = "Sets " + key.name + ".",
                    .params = {value},
                    .amends = {{.key = key.name, .param = "value"}},
                    .has_trigger = false});
  if (key.type != ValueType::kInt && key.type != ValueType::kNumber) return;
  faults.push_back({.name = "recipe.scale_" + Flat(key.name),
                    .doc = "Multiplies " + key.name + ".",
                    .params = {{.name = "factor",
                                .default_value = nullptr,
                                .unit = "times",
                                .doc = "What it is multiplied by."}},
                    .amends = {{.key = key.name, .op = Amendment::Op::kScale, .param = "factor"}},
                    .has_trigger = false});
}

ParamInfo Text(const std::string& name, Json value, const std::string& doc,
               std::vector<std::string> choices = {}) {
  return {.name = name,
          .type = ValueType::kString,
          .default_value = std::move(value),
          .choices = std::move(choices),
          .doc = doc};
}

constexpr double kLongestPauseS = 2.5;  // then the watchdog takes the run for a hung one

std::vector<ParamInfo> DamageParams() {
  return {
      Text("files", "*", "A glob of paths below the folder; every file that matches is damaged."),
      Text("which", "all",
           "all of them, or the largest; of several that are as large, the one written last.",
           {"all", "largest"}),
      Text("how", "truncate",
           "truncate to half, delete, flip one bit in the middle, or overwrite with zeros.",
           {"truncate", "delete", "flip_bit", "zero"})};
}

// What a scenario with these faults requires: a target of level 2 does not know their names.
constexpr char kAdapterFeature[] = "adapter:command";

void AddOutsideFaults(const TargetSpec& spec, std::vector<FaultInfo>& faults) {
  faults.push_back(
      {.name = "environment.set",
       .doc = "Sets a variable of the program's environment. Acts when a process starts: of the "
              "trigger only `phase`, `attempt` and `ranks` make sense.",
       .params = {Text("name", nullptr, "The variable."), Text("value", nullptr, "Its value.")},
       .evidence = "the variable, its value before (or null) and after"});
  faults.push_back(
      {.name = "process.crash_rank",
       .doc = "Sends a signal to a rank and all that it started, as soon as the step at which the "
              "trigger acts is seen in the signals. That is from outside: the program may be some "
              "steps further by then.",
       .params = {Text("how", "sigkill", "The signal.", {"sigkill", "sigstop", "sigterm"})},
       .evidence = "how, the signal, the process, before (running) and after"});
  faults.push_back(
      {.name = "process.suspend",
       .doc = "Stops a rank and all that it started, and lets it go on after a while, at each step "
              "of the trigger that is seen in the signals and not within a pause.",
       .params = {{.name = "seconds",
                   .type = ValueType::kNumber,
                   .default_value = 1.0,
                   .min = 0.0,
                   .max = kLongestPauseS,
                   .unit = "s",
                   .doc = "How long; a rank that stays stopped for 3 s counts as hung."}},
       .evidence = "the signal, the process, before (running) and after"});
  faults.push_back(
      {.name = "node.command",
       .doc = "Runs a command of the shell on the machine of a rank, as soon as the step at which "
              "the trigger acts is seen: `tc` for a slow link, `ip` for a cut one. It has 10 s.",
       .params = {Text("run", nullptr, "The command."),
                  Text("undo", "", "The command that undoes it."),
                  Text("probe", nullptr, "A command that prints what changes."),
                  {.name = "seconds",
                   .type = ValueType::kNumber,
                   .default_value = 0.0,
                   .min = 0.0,
                   .unit = "s",
                   .doc = "After which it is undone; 0: when the run ends."}},
       .evidence = "the command, the machine, what the probe prints before and after"});
  faults.push_back(
      {.name = "checkpoint.kill_writer",
       .doc = "Kills a rank while something is written below the run's folder of checkpoints: the "
              "first time after the step at which the trigger acts was seen.",
       .params = {{.name = "files",
                   .type = ValueType::kInt,
                   .default_value = 0,
                   .min = 0.0,
                   .unit = "files",
                   .doc =
                       "How many files it may finish before; 0: it dies within the first one, or "
                       "when that is moved there from elsewhere."}},
       .evidence = "the file, the signal, the process, before (running) and after"});
  faults.push_back(
      {.name = "checkpoint.damage_file",
       .doc = "Damages files below the run's folder of checkpoints before a process starts. Say "
              "`phase` or `attempt`: before the first start there are none.",
       .params = DamageParams(),
       .evidence = "the files, their size and digest before and after"});
  for (FaultInfo& fault : NcclFaultInfos()) faults.push_back(std::move(fault));
  if (spec.data.empty()) return;
  faults.push_back({.name = "data.damage_file",
                    .doc = "Gives the run a copy of the target's data in which files are damaged.",
                    .params = DamageParams(),
                    .evidence = "the files, their size and digest before and after"});
}

const std::vector<EventInfo> kOwnEvents = {
    {"resumed", {"command"}, "The program was started with its arguments for going on."},
    {"unreadable", {"source", "text", "why"}, "A source of signals could not be read as declared."},
    {"stopped",
     {"rank", "pid", "attempt", "phase"},
     "A rank that the program's launcher started was stopped (state T)."},
    {"node_lost",
     {"rank", "host", "beat", "attempt", "phase"},
     "The guard of a rank has not been heard of for 5 s: the machine is gone, or its link."},
    {"rank_failed",
     {"rank", "code", "signal", "pid", "last_words", "by", "attempt", "phase"},
     "The rank that failed first, of those that the program's launcher started: as the launcher's "
     "report says, or as it was seen."},
};

}  // namespace

const std::vector<EventInfo>& AdapterEvents() {
  static const std::vector<EventInfo> events = [] {
    std::vector<EventInfo> all = kOwnEvents;
    all.insert(all.end(), LauncherEvents().begin(), LauncherEvents().end());
    return all;
  }();
  return events;
}

void AddEvents(const std::vector<EventInfo>& events, TargetDescription& target) {
  for (const EventInfo& event : events) {
    const auto same = std::find_if(target.events.begin(), target.events.end(),
                                   [&](const EventInfo& one) { return one.name == event.name; });
    if (same == target.events.end()) {
      target.events.push_back(event);
      continue;
    }
    for (const std::string& field : event.fields) {
      if (std::count(same->fields.begin(), same->fields.end(), field) == 0) {
        same->fields.push_back(field);
      }
    }
    same->on_demand = same->on_demand || event.on_demand;
  }
}

TargetDescription DescribeTarget(const TargetSpec& spec) {
  TargetDescription target;
  target.name = spec.name;
  target.version = "level " + std::to_string(spec.level);
  target.level = spec.level;
  target.recipe = spec.recipe;
  target.signals = spec.signals;
  if (spec.EntropyFloor()) {
    SignalInfo floor = *target.FindSignal(kLoss);
    floor.name = kEntropyFloor;
    floor.own_name.clear();
    floor.doc = "The floor that the target declares for the loss.";
    target.signals.push_back(std::move(floor));
  }
  if (target.FindSignal("time") == nullptr) {
    target.signals.push_back({.name = "time", .unit = "s", .doc = "Seconds since the start."});
  }
  target.events = kOwnEvents;
  AddEvents(spec.events, target);
  for (const ParamInfo& key : spec.recipe) AddRecipeFaults(key, target.faults);
  AddOutsideFaults(spec, target.faults);
  target.features = spec.features;
  target.features.push_back("device:cpu");
  target.features.push_back(kAdapterFeature);
  if (!FindNcclShim().empty()) target.features.push_back(kNcclFeature);
  if (spec.CanResume()) target.features.push_back("resume");
  if (spec.Mentions("run.until")) target.features.push_back("phases");
  if (spec.launcher != LauncherKind::kOwn) target.features.push_back("one-process");
  if (!spec.hooks.empty()) AddPythonHooks(spec, target);
  for (const auto& [signal, floor] : spec.extras.floors) {
    target.features.push_back(FloorFeature(signal, floor));
  }
  // Values of a step may come after those of later ones.
  const bool is_sparse = std::any_of(spec.signals.begin(), spec.signals.end(),
                                     [](const SignalInfo& signal) { return signal.sparse; });
  const std::size_t writers = spec.sources.size() + (spec.hooks.empty() ? 0 : 1);
  if (writers > 1 || is_sparse) target.features.push_back("late-signals");
  return target;
}

}  // namespace trainwreck
