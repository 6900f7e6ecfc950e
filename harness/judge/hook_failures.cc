#include "harness/judge/hook_failures.h"

#include <algorithm>
#include <utility>

#include "harness/text/words.h"

namespace trainwreck {
namespace {

constexpr std::size_t kMostRemarks = 20;  // bounds for what a target may make us keep
constexpr std::size_t kMostBytes = 300;

// The field as text; what is none is shown as it is.
std::string FieldOf(const Event& event, const char* name) {
  const auto field = event.fields.find(name);
  if (field == event.fields.end()) return "";
  std::string text = field->is_string()
                         ? field->get<std::string>()
                         : field->dump(-1, ' ', false, Json::error_handler_t::replace);
  return InOneLine(std::move(text)).substr(0, kMostBytes);
}

bool IsAmong(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The same reason in another run has other numbers in it.
std::string WithoutDigits(std::string text) {
  std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
  return text;
}

// Of a hook and a reason.
struct Found {
  std::string kind;
  HookFailure first;
  std::string run;  // "fault, seed 3"
  int runs = 1;
};

// Counts a run once for each kind, however many of its ranks have it.
void Count(const RunTrace& trace, const std::string& run, std::vector<Found>& found) {
  std::vector<std::string> kinds;
  for (HookFailure& failure : HookFailuresIn(trace)) {
    std::string kind = failure.hook + ": " + WithoutDigits(failure.why);
    if (IsAmong(kinds, kind)) continue;
    kinds.push_back(kind);
    const auto same = std::find_if(found.begin(), found.end(),
                                   [&](const Found& known) { return known.kind == kind; });
    if (same != found.end()) {
      ++same->runs;
    } else if (found.size() < kMostRemarks) {
      found.push_back({std::move(kind), std::move(failure), run});
    }
  }
}

}  // namespace

std::vector<HookFailure> HookFailuresIn(const RunTrace& trace) {
  std::vector<HookFailure> failures;
  for (const Event& event : trace.events) {
    if (event.name != "hook_failed" || !event.fields.is_object()) continue;
    failures.push_back({FieldOf(event, "hook"), FieldOf(event, "why"), event.step, event.rank});
  }
  return failures;
}

std::string ToString(const HookFailure& failure) {
  std::string text = "hook '" + failure.hook + "' failed";
  if (failure.step >= 0) text += " at step " + std::to_string(failure.step);
  if (failure.rank > 0) text += " of rank " + std::to_string(failure.rank);
  return text + ": " + failure.why;
}

std::optional<HookFailure> WhatSilenced(const InjectedFault& fault, const RunTrace& trace,
                                        const TargetDescription& target) {
  const FaultInfo* info = target.FindFault(fault.fault);
  if (info == nullptr || info->hooks.empty()) return std::nullopt;
  const bool has_fired =
      std::any_of(trace.events.begin(), trace.events.end(), [&](const Event& event) {
        return event.name == "fired" && event.fields.is_object() &&
               event.fields.value("id", Json()) == Json(fault.id);
      });
  if (has_fired) return std::nullopt;  // its own evidence says what it did
  const std::vector<int>& ranks = fault.trigger.ranks;
  for (HookFailure& failure : HookFailuresIn(trace)) {
    const bool acts_there =
        ranks.empty() || std::find(ranks.begin(), ranks.end(), failure.rank) != ranks.end();
    if (acts_there && IsAmong(info->hooks, failure.hook)) return std::move(failure);
  }
  return std::nullopt;
}

std::string SentenceOf(const InjectedFault& fault, const HookFailure& failure) {
  return "fault '" + fault.id + "' could not act: " + ToString(failure);
}

std::vector<std::string> RemarksOnHooks(const CaseResults& results) {
  std::vector<Found> found;
  for (const ArmPlan& arm : results.plan->arms) {
    const auto runs = results.runs.find(arm.name);
    if (runs == results.runs.end()) continue;
    for (const auto& [seed, run] : runs->second) {
      Count(run.trace, arm.name + ", seed " + std::to_string(seed), found);
    }
  }
  std::vector<std::string> remarks;
  for (const Found& one : found) {
    std::string text = one.run;
    if (one.runs > 1) {
      text += " (and " + std::to_string(one.runs - 1) + " more run" + (one.runs > 2 ? "s)" : ")");
    }
    remarks.push_back(text + ": " + ToString(one.first) +
                      "; what it records is missing from then on");
  }
  return remarks;
}

}  // namespace trainwreck
