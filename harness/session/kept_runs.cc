#include "harness/session/kept_runs.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <utility>

#include "harness/session/session.h"
#include "harness/session/storage.h"
#include "harness/session/stored_trace.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

std::string ValueText(const Recipe& recipe, const std::string& key) {
  auto found = recipe.find(key);
  return found == recipe.end() ? "not set" : found->second.dump();
}

// The first key that differs.
std::string CompareRecipes(const Recipe& kept, const Recipe& wanted) {
  Recipe all = kept;
  all.insert(wanted.begin(), wanted.end());
  for (const auto& [key, value] : all) {
    const auto before = kept.find(key), now = wanted.find(key);
    const bool is_same =
        before != kept.end() && now != wanted.end() && before->second == now->second;
    if (is_same) continue;
    return key + " was " + ValueText(kept, key) + ", it is " + ValueText(wanted, key) + " now";
  }
  return "";
}

// All of a run but the names of it and its arm, what it costs and what is recorded.
Json WhatIsTrained(const Run& run) {
  Json json = ToJson(run);
  for (const char* key : {"id", "point", "arm", "kind", "kind_name", "cost", "policy"})
    json.erase(key);
  for (const char* key :
       {"run", "point", "arm", "recipe", "record", "checkpoint_dir", "rendezvous", "attempt"}) {
    json["plan"].erase(key);
  }
  json["max_restarts"] = run.policy.max_restarts;
  json["window_seconds"] = run.policy.window_seconds;
  return json;
}

// Empty when the kept run is what the scenario asks for now.
std::string WhyAnother(const StoredRun& kept, const Run& wanted) {
  std::string recipe = CompareRecipes(kept.run.plan.recipe, wanted.plan.recipe);
  if (!recipe.empty()) return recipe;
  const Json before = WhatIsTrained(kept.run), now = WhatIsTrained(wanted);
  if (before != now) {
    const Json patch = Json::diff(before, now);
    std::string path = patch.empty() ? "" : patch.front().value("path", "");
    return "it was planned otherwise (" + path + ")";
  }
  const bool by_the_clock = kept.end == RunEnd::kStalled || kept.end == RunEnd::kTimeout;
  if (by_the_clock && (kept.run.policy.seconds != wanted.policy.seconds ||
                       kept.run.policy.stall_seconds != wanted.policy.stall_seconds)) {
    return "it ended by a budget of time that is another now";
  }
  for (const std::string& signal : wanted.plan.record) {
    const auto& recorded = kept.run.plan.record;
    if (std::find(recorded.begin(), recorded.end(), signal) == recorded.end()) {
      return "'" + signal + "' was not asked for then, so it may not have been recorded";
    }
  }
  return "";
}

int IntOf(const Json& fields, const char* key, int fallback) {
  auto found = fields.find(key);
  return found != fields.end() && found->is_number_integer() ? found->get<int>() : fallback;
}

std::string TextOf(const Json& fields, const char* key) {
  auto found = fields.find(key);
  return found != fields.end() && found->is_string() ? found->get<std::string>() : "";
}

// What the launcher saw, from its own events.
void ReadLauncherEvents(RunResult& result) {
  for (const Event& event : result.trace.events) {
    if (event.name == "restarted") ++result.restarts;
    if (event.name != "exited") continue;
    RankExit exit;
    exit.rank = IntOf(event.fields, "rank", 0);
    exit.attempt = IntOf(event.fields, "attempt", 0);
    exit.phase = TextOf(event.fields, "phase");
    exit.code = IntOf(event.fields, "code", -1);
    exit.signal = IntOf(event.fields, "signal", 0);
    exit.last_words = TextOf(event.fields, "last_words");
    result.exits.push_back(std::move(exit));
  }
}

// What is in the folder of a run that is `wanted`.
KeptRun ReadRun(const std::string& folder, const StoredRun& kept) {
  if (!kept.end) return {std::nullopt, "it is not known how it ended"};
  StoredTrace stored = LoadStoredTrace(folder);
  // One that was unreadable then has its verdict; one that has become so has none.
  if (!stored.problems.empty() && kept.end != RunEnd::kGarbage) {
    return {std::nullopt, "it is damaged: " + stored.problems.front()};
  }
  RunResult result;
  result.end = *kept.end;
  result.detail = kept.detail;
  result.folder = fs::absolute(folder).lexically_normal().string();
  result.trace = std::move(stored.trace);
  result.problems = std::move(stored.problems);
  ReadLauncherEvents(result);
  return {std::move(result), ""};
}

// All runs below the folder; folders that cannot be read do not count.
std::map<std::string, StoredRun> AllRunsBelow(const std::string& output_folder) {
  std::map<std::string, StoredRun> runs;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(output_folder, error)) {
    if (entry.path().filename() != "run.json") continue;
    const std::string folder = entry.path().parent_path().string();
    try {
      runs.emplace(folder, LoadStoredRun(folder));
    } catch (const ConfigurationError&) {
    }
  }
  return runs;
}

}  // namespace

KeptRun KeptRuns::Find(const Run& wanted) {
  const std::string folder = (fs::path(output_folder_) / wanted.id).string();
  std::string why_not = "it was not made then, or not kept";
  try {
    if (fs::is_regular_file(folder + "/run.json")) {
      const StoredRun kept = LoadStoredRun(folder);
      why_not = WhyAnother(kept, wanted);
      if (why_not.empty()) return ReadRun(folder, kept);
    }
    // Its arm had another name.
    if (!all_) all_ = AllRunsBelow(output_folder_);
    for (const auto& [elsewhere, kept] : *all_) {
      if (WhyAnother(kept, wanted).empty()) return ReadRun(elsewhere, kept);
    }
  } catch (const std::exception& error) {
    why_not = error.what();
  }
  return {std::nullopt, why_not};
}

}  // namespace trainwreck
