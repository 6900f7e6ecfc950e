#include "harness/swarm/swarm.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "harness/bisect/reduce.h"
#include "harness/process/interruption.h"
#include "harness/process/spawn.h"
#include "harness/protocol/recipe_view.h"
#include "harness/session/storage.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

std::string MakeFolder(const std::string& path) {
  fs::create_directories(path);
  return fs::absolute(path).lexically_normal().string();
}

LauncherOptions OptionsOf(const Session& session, int cores, const std::string& runs,
                          const std::string& temporary) {
  LauncherOptions options;
  options.target = session.target;
  options.target.environment["TMPDIR"] = temporary;
  options.cores = cores;
  options.output_dir = runs;
  return options;
}

std::vector<std::string> FaultNames(const Combination& drawn, const std::set<std::string>& ids) {
  std::vector<std::string> names;
  for (const Ingredient& one : drawn.ingredients) {
    if (one.is_fault() && ids.contains(one.fault.id)) names.push_back(one.fault.fault);
  }
  return names;
}

bool Breaks(const SwarmRecord& record, const std::string& rule) {
  return std::any_of(record.findings.begin(), record.findings.end(),
                     [&](const BrokenRule& finding) { return finding.rule == rule; });
}

}  // namespace

Swarm::Swarm(const Session& session, const SwarmPool& pool, SwarmOptions options)
    : session_(session),
      pool_(pool),
      options_(std::move(options)),
      runs_folder_(MakeFolder(options_.output + "/runs")),
      temporary_(MakeFolder(options_.output + "/temporary")),
      launcher_(OptionsOf(session, options_.cores, runs_folder_, temporary_)) {
  for (const SignalInfo& signal : session.description.signals) {
    if (signal.exact && !signal.per_module) record_.push_back(signal.name);
  }
  record_.push_back("loss");
}

std::optional<std::vector<SwarmRecord>> Swarm::Check(const std::vector<int>& numbers) {
  std::vector<Trial> trials;
  for (const int number : numbers) {
    Trial trial{.drawn = DrawCombination(pool_, session_.description, options_.seed, number),
                .with = options_.with,
                .overrides = options_.overrides};
    if (trial.with.empty()) trial.with = AllOf(trial.drawn);
    trials.push_back(std::move(trial));
  }
  std::vector<SwarmRecord> records = Try(trials);
  FindLostFaults(trials, records);
  for (SwarmRecord& record : records) {
    if (!record.findings.empty() && options_.with.empty()) MakeSmall(record);
  }
  if (WasInterrupted()) return std::nullopt;
  return records;
}

// Each run in a folder of its own, and beside those that may resume exactly the run without faults.
std::vector<SwarmRecord> Swarm::Try(const std::vector<Trial>& trials) {
  std::vector<Run> runs;
  std::vector<int> reference_of(trials.size(), -1);
  for (const Trial& trial : trials) {
    runs.push_back(
        RunOf(trial.drawn, trial.with, trial.overrides, session_.description, options_.budget_s));
  }
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (!ResumesExactly(runs[i])) continue;
    reference_of[i] = static_cast<int>(runs.size());
    runs.push_back(runs[i]);
    runs.back().plan.faults.clear();
  }
  const std::vector<RunResult> results = RunAll(runs);
  std::vector<SwarmRecord> records;
  silent_.clear();
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const RunResult& result = results[i];
    SwarmRecord record{.drawn = trials[i].drawn, .with = trials[i].with};
    record.overrides = trials[i].overrides;
    record.wall_seconds = result.wall_seconds;
    record.restarts = result.restarts;
    std::vector<BrokenRule> found = CheckLeftBehind(result, left_[i]);
    const bool is_refused = IsRefused(result);
    record.end = is_refused ? "refused" : ToString(result.end);
    silent_.push_back(is_refused ? std::vector<std::string>{} : SilentIn(runs[i], result));
    for (const std::string& name : FaultNames(record.drawn, FiredIn(result))) {
      record.fired.insert(name);
    }
    if (!is_refused) {
      for (const auto& more : {CheckEnd(runs[i], result), CheckBlame(runs[i], result)}) {
        found.insert(found.end(), more.begin(), more.end());
      }
    }
    if (reference_of[i] >= 0 && result.end == RunEnd::kCompleted) {
      record.is_compared = true;
      const auto more = CheckResumed(result, results[reference_of[i]]);
      found.insert(found.end(), more.begin(), more.end());
    }
    record.findings = std::move(found);
    records.push_back(std::move(record));
  }
  return records;
}

// A fault that was due and did not fire may lack what it acts on, as clipping that a fault of the
// recipe took away. It is lost if it fires in the same recipe alone.
void Swarm::FindLostFaults(const std::vector<Trial>& trials, std::vector<SwarmRecord>& records) {
  std::vector<Trial> alone;
  std::vector<std::pair<std::size_t, std::string>> asked;
  const std::vector<std::vector<std::string>> silent = silent_;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    for (const std::string& id : silent[i]) {
      Trial trial = trials[i];
      std::erase_if(trial.with, [&](int index) {
        const Ingredient& one = trial.drawn.ingredients[index];
        if (!one.is_fault() || one.fault.id == id) return false;
        const FaultInfo* info = session_.description.FindFault(one.fault.fault);
        return info != nullptr && info->amends.empty();
      });
      if (trial.with.size() == trials[i].with.size()) {  // it was alone
        records[i].idle.push_back(FaultNames(trial.drawn, {id}).front());
        continue;
      }
      alone.push_back(std::move(trial));
      asked.emplace_back(i, id);
    }
  }
  if (alone.empty()) return;
  const std::vector<SwarmRecord> seen = Try(alone);
  for (std::size_t k = 0; k < seen.size(); ++k) {
    SwarmRecord& record = records[asked[k].first];
    const std::string name = FaultNames(record.drawn, {asked[k].second}).front();
    if (!seen[k].fired.contains(name)) {
      record.idle.push_back(name);
    } else {
      record.findings.push_back(
          {"fires", asked[k].second + " (" + name + ") fires alone, and not beside the others"});
    }
  }
}

bool Swarm::StillFails(const Trial& trial, const std::string& rule) {
  std::vector<SwarmRecord> records = Try({trial});
  if (rule == "fires") FindLostFaults({trial}, records);
  return Breaks(records.front(), rule);
}

// Fewer ingredients, then fewer ranks and steps, as long as the same rule is broken.
void Swarm::MakeSmall(SwarmRecord& record) {
  const std::string rule = record.findings.front().rule;
  Trial trial{.drawn = record.drawn, .with = record.with, .overrides = record.overrides};
  int left = options_.most_reductions;
  const auto fails = [&](const Trial& smaller) {
    return left-- > 0 && !WasInterrupted() && StillFails(smaller, rule);
  };
  record.repeats = fails(trial);
  if (!record.repeats) return;
  trial.with = Reduce(trial.with, [&](const ChangeSet& some) {
    return fails({trial.drawn, some, trial.overrides});
  });
  const Run run = RunOf(trial.drawn, trial.with, trial.overrides, session_.description, 1);
  for (const auto& [key, from] :
       {std::pair(kRanksKey, run.ranks), std::pair(kStepsKey, run.steps)}) {
    for (int value = 1; value < from; ++value) {
      if (std::string(key) == kStepsKey && value < 2) continue;
      Trial smaller = trial;
      smaller.overrides.set.emplace_back(key, value);
      if (!fails(smaller)) continue;
      trial = std::move(smaller);
      break;
    }
  }
  record.with = trial.with;
  record.overrides = trial.overrides;
}

std::vector<RunResult> Swarm::RunAll(std::vector<Run>& runs) {
  std::map<std::string, std::size_t> index;
  std::vector<const Run*> asked;
  for (Run& run : runs) {
    run.id = std::to_string(made_++);
    run.plan.run = run.id;
    run.plan.record = record_;
    index[run.id] = asked.size();
    asked.push_back(&run);
  }
  std::vector<RunResult> results(runs.size());
  left_.assign(runs.size(), {});
  std::string trouble;
  LauncherCallbacks callbacks;
  callbacks.finished = [&](const Run& run, RunResult result) {
    const std::size_t at = index.at(run.id);
    left_[at] = LookAround(result, runs);
    RemoveRunFolder(result.folder, runs_folder_);
    results[at] = std::move(result);
  };
  launcher_.RunAll(asked, callbacks);
  return results;
}

LeftBehind Swarm::LookAround(const RunResult& result, const std::vector<Run>& runs) const {
  LeftBehind left;
  left.processes = ProcessesWith({"TRAINWRECK_TRACE=" + result.folder});
  for (const auto& entry : fs::directory_iterator(runs_folder_)) {
    const std::string name = entry.path().filename().string();
    const bool is_run =
        std::any_of(runs.begin(), runs.end(), [&](const Run& run) { return run.id == name; });
    if (!is_run && name != "fork-server.log") left.files.push_back("runs/" + name);
  }
  for (const auto& entry : fs::directory_iterator(temporary_)) {
    left.files.push_back("temporary/" + entry.path().filename().string());
  }
  std::error_code ignored;  // so that the next run is not blamed for them
  for (const std::string& file : left.files) fs::remove_all(options_.output + "/" + file, ignored);
  return left;
}

std::string LineOf(const SwarmRecord& record) {
  std::string line =
      fmt::format("trainwreck swarm --seed {} --only {}", record.drawn.seed, record.drawn.number);
  if (record.with != AllOf(record.drawn)) {
    std::vector<std::string> indices;
    for (const int index : record.with) indices.push_back(std::to_string(index));
    line += " --with " + Join(indices, ",");
  }
  for (const auto& [key, value] : record.overrides.set)
    line += " --set " + key + "=" + value.dump();
  return line;
}

Json ToJson(const SwarmRecord& record) {
  Json json = ToJson(record.drawn, AllOf(record.drawn));
  json["end"] = record.end;
  json["restarts"] = record.restarts;
  json["fired"] = record.fired;
  json["idle"] = record.idle;
  json["is_compared"] = record.is_compared;
  json["seconds"] = record.wall_seconds;
  json["findings"] = Json::array();
  for (const BrokenRule& finding : record.findings) {
    json["findings"].push_back({{"rule", finding.rule}, {"text", finding.text}});
  }
  if (record.findings.empty()) return json;
  json["repeats"] = record.repeats;
  json["line"] = LineOf(record);
  json["reduced"] = ToJson(record.drawn, record.with);
  return json;
}

}  // namespace trainwreck
