#include "harness/formula/scope.h"

#include <algorithm>
#include <set>

#include "harness/formula/value.h"
#include "harness/text/glob.h"

namespace trainwreck::formula {
namespace {

constexpr std::size_t kMaxBindings = 1 << 16;

bool Matches(const Json& value, const Filter& filter) {
  if (value.is_array()) {  // "samples": [17, 4] is matched by samples=17
    return std::any_of(value.begin(), value.end(),
                       [&](const Json& item) { return !item.is_array() && Matches(item, filter); });
  }
  if (filter.is_number) {
    const std::optional<double> number = DecodeNumber(value);
    return number && Compare(filter.op, Point(*number), Point(filter.number),
                             /*octaves=*/false)
                             .truth == kYes;
  }
  if (value.is_boolean()) return filter.text == (value.get<bool>() ? "true" : "false");
  return value.is_string() && value.get_ref<const std::string&>() == filter.text;
}

bool Matches(const Event& event, const Filter& filter) {
  auto found = event.fields.find(filter.key);
  if (found != event.fields.end()) return Matches(*found, filter);
  if (filter.key == "rank") return Matches(Json(event.rank), filter);
  if (filter.key == "step") return Matches(Json(event.step), filter);
  return false;
}

// fired(ID): a scenario's name for a fault; targets may also report the fault's own name.
bool IsOfFault(const Event& event, const std::string& id) {
  for (const char* key : {"id", "fault"}) {
    auto found = event.fields.find(key);
    if (found != event.fields.end() && found->is_string() &&
        found->get_ref<const std::string&>() == id) {
      return true;
    }
  }
  return false;
}

}  // namespace

namespace {

// The last step that a rank made: the last recorded one, or what its `end` record says.
int ReachedBy(const RunTrace& run, int rank) {
  int reached = run.last_step(rank);
  for (const Event& event : run.events) {
    if (event.name == "ended" && event.rank == rank) reached = std::max(reached, event.step - 1);
  }
  return reached;
}

}  // namespace

Context::Context(const Runs& runs, const TargetDescription& target)
    : runs_(runs), target_(target), steps_(std::max(runs.self->planned_steps, 0)) {}

const RunTrace* Context::Find(const std::string& arm) const {
  auto found = runs_.arms.find(arm);
  return found == runs_.arms.end() ? nullptr : found->second;
}

const RunTrace* Context::RunOf(const std::string& arm) const {
  if (arm.empty()) return runs_.self;
  return Find(arm == "control" ? runs_.control : arm);
}

Samples Context::SamplesOf(const Node& signal, const Scope& scope) const {
  return SamplesIn(RunOf(signal.arm), signal, scope);
}

Samples Context::ControlSamplesOf(const Node& signal, const Scope& scope) const {
  return SamplesIn(RunOf("control"), signal, scope);
}

Samples Context::TrueControlSamplesOf(const Node& signal, const Scope& scope) const {
  return SamplesIn(Find("control"), signal, scope);
}

std::vector<Samples> Context::RoundingSamplesOf(const Node& signal, const Scope& scope) const {
  std::vector<Samples> draws;
  for (auto arm = runs_.arms.lower_bound(kRoundingArm);
       arm != runs_.arms.end() && arm->first.starts_with(kRoundingArm); ++arm) {
    draws.push_back(SamplesIn(arm->second, signal, scope));
  }
  return draws;
}

Samples Context::SamplesIn(const RunTrace* run, const Node& signal, const Scope& scope) const {
  Samples samples;
  const SignalInfo* info = target_.FindSignal(signal.name);
  samples.sparse = info != nullptr && info->sparse;
  if (run == nullptr) {
    samples.planned_steps = steps_;
    return samples;
  }
  const int rank = signal.rank.value_or(scope.rank);
  std::string name = signal.name;
  if (signal.glob) {
    auto bound = scope.modules.find(*signal.glob);
    name += "{" + (bound == scope.modules.end() ? *signal.glob : bound->second) + "}";
  }
  samples.series = run->Find(name, rank);
  samples.planned_steps = std::max(run->planned_steps, 0);
  samples.may_grow = !run->finished;
  samples.last_step = run->last_step(rank);
  samples.lossy = run->lost.contains(rank);
  samples.reached = samples.sparse ? ReachedBy(*run, rank) : samples.last_step;
  return samples;
}

std::vector<std::string> Context::ModulesOf(const Node& node, const std::string& glob,
                                            const Scope& scope) const {
  std::set<std::string> modules;
  ForEach(node, [&](const Node& signal) {
    if (signal.kind != Kind::kSignal || signal.glob != glob) return;
    const RunTrace* run = RunOf(signal.arm);
    if (run == nullptr) return;
    const std::string prefix = signal.name + "{";
    const int rank = signal.rank.value_or(scope.rank);
    for (auto at = run->series.lower_bound({prefix, -1}); at != run->series.end(); ++at) {
      const auto& [name, of_rank] = at->first;
      if (name.compare(0, prefix.size(), prefix) != 0) break;
      if (of_rank != rank || name.back() != '}') continue;
      const std::string module = name.substr(prefix.size(), name.size() - prefix.size() - 1);
      if (GlobMatches(glob, module)) modules.insert(module);
    }
  });
  return {modules.begin(), modules.end()};
}

std::vector<Scope> Context::Bound(const Node& node, const Scope& scope) const {
  std::vector<Scope> bound = {scope};
  ForEach(node, [&](const Node& signal) {
    if (signal.kind != Kind::kSignal || !signal.glob || bound.empty()) return;
    if (bound.front().modules.contains(*signal.glob)) return;
    const std::vector<std::string> modules = ModulesOf(node, *signal.glob, scope);
    std::vector<Scope> next;
    if (bound.size() * modules.size() > kMaxBindings) {
      bound.clear();  // too many to look at: unknown
      return;
    }
    for (const Scope& partial : bound) {
      for (const std::string& module : modules) {
        next.push_back(partial);
        next.back().modules[*signal.glob] = module;
      }
    }
    bound = std::move(next);
  });
  return bound;
}

std::vector<const Event*> Context::EventsOf(const Node& node, const Scope& scope) const {
  std::vector<const Event*> events;
  const RunTrace* run = RunOf(node.arm);
  if (run == nullptr) return events;
  for (const Event& event : run->events) {
    if (event.name != node.name) continue;
    if (scope.in_ranks && event.rank != scope.rank) continue;
    if (node.fault && !IsOfFault(event, *node.fault)) continue;
    const bool matches = std::all_of(node.filters.begin(), node.filters.end(),
                                     [&](const Filter& filter) { return Matches(event, filter); });
    if (matches) events.push_back(&event);
  }
  return events;
}

std::vector<int> Context::WorldsOf(const Node& node) const {
  std::vector<int> worlds(steps_, 0);
  ForEach(node, [&](const Node& signal) {
    const RunTrace* run = signal.kind == Kind::kSignal ? RunOf(signal.arm) : nullptr;
    if (run == nullptr) return;
    for (int step = 0; step < steps_; ++step) {
      worlds[step] = std::max(worlds[step], run->world_at(step));
    }
  });
  return worlds;
}

int Context::StepOf(const Event& event) const {
  return std::clamp(event.step, 0, std::max(steps_ - 1, 0));
}

bool Context::EventsMayGrow(const Node& node) const {
  const RunTrace* run = RunOf(node.arm);
  return run == nullptr || !run->finished || !run->lost.empty();
}

}  // namespace trainwreck::formula
