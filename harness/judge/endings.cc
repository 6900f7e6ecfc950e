#include "harness/judge/endings.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "harness/launch/steps_done.h"

namespace trainwreck {
namespace {

// The events that say that a run ended in this way, and why it came to that.
std::set<std::string> EventsOf(RunEnd end) {
  switch (end) {
    case RunEnd::kFailed:
      return {"exited", "ended", "rank_failed", "collective_mismatch"};
    case RunEnd::kStalled:
      return {"stalled", "exited", "put_down", "collective_mismatch", "killed"};
    case RunEnd::kTimeout:
      return {"timeout", "put_down", "killed"};
    case RunEnd::kCompleted:
      return {"ended_early"};
    default:
      return {};
  }
}

bool IsCleanEnd(const Event& event) {
  if (event.name == "ended") return event.fields.value("why", Json()) == Json("completed");
  const auto is_zero = [&](const char* key) {
    const auto value = event.fields.find(key);
    return value == event.fields.end() || *value == Json(0);
  };
  return event.name == "exited" && is_zero("code") && is_zero("signal");
}

double LastRestart(const RunTrace& trace) {
  double time_s = 0;
  for (const Event& event : trace.events) {
    if (event.name == "restarted") time_s = std::max(time_s, event.time_s);
  }
  return time_s;
}

// The process that the launcher started last; null: no record says so.
const Event* LastSpawned(const RunTrace& trace) {
  const Event* last = nullptr;
  for (const Event& event : trace.events) {
    if (event.name == "spawned" && event.fields.contains("attempt")) last = &event;
  }
  return last;
}

// Whether an event is of the attempt in which `spawned` was started. A rank's watcher has a clock
// that begins anew with each attempt, so its times tell nothing of that.
bool IsOfAttempt(const Event& event, const Event* spawned, double begin_s) {
  if (spawned == nullptr || !event.fields.contains("attempt")) return event.time_s >= begin_s;
  const auto is_equal = [&](const char* key) {
    return event.fields.value(key, Json()) == spawned->fields.value(key, Json());
  };
  return is_equal("attempt") && is_equal("phase");
}

RunTrace WithoutEnd(const RunTrace& trace, RunEnd end) {
  const std::set<std::string> names = EventsOf(end);
  const double begin_s = LastRestart(trace);  // of the attempt that ended so
  const Event* spawned = LastSpawned(trace);
  std::map<int, const Event*> last_words;  // by rank; its clock is not the launcher's
  for (const Event& event : trace.events) {
    if (event.name == "ended") last_words[event.rank] = &event;
  }
  RunTrace rest = trace;
  rest.events.clear();
  for (const Event& event : trace.events) {
    const bool is_of_this_attempt = event.name == "ended" ? last_words[event.rank] == &event
                                                          : IsOfAttempt(event, spawned, begin_s);
    const bool is_of_the_end = names.contains(event.name) && is_of_this_attempt;
    if (!is_of_the_end || IsCleanEnd(event)) rest.events.push_back(event);
  }
  return rest;
}

bool IsIncomplete(const RunTrace& trace, const TargetDescription& target) {
  if (trace.planned_steps <= 0) return false;
  const std::optional<StepsDone> done = CountStepsDone(trace);
  // A program that is only looked at may show no steps; one that writes its trace has none.
  if (!done) return target.level >= 1;
  return done->steps < trace.planned_steps;
}

}  // namespace

FailureClass ClassOfEnd(const RunResult& run, const TargetDescription& target) {
  switch (run.end) {
    case RunEnd::kCompleted:
      return IsIncomplete(run.trace, target) ? FailureClass::kIncomplete : FailureClass::kNone;
    case RunEnd::kDecided:
      return FailureClass::kNone;
    case RunEnd::kFailed:
    case RunEnd::kGarbage:
      return FailureClass::kCrash;
    case RunEnd::kStalled:
    case RunEnd::kTimeout:
      return FailureClass::kTimeout;
    case RunEnd::kLeak:
      return FailureClass::kLeak;
    case RunEnd::kDiskBudget:
    case RunEnd::kInfrastructure:
      return FailureClass::kInfrastructure;
  }
  std::abort();  // every end has its class
}

std::string SentenceOfEnd(const RunResult& run) {
  std::string text = ToString(run.end);
  if (run.end == RunEnd::kCompleted) {
    const std::optional<StepsDone> done = CountStepsDone(run.trace);
    const int steps = done ? done->steps : 0;
    text += " after " + std::to_string(steps) + " of " + std::to_string(run.trace.planned_steps) +
            " steps";
    if (run.trace.world_size > 1 && done) text += " of rank " + std::to_string(done->rank);
  }
  return run.detail.empty() ? text : text + ", " + run.detail;
}

bool RestsOnEnd(const formula::Formula& formula, const formula::Runs& runs, RunEnd end,
                const TargetDescription& target) {
  if (!formula.mentions_ending()) return false;
  const RunTrace rest = WithoutEnd(*runs.self, end);
  formula::Runs others = runs;
  for (auto& [arm, trace] : others.arms) {
    if (trace == runs.self) trace = &rest;
  }
  others.self = &rest;
  return formula.Evaluate(runs, target).truth != formula.Evaluate(others, target).truth;
}

bool IsAboutEnd(const Claim& claim, const formula::Runs& runs, RunEnd end,
                const TargetDescription& target) {
  if (RestsOnEnd(claim.check->formula, runs, end, target)) return true;
  if (claim.role != CheckRole::kSymptom) return false;
  const std::vector<formula::Formula> alternatives = claim.check->formula.alternatives();
  return std::any_of(alternatives.begin(), alternatives.end(), [&](const auto& one) {
    return one.Evaluate(runs, target).truth == formula::Truth::kTrue &&
           RestsOnEnd(one, runs, end, target);
  });
}

}  // namespace trainwreck
