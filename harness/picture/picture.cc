#include "harness/picture/picture.h"

#include <algorithm>
#include <set>

#include "harness/judge/arm_judge.h"
#include "harness/picture/curve.h"
#include "harness/picture/curves_of_case.h"
#include "harness/picture/ranks.h"
#include "harness/text/clean_text.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

constexpr std::size_t kBytesOfAll = 5'500'000;
// The tables of a case: measured on the whole suite, 320 cases.
constexpr std::size_t kBytesOfPage = 7'600'000, kBytesOfTables = 16'600;
constexpr std::size_t kLeastOfRun = 250, kMostOfRun = 24'000;
constexpr std::size_t kMostEvents = 10, kMostTextBytes = 120;
constexpr int kThresholdPoints = 40;

std::string Short(const Json& value) {
  std::string text = value.is_string() ? value.get<std::string>()
                                       : value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kMostTextBytes) text = text.substr(0, kMostTextBytes) + "...";
  return CleanText(text);
}

// "bad_sample: data.corrupt_sample (samples [137], value nan), from step 3"
std::string FaultText(const InjectedFault& fault) {
  std::string text = fault.id + ": " + fault.fault;
  std::vector<std::string> parameters;
  for (const auto& [name, value] : fault.with) parameters.push_back(name + " " + Short(value));
  if (!parameters.empty()) text += " (" + Join(parameters) + ")";
  const Trigger& trigger = fault.trigger;
  if (trigger.at) text += ", at step " + std::to_string(*trigger.at);
  if (trigger.from) text += ", from step " + std::to_string(*trigger.from);
  if (trigger.to) text += ", to step " + std::to_string(*trigger.to);
  if (trigger.every != 1) text += ", every " + std::to_string(trigger.every) + " steps";
  for (std::size_t i = 0; i < trigger.ranks.size(); ++i) {
    text += (i == 0 ? ", rank " : " and ") + std::to_string(trigger.ranks[i]);
  }
  if (!trigger.phase.empty()) text += ", in phase " + trigger.phase;
  return CleanText(text);
}

Json ChangesOf(const ArmPlan& arm, const Run* control) {
  Json changes = Json::array();
  if (arm.runs.empty() || control == nullptr || control == &arm.runs.front()) return changes;
  const Recipe& before = control->plan.recipe;
  for (const auto& [key, value] : arm.runs.front().plan.recipe) {
    const auto found = before.find(key);
    if (found != before.end() && found->second == value) continue;
    changes.push_back(
        {CleanText(key), found == before.end() ? "" : Short(found->second), Short(value)});
  }
  return changes;
}

std::string CommandOf(const Case& plan, const ArmPlan& arm) {
  std::string command =
      "trainwreck run " + ShellWord(plan.scenario->file) + " --arm " + ShellWord(arm.name);
  if (!plan.point->name.empty()) command += " --point " + ShellWord(plan.point->name);
  return CleanText(command + " --seed ");
}

std::string EventText(const Event& event) {
  static const std::set<std::string> kNotSaid = {"t", "event", "step", "time", "rank", "pid"};
  std::string text;
  if (!event.fields.is_object()) return text;
  for (const auto& [key, value] : event.fields.items()) {
    if (kNotSaid.contains(key) || value.is_null()) continue;
    text += (text.empty() ? "" : ", ") + CleanText(key) + " " + Short(value);
    if (text.size() > kMostTextBytes) return text.substr(0, kMostTextBytes) + "...";
  }
  return text;
}

// What fired and how the run ended matter more than who was started.
int WeightOf(const Event& event) {
  static const std::set<std::string> kUsual = {"spawned", "device_opened", "last_call", "ended"};
  if (event.name == "fired") return 0;
  return kUsual.contains(event.name) ? 2 : 1;
}

void AddEvents(const RunTrace& trace, bool with_text, std::size_t& room, Json& run) {
  std::vector<const Event*> events;
  for (const Event& event : trace.events) {
    if (WeightOf(event) < 2) events.push_back(&event);
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const Event* a, const Event* b) { return WeightOf(*a) < WeightOf(*b); });
  // A fault that fires at each step leaves room for other events.
  const auto fired = std::find_if(events.begin(), events.end(),
                                  [](const Event* event) { return WeightOf(*event) > 0; });
  std::size_t left_out = 0;
  if (fired - events.begin() > 3) {
    left_out += static_cast<std::size_t>(fired - events.begin()) - 3;
    events.erase(events.begin() + 3, fired);
  }
  Json list = Json::array();
  for (const Event* event : events) {
    Json entry = {event->step, event->rank, CleanText(event->name)};
    if (with_text) entry.push_back(EventText(*event));
    const std::size_t bytes = entry.dump(-1, ' ', true, Json::error_handler_t::replace).size() + 1;
    const bool is_first_fired = list.empty() && event->name == "fired";
    if (!is_first_fired && (list.size() >= kMostEvents || bytes > room)) {
      ++left_out;
      continue;
    }
    room -= std::min(bytes, room);
    list.push_back(std::move(entry));
  }
  if (!list.empty()) run["events"] = std::move(list);
  if (left_out > 0) run["events_left_out"] = left_out;
}

Curve CurveOf(const std::vector<double>& threshold) {
  Series series;
  for (std::size_t step = 0; step < threshold.size(); ++step) {
    series.Set(static_cast<int>(step), threshold[step]);
  }
  return Thinned(series, kThresholdPoints);
}

// Of the claims of an arm, over its first run.
Json SketchesOf(const CaseResults& results, const ArmPlan& arm, const TargetDescription& target) {
  Json all = Json::object();
  const auto by_seed = results.runs.find(arm.name);
  if (by_seed == results.runs.end() || by_seed->second.empty()) return all;
  const auto& [seed, run] = *by_seed->second.begin();
  formula::Runs runs{.self = &run.trace, .control = arm.control};
  for (const auto& [name, others] : results.runs) {
    if (const auto found = others.find(seed); found != others.end()) {
      runs.arms[name] = &found->second.trace;
    }
  }
  for (const Claim& claim : ClaimsOf(*results.plan, arm)) {
    Json sketches = Json::array();
    for (const formula::Sketch& sketch : claim.check->formula.Sketches(runs, target)) {
      sketches.push_back({CleanText(sketch.signal), CleanText(sketch.arm), sketch.rank,
                          sketch.begin, sketch.end, sketch.from, sketch.to, sketch.comparison,
                          sketch.threshold.empty() ? Json() : ToJson(CurveOf(sketch.threshold))});
    }
    if (!sketches.empty()) all[CleanText(claim.check->name)] = std::move(sketches);
  }
  return all;
}

class Painter {
 public:
  Painter(const CaseResults& results, const TargetDescription& target, std::size_t bytes)
      : results_(results),
        plan_(*results.plan),
        target_(target),
        events_room_(bytes / 5),
        curves_(ChooseCurves(results, target, bytes - bytes / 5)) {
    for (const ArmPlan& arm : plan_.arms) {
      if (arm.kind == ArmKind::kControl && !arm.runs.empty()) control_ = &arm.runs.front();
    }
  }

  Json Paint() {
    Json arms = Json::array();
    for (const ArmPlan& arm : plan_.arms) arms.push_back(ArmOf(arm));
    Json picture = {{"case", CleanText(plan_.name)},
                    {"steps", control_ == nullptr ? 0 : control_->steps},
                    {"arms", std::move(arms)},
                    {"left_out", curves_.left_out},
                    {"min_margins", MinMargins()}};
    AddDescriptions(picture);
    return picture;
  }

 private:
  Json ArmOf(const ArmPlan& arm) {
    Json json = {{"arm", CleanText(arm.name)},
                 {"kind", ToString(arm.kind)},
                 {"changes", ChangesOf(arm, control_)},
                 {"command", CommandOf(plan_, arm)},
                 {"sketches", SketchesOf(results_, arm, target_)},
                 {"runs", Json::array()}};
    json["ranks"] = arm.runs.empty() ? 1 : arm.runs.front().ranks;
    for (const InjectedFault& fault : arm.faults) json["faults"].push_back(FaultText(fault));
    const auto by_seed = results_.runs.find(arm.name);
    if (by_seed == results_.runs.end()) return json;
    for (const auto& [seed, run] : by_seed->second) {
      Json one = {{"seed", seed}};
      if (const auto found = curves_.curves.find({arm.name, seed}); found != curves_.curves.end()) {
        one["curves"] = found->second;
      }
      const bool is_first = seed == by_seed->second.begin()->first;
      AddEvents(run.trace, is_first, events_room_, one);
      json["runs"].push_back(std::move(one));
    }
    if (Json calls = CallsOf(by_seed->second); !calls.is_null()) json["calls"] = std::move(calls);
    return json;
  }

  Json MinMargins() const {
    Json margins = Json::object();
    for (const ArmPlan& arm : plan_.arms) {
      for (const Claim& claim : ClaimsOf(plan_, arm)) {
        if (!claim.check->min_margin) continue;
        const formula::Amount& least = *claim.check->min_margin;
        margins[CleanText(claim.check->name)] = {EncodeNumber(least.value),
                                                 formula::NameOf(least.unit)};
      }
    }
    return margins;
  }

  void AddDescriptions(Json& picture) const {
    std::set<std::string> drawn;
    for (const auto& [run, curves] : curves_.curves) {
      for (const auto& [name, curve] : curves.items()) {
        drawn.insert(name.substr(0, name.find_first_of("{@")));
      }
    }
    for (const SignalInfo& signal : target_.signals) {
      if (!drawn.contains(signal.name)) continue;
      if (signal.scale == Scale::kLog) picture["log"].push_back(CleanText(signal.name));
      if (!signal.unit.empty()) picture["units"][CleanText(signal.name)] = Short(signal.unit);
    }
  }

  const CaseResults& results_;
  const Case& plan_;
  const TargetDescription& target_;
  std::size_t events_room_;
  CurvesOfCase curves_;
  const Run* control_ = nullptr;
};

}  // namespace

std::string PictureOf(const CaseResults& results, const TargetDescription& target,
                      const PictureOptions& options) {
  return Painter(results, target, options.bytes)
      .Paint()
      .dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

std::size_t PictureBytesOfRun(int runs, std::size_t cases) {
  const std::size_t tables = std::min(kBytesOfTables * cases, kBytesOfPage);
  const std::size_t left = std::min(kBytesOfPage - tables, kBytesOfAll);
  return std::clamp(left / static_cast<std::size_t>(std::max(runs, 1)), kLeastOfRun, kMostOfRun);
}

}  // namespace trainwreck
