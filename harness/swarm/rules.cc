#include "harness/swarm/rules.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

#include "harness/protocol/recipe_view.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

int IntOf(const Json& fields, const char* key, int fallback) {
  const auto found = fields.find(key);
  return found != fields.end() && found->is_number_integer() ? found->get<int>() : fallback;
}

std::string TextOf(const Json& fields, const char* key) {
  const auto found = fields.find(key);
  return found != fields.end() && found->is_string() ? found->get<std::string>() : "";
}

bool HasChanged(const Event& event) {
  return event.name == "fired" &&
         event.fields.value("before", Json()) != event.fields.value("after", Json());
}

// The ranks that a fault acted on. A fault of the recipe acts on all: the launcher says so.
std::set<int> RanksHit(const Run& run, const RunResult& result) {
  std::set<int> hit;
  for (const Event& event : result.trace.events) {
    if (!HasChanged(event)) continue;
    if (event.rank >= 0) hit.insert(event.rank);
    for (int rank = 0; event.rank < 0 && rank < run.ranks; ++rank) hit.insert(rank);
  }
  return hit;
}

// The ranks that an event says are at fault; empty: it blames none.
std::vector<int> BlamedBy(const Event& event) {
  std::vector<int> ranks;
  if (event.name == "stalled") ranks = {IntOf(event.fields, "lagging_rank", -1)};
  if (event.name == "restarted") ranks = {IntOf(event.fields, "dead_rank", -1)};
  // Without a majority it only says which ranks differ from rank 0.
  const bool is_list = event.name == "rendezvous_failed" ||
                       (event.name == "desync" && TextOf(event.fields, "reference") == "majority");
  const auto list = event.fields.find(event.name == "desync" ? "ranks" : "missing");
  if (is_list && list != event.fields.end() && list->is_array()) {
    for (const Json& rank : *list) {
      if (rank.is_number_integer()) ranks.push_back(rank.get<int>());
    }
  }
  std::erase_if(ranks, [](int rank) { return rank < 0; });
  return ranks;
}

bool IsAlarm(const Event& event) {
  static const std::set<std::string> alarms = {"stalled",
                                               "restarted",
                                               "desync",
                                               "collective_mismatch",
                                               "rendezvous_failed",
                                               "checkpoint_damaged",
                                               "checkpoint_misfit",
                                               "checkpoint_incomplete",
                                               "checkpoint_failed",
                                               "rolled_back",
                                               "sample_rejected"};
  return alarms.contains(event.name);
}

// Whether a fault acted after which ranks may make different collectives: one of collectives or of
// data, or any that acts on some ranks only, as parameters that one rank alone has frozen.
bool RanksMayDiffer(const Run& run, const RunResult& result) {
  const std::set<std::string> fired = FiredIn(result);
  return std::any_of(
      run.plan.faults.begin(), run.plan.faults.end(), [&](const PlannedFault& fault) {
        return fired.contains(fault.id) &&
               (!fault.trigger.ranks.empty() || fault.fault.starts_with("collective.") ||
                fault.fault.starts_with("data."));
      });
}

}  // namespace

bool IsRefused(const RunResult& result) {
  for (const auto& [rank, why] : result.trace.end_why) {  // its peers may wait for it
    if (why == kBadPlan && result.end != RunEnd::kCompleted) return true;
  }
  if (result.end != RunEnd::kFailed || result.exits.empty()) return false;
  const bool any_fired =
      std::any_of(result.trace.events.begin(), result.trace.events.end(),
                  [](const Event& event) { return HasChanged(event) && event.rank >= 0; });
  const bool any_signal = std::any_of(result.exits.begin(), result.exits.end(),
                                      [](const RankExit& exit) { return exit.signal != 0; });
  return !any_fired && !any_signal && result.trace.last_step(0) < 0;
}

std::set<std::string> FiredIn(const RunResult& result) {
  std::set<std::string> fired;
  for (const Event& event : result.trace.events) {
    if (HasChanged(event)) fired.insert(TextOf(event.fields, "id"));
  }
  return fired;
}

std::vector<std::string> SilentIn(const Run& run, const RunResult& result) {
  std::set<std::string> said;  // that it acted, also where a NaN stays a NaN
  for (const Event& event : result.trace.events) {
    if (event.name == "fired") said.insert(TextOf(event.fields, "id"));
  }
  std::vector<std::string> silent;
  for (const PlannedFault& fault : run.plan.faults) {
    if (said.contains(fault.id)) continue;
    bool is_due = false;
    for (int rank = 0; rank < run.ranks; ++rank) {
      // Steps that a later attempt did say nothing of attempt 0, so only runs without one count.
      for (int step = 0; result.restarts == 0 && step <= result.trace.last_step(rank); ++step) {
        is_due = is_due || fault.trigger.Matches(step, rank, "train", 0, run.plan.seed);
      }
    }
    if (is_due) silent.push_back(fault.id);
  }
  return silent;
}

std::vector<BrokenRule> CheckEnd(const Run& run, const RunResult& result) {
  std::vector<BrokenRule> findings;
  const auto add = [&](const std::string& text) { findings.push_back({"ends", text}); };
  const std::string end = fmt::format("it ended as '{}': {}", ToString(result.end), result.detail);
  if (result.end != RunEnd::kCompleted && result.end != RunEnd::kFailed &&
      result.end != RunEnd::kStalled && result.end != RunEnd::kLeak) {
    add(end);
  } else if (result.wall_seconds > run.policy.seconds + 5) {
    add(fmt::format("it took {:.1f} s, over its budget", result.wall_seconds));
  }
  if (result.end != RunEnd::kCompleted && result.detail.empty()) add(end + "no word why");
  if ((result.end == RunEnd::kFailed || result.end == RunEnd::kStalled) &&
      FiredIn(result).empty()) {
    add("without a fault that fired, " + end);
  }
  // Gloo aborts the rank that gets a part of another collective: that is what such a fault does.
  const bool may_abort = RanksMayDiffer(run, result);
  for (const RankExit& exit : result.exits) {
    const bool is_of_gloo = exit.last_words.find("gloo::") != std::string::npos;
    if (exit.signal == SIGABRT && may_abort && is_of_gloo) continue;
    if (exit.signal == SIGSEGV || exit.signal == SIGABRT || exit.signal == SIGBUS ||
        exit.signal == SIGFPE || exit.signal == SIGILL) {
      add(fmt::format("rank {} crashed by signal {}: {}", exit.rank, exit.signal, exit.last_words));
    }
  }
  return findings;
}

std::vector<BrokenRule> CheckLeftBehind(const RunResult& result, const LeftBehind& left) {
  std::vector<BrokenRule> findings;
  for (const Event& event : result.trace.events) {
    if (event.name != "leaked") continue;
    findings.push_back({"leaves_nothing", "a process: " + TextOf(event.fields, "command")});
    break;
  }
  if (!left.processes.empty()) {
    findings.push_back(
        {"leaves_nothing", fmt::format("{} processes that outlive the run, as {}",
                                       left.processes.size(), left.processes.front())});
  }
  if (!left.files.empty()) findings.push_back({"leaves_nothing", "files: " + Join(left.files)});
  return findings;
}

std::vector<BrokenRule> CheckBlame(const Run& run, const RunResult& result) {
  std::vector<BrokenRule> findings;
  const std::set<int> hit = RanksHit(run, result);
  std::set<std::string> said;
  for (const Event& event : result.trace.events) {
    if (hit.empty() && IsAlarm(event) && said.insert(event.name).second) {
      findings.push_back({"blames_no_healthy_rank", "no fault fired, but there is an event '" +
                                                        event.name + "': " + event.fields.dump()});
      continue;
    }
    for (const int rank : BlamedBy(event)) {
      if (hit.contains(rank) || !said.insert(event.name).second) continue;
      findings.push_back(
          {"blames_no_healthy_rank", fmt::format("'{}' names rank {}, and no fault acted on it: {}",
                                                 event.name, rank, event.fields.dump())});
    }
    if (event.name != "fired" || event.rank < 0) continue;
    for (const PlannedFault& fault : run.plan.faults) {
      const std::vector<int>& ranks = fault.trigger.ranks;
      if (fault.id != TextOf(event.fields, "id") || ranks.empty()) continue;
      if (std::count(ranks.begin(), ranks.end(), event.rank) > 0) continue;
      findings.push_back({"fires", fmt::format("{} ({}) fired on rank {}, where it was not aimed",
                                               fault.id, fault.fault, event.rank)});
    }
  }
  return findings;
}

bool ResumesExactly(const Run& run) {
  static const std::set<std::string> exact = {"process.crash_rank", "process.kill_in_step",
                                              "checkpoint.cut_write", "checkpoint.damage_file"};
  const RecipeView recipe(run.plan.recipe);
  return run.policy.max_restarts > 0 && !run.plan.faults.empty() && run.amendments.empty() &&
         recipe.Int("resume.rewarm_steps").value_or(0) == 0 &&
         std::all_of(run.plan.faults.begin(), run.plan.faults.end(),
                     [](const PlannedFault& fault) { return exact.contains(fault.fault); });
}

std::vector<BrokenRule> CheckResumed(const RunResult& result, const RunResult& reference) {
  if (result.end != RunEnd::kCompleted || reference.end != RunEnd::kCompleted) return {};
  for (const auto& [key, series] : reference.trace.series) {
    if (IsTimeOrMemory(key.first)) continue;
    const Series* resumed = result.trace.Find(key.first, key.second);
    const int step = FirstDifference(series, resumed == nullptr ? Series() : *resumed,
                                     reference.trace.planned_steps);
    if (step < 0) continue;
    return {{"resumes_exactly", fmt::format("after {} restarts '{}' of rank {} differs from the "
                                            "uninterrupted run at step {}",
                                            result.restarts, key.first, key.second, step)}};
  }
  return {};
}

}  // namespace trainwreck
