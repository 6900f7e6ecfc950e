#include "harness/targets/outside_faults.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "harness/process/rank_processes.h"
#include "harness/process/spawn.h"
#include "harness/protocol/digest.h"
#include "harness/text/files.h"
#include "harness/text/glob.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOfRanksAtSteps[] = {"process.crash_rank", "process.suspend",
                                           "checkpoint.kill_writer", "node.command"};

constexpr int kAnswerPollMs = 50;

std::string Param(const PlannedFault& fault, const std::string& name) {
  const auto found = fault.with.find(name);
  return found != fault.with.end() && found->second.is_string() ? found->second.get<std::string>()
                                                                : "";
}

double Number(const PlannedFault& fault, const std::string& name) {
  const auto found = fault.with.find(name);
  return found != fault.with.end() && found->second.is_number() ? found->second.get<double>() : 0;
}

Json DescribeBytes(const std::string& bytes) {
  return {{"bytes", bytes.size()}, {"digest", std::to_string(Digest(bytes))}};
}

// What the file holds afterwards; null: it is gone.
Json Damage(const fs::path& path, const std::string& how, std::string bytes) {
  if (how == "delete") {
    fs::remove(path);
    return nullptr;
  }
  if (how == "truncate") bytes.resize(bytes.size() / 2);
  if (how == "zero") bytes.assign(bytes.size(), '\0');
  if (how == "flip_bit" && !bytes.empty()) bytes[bytes.size() / 2] ^= 0x10;
  // A new file: the old one may be linked from elsewhere.
  fs::remove(path);
  std::ofstream(path, std::ios::binary) << bytes;
  return DescribeBytes(bytes);
}

// The processes of one rank: those of this run whose environment says so, or, where each rank has
// been started by us, all below `root`.
std::vector<int> ProcessesOfRank(int root, LauncherKind launcher, int rank) {
  if (launcher == LauncherKind::kOwn) {
    std::vector<int> below = Descendants(root);
    below.insert(below.begin(), root);
    return below;
  }
  const char* run = std::getenv(kRunVariable);
  if (run == nullptr) return {};
  return ProcessesWith({std::string(kRunVariable) + "=" + run,
                        std::string(RankVariable(launcher)) + "=" + std::to_string(rank)});
}

}  // namespace

void OutsideFaults::Fire(const PlannedFault& fault, Json fields) {
  fields["id"] = fault.id;
  fields["fault"] = fault.fault;
  fire_(std::move(fields));
}

// What acts when a process starts has no step.
bool OutsideFaults::ActsAtStart(const PlannedFault& fault) const {
  return fault.trigger.Matches(0, rank_, plan_.phase, plan_.attempt, plan_.seed);
}

void OutsideFaults::DamageFiles(const PlannedFault& fault, const std::string& folder) {
  const std::string glob = Param(fault, "files"), how = Param(fault, "how");
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().lexically_relative(folder).string();
    if (entry->is_regular_file(error) && GlobMatches(glob, name)) paths.push_back(entry->path());
  }
  std::sort(paths.begin(), paths.end());
  if (Param(fault, "which") == "largest" && !paths.empty()) {
    // Of several that are as large, in checkpoints of several steps, the newest.
    const auto size = [](const fs::path& path) {
      return std::pair(fs::file_size(path), fs::last_write_time(path));
    };
    paths = {*std::max_element(paths.begin(), paths.end(),
                               [&](const auto& a, const auto& b) { return size(a) < size(b); })};
  }
  for (const fs::path& path : paths) {
    const std::string bytes = ReadFile(path.string()).value_or("");
    const Json after = Damage(path, how, bytes);
    Fire(fault, {{"file", path.lexically_relative(folder).string()},
                 {"how", how},
                 {"before", DescribeBytes(bytes)},
                 {"after", after}});
  }
}

void OutsideFaults::DamageCheckpoints() {
  for (const PlannedFault& fault : plan_.faults) {
    if (fault.fault == "checkpoint.damage_file" && rank_ == 0 && ActsAtStart(fault)) {
      DamageFiles(fault, plan_.checkpoint_dir);
    }
  }
}

bool OutsideFaults::WantsDataCopy() const {
  return std::any_of(plan_.faults.begin(), plan_.faults.end(), [&](const PlannedFault& fault) {
    return fault.fault == "data.damage_file" && ActsAtStart(fault);
  });
}

void OutsideFaults::DamageData(const std::string& copy) {
  for (const PlannedFault& fault : plan_.faults) {
    if (fault.fault == "data.damage_file" && ActsAtStart(fault)) DamageFiles(fault, copy);
  }
}

void OutsideFaults::ChangeEnvironment(std::map<std::string, std::string>& environment) {
  for (const PlannedFault& fault : plan_.faults) {
    if (fault.fault != "environment.set" || !ActsAtStart(fault)) continue;
    const std::string name = Param(fault, "name"), value = Param(fault, "value");
    Json before;
    if (const auto found = environment.find(name); found != environment.end()) {
      before = found->second;
    } else if (const char* inherited = std::getenv(name.c_str())) {
      before = inherited;
    } else {
      before = "unset";
    }
    environment[name] = value;
    Fire(fault, {{"name", name}, {"before", before}, {"after", value}});
  }
}

void OutsideFaults::WatchCheckpoints() {
  const bool is_needed = std::any_of(
      plan_.faults.begin(), plan_.faults.end(),
      [](const PlannedFault& fault) { return fault.fault == "checkpoint.kill_writer"; });
  if (is_needed) writes_ = std::make_unique<WriteWatch>(plan_.checkpoint_dir);
}

void OutsideFaults::ActAtStep(int first, int step, int root) {
  if (next_step_ < 0) next_step_ = plan_.resume ? first : 0;
  for (; next_step_ <= step; ++next_step_) {
    for (const PlannedFault& fault : plan_.faults) {
      if (std::count(std::begin(kOfRanksAtSteps), std::end(kOfRanksAtSteps), fault.fault) == 0) {
        continue;
      }
      const bool has_all_ranks = launcher_ != LauncherKind::kOwn;
      for (int rank = has_all_ranks ? 0 : rank_; rank < (has_all_ranks ? ranks_ : rank_ + 1);
           ++rank) {
        if (fault.trigger.Matches(next_step_, rank, plan_.phase, plan_.attempt, plan_.seed)) {
          ActOnRank(fault, rank, step, root);
        }
      }
    }
  }
}

void OutsideFaults::ActOnRank(const PlannedFault& fault, int rank, int step, int root) {
  const auto is_of_rank = [&](const Pause& pause) { return pause.rank == rank; };
  // A rank that does not run makes no steps: they were made before.
  if (std::any_of(pauses_.begin(), pauses_.end(), is_of_rank)) return;
  if (fault.fault == "node.command") return RunOnNode(fault, rank, step);
  std::vector<int> pids;
  if (!IsGuarded(rank)) {
    pids = ProcessesOfRank(root, launcher_, rank);
    if (pids.empty()) return;  // it did not fire, and that shows
  }
  if (fault.fault == "process.crash_rank") {
    const std::string how = Param(fault, "how");
    const int number = how == "sigstop" ? SIGSTOP : how == "sigterm" ? SIGTERM : SIGKILL;
    const char* after = number == SIGSTOP ? "stopped" : number == SIGTERM ? "terminated" : "killed";
    Send(fault, rank, step, pids, {{"how", how}, {"signal", number}, {"after", after}});
  } else if (fault.fault == "process.suspend") {
    const std::chrono::duration<double> length(Number(fault, "seconds"));
    Send(fault, rank, step, pids, {{"signal", SIGSTOP}, {"after", "stopped"}}, length.count());
    pauses_.push_back({rank, std::move(pids),
                       Clock::now() + std::chrono::duration_cast<Clock::duration>(length)});
  } else if (fault.fault == "checkpoint.kill_writer") {
    at_next_save_.push_back(
        {&fault, rank, std::move(pids), static_cast<int>(Number(fault, "files"))});
  }
}

void OutsideFaults::ActOnWrites(int step) {
  if (!writes_) return;
  const WritesSeen seen = writes_->Read();
  std::vector<Due> later;
  // A file that is written elsewhere is first seen when it is moved here.
  const std::string& file = seen.open.empty() ? seen.moved : seen.open;
  for (Due& due : at_next_save_) {
    const bool is_time = due.files_left > 0 ? seen.finished >= due.files_left : !file.empty();
    if (is_time) {
      Send(*due.fault, due.rank, step, due.pids,
           {{"signal", SIGKILL}, {"after", "killed"}, {"file", file}});
    } else {
      due.files_left = std::max(0, due.files_left - seen.finished);
      later.push_back(std::move(due));
    }
  }
  at_next_save_ = std::move(later);
}

void OutsideFaults::Send(const PlannedFault& fault, int rank, int step,
                         const std::vector<int>& pids, Json fields, double seconds) {
  const int number = fields["signal"].get<int>();
  fields.update({{"rank", rank}, {"step", step}});
  if (IsGuarded(rank)) {
    const int id = guards_.Order({.rank = rank, .signal = number, .seconds = seconds});
    ordered_.push_back({&fault, id, std::move(fields)});
    return;
  }
  fields.update({{"pid", pids.front()}, {"before", "running"}});
  Fire(fault, std::move(fields));
  if (number == SIGKILL) {
    KillTogether(pids);
  } else {
    for (const int pid : pids) kill(pid, number);
  }
}

void OutsideFaults::RunOnNode(const PlannedFault& fault, int rank, int step) {
  NodeCommand command{Param(fault, "run"), Param(fault, "undo"), Param(fault, "probe"),
                      Number(fault, "seconds")};
  Json fields = {{"rank", rank}, {"step", step}, {"command", command.run}};
  if (IsGuarded(rank)) {
    const int id = guards_.Order({.rank = rank, .command = std::move(command)});
    ordered_.push_back({&fault, id, std::move(fields)});
    return;
  }
  fields["host"] = HostName();
  FireAnswer(fault, commands_.Run(command), std::move(fields));
}

// A command that failed is no fault that acted.
void OutsideFaults::FireAnswer(const PlannedFault& fault, const NodeAnswer& answer, Json fields) {
  if (answer.status != 0) {
    std::cerr << "trainwreck: fault '" << fault.id << "': '" << fields["command"].get<std::string>()
              << "' ended with " << answer.status << " on " << fields["host"].get<std::string>()
              << ": " << answer.words << "\n";
    return;
  }
  fields.update({{"before", answer.before}, {"after", answer.after}});
  Fire(fault, std::move(fields));
}

void OutsideFaults::HearGuards() {
  std::erase_if(ordered_, [&](Ordered& ordered) {
    const GuardedRank& rank = guards_.ranks().at(ordered.fields["rank"].get<int>());
    const auto done = std::find_if(rank.obeyed.begin(), rank.obeyed.end(),
                                   [&](const ObeyedOrder& one) { return one.id == ordered.id; });
    if (done == rank.obeyed.end()) return false;
    if (done->answer) {
      ordered.fields["host"] = rank.host;
      FireAnswer(*ordered.fault, *done->answer, std::move(ordered.fields));
      return true;
    }
    ordered.fields.update({{"pid", rank.pid},
                           {"host", rank.host},
                           {"processes", done->processes},
                           {"before", done->before}});
    Fire(*ordered.fault, std::move(ordered.fields));
    return true;
  });
}

void OutsideFaults::HearLastOfGuards(bool have_all_ended) {
  const auto after = [now = Clock::now()](GuardPace::Duration length) {
    return now + std::chrono::duration_cast<Clock::duration>(length);
  };
  const GuardPace& pace = guards_.pace();
  const auto give_up = after(pace.lost_after);
  const auto ends_by = have_all_ended ? give_up : after(pace.heard_after_failure);
  for (;;) {
    guards_.Read();
    HearGuards();
    const bool may_answer = std::any_of(ordered_.begin(), ordered_.end(), [&](const Ordered& one) {
      return guards_.ranks().at(one.fields["rank"].get<int>()).state != "ended";
    });
    const bool may_tell_end =
        Clock::now() < ends_by &&
        std::any_of(guards_.ranks().begin(), guards_.ranks().end(), [&](const auto& one) {
          return one.second.state != "ended" && !guards_.IsLost(one.first);
        });
    if ((!may_answer && !may_tell_end) || Clock::now() >= give_up) return;
    poll(nullptr, 0, kAnswerPollMs);
  }
}

bool OutsideFaults::EndPauses() {
  commands_.UndoDue();
  const auto is_over = [now = Clock::now()](const Pause& pause) {
    if (pause.until > now) return false;
    for (const int pid : pause.pids) kill(pid, SIGCONT);
    return true;
  };
  pauses_.erase(std::remove_if(pauses_.begin(), pauses_.end(), is_over), pauses_.end());
  return !pauses_.empty();
}

}  // namespace trainwreck
