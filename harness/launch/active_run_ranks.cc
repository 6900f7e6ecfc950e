// The ranks of an active run: how they are started, which of them wait, died or were stopped.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "harness/launch/active_run.h"
#include "harness/launch/flight_recorder.h"
#include "harness/launch/last_calls.h"
#include "harness/launch/nccl_log.h"
#include "harness/process/free_port.h"
#include "harness/process/peer_links.h"
#include "harness/process/process_status.h"
#include "harness/process/rank_processes.h"
#include "harness/protocol/rank_files.h"
#include "harness/text/files.h"

namespace trainwreck {
namespace {

using std::chrono::milliseconds;

constexpr auto kStoppedAfter = milliseconds(3000);  // without progress, of a rank in state T

// Another launcher gives its machines back when it is told to end (srun its job), and not when it
// is killed.
constexpr auto kLauncherGrace = milliseconds(3000);

}  // namespace

std::string DescribeExit(int code, int signal) {
  if (signal == 0) return fmt::format("exited with code {}", code);
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? fmt::format("was killed by SIG{}", name)
                         : fmt::format("was killed by signal {}", signal);
}

void ActiveRun::SkipFirstPhase(const std::string& maker) {
  WriteEvent("phase_shared", {{"phase", phase_name()}, {"run", maker}});
  while (reader_->Poll()) {
  }
  ++phase_;
}

int ActiveRun::ranks() const {
  const bool is_first = phase_ == 0 && attempt_ == 0;
  const int first = run_.first_ranks > 0 ? run_.first_ranks : run_.ranks;
  return is_first || run_.resume_ranks == 0 ? first : run_.resume_ranks;
}

std::string ActiveRun::rank_variable() const {
  const auto found = options_.target.rank_variables.find(run_.launcher);
  return found == options_.target.rank_variables.end() ? options_.target.rank_variable
                                                       : found->second;
}

SpawnRequest ActiveRun::RequestOf(int rank) const {
  SpawnRequest request;
  const bool is_launched = !run_.launcher.empty();
  if (is_launched) {
    request.command = options_.target.launch_ranks;
    request.command.insert(request.command.end(), {run_.launcher, std::to_string(ranks())});
  }
  if (is_launched || options_.isolation == Isolation::kExec || !options_.target.has_fork_server) {
    const std::vector<std::string>& command = options_.target.command;
    request.command.insert(request.command.end(), command.begin(), command.end());
    request.folder = options_.target.folder;
  }
  request.stdout_path = folder_.stdout_of(rank);
  request.stderr_path = folder_.stderr_of(rank);
  request.file_bytes = options_.disk_bytes;
  request.environment = options_.target.environment;
  for (const auto& [name, value] : run_.environment) request.environment[name] = value;
  const std::string world_size = std::to_string(ranks());
  auto set = [&](const char* name, const std::string& value) { request.environment[name] = value; };
  if (!visible_gpus_.empty()) set("CUDA_VISIBLE_DEVICES", visible_gpus_);
  set("TRAINWRECK_RUN", run_.id);
  set("TRAINWRECK_PLAN", folder_.plan(phase_name(), attempt_));
  set("TRAINWRECK_TRACE", folder_.path());
  set("TRAINWRECK_RANK", std::to_string(rank));
  if (!options_.target.sets_ranks) return request;
  set("RANK", std::to_string(rank));
  set("LOCAL_RANK", std::to_string(rank));
  set("WORLD_SIZE", world_size);
  set("LOCAL_WORLD_SIZE", world_size);
  // Ranks of another launcher may be on other machines: their job says which one has rank 0.
  const char* const first = is_launched ? std::getenv("MASTER_ADDR") : nullptr;
  set("MASTER_ADDR", first == nullptr ? "127.0.0.1" : first);
  set("MASTER_PORT", std::to_string(port_));
  set("OMP_NUM_THREADS", "1");
  return request;
}

// Processes below a rank are not counted, so a rank that has some is taken to be busy.
void ActiveRun::MeasureCoreUse(double now_s) {
  if (!core_use_.IsDue(now_s, running_)) return;
  std::optional<double> sum_s = 0;
  for (const Rank& rank : ranks_) {
    if (!rank.running) continue;
    const auto status = ReadProcess(rank.pid);
    const auto demand_s =
        status && !status->has_children ? ReadProcessorDemand(rank.pid) : std::nullopt;
    if (!demand_s) {
      sum_s.reset();
      break;
    }
    *sum_s += *demand_s;
  }
  core_use_.Sample(now_s, sum_s);
}

void ActiveRun::CheckPace(Clock::time_point now) {
  const double now_s = Seconds(now);
  const Overrun overrun = pace_.Check(now_s, !deaths_.empty());
  if (overrun == Overrun::kBudget) return EndOverBudget(now_s);
  const bool is_stopped = overrun == Overrun::kNone && HasStoppedRank(now);
  if (overrun == Overrun::kNone && !is_stopped) return;
  if (overrun == Overrun::kStall && AwaitsGuards(pace_.idle_s(now_s))) return;
  const Json fields =
      DescribeStall(reader_->trace(), RankStates(), pace_.idle_s(now_s), WhoIsNotAnswered());
  WriteEvent("stalled", fields);
  std::string detail = StallSentence(fields);
  if (overrun == Overrun::kStart) detail = pace_.Sentence(overrun, now_s) + "; " + detail;
  if (!deaths_.empty()) detail += "; " + FirstDeath();
  if (MayRestart()) {
    Restart(detail, fields.at("lagging_rank").get<int>());
  } else {
    EndWith(RunEnd::kStalled, detail);
  }
}

// A machine that has vanished is known to be lost a while after its ranks made no more progress.
bool ActiveRun::AwaitsGuards(double idle_s) const {
  return idle_s < GuardPace(ranks()).stall_after.count() &&
         std::filesystem::exists(GuardFolder(folder_.path(), phase_name(), attempt_));
}

bool ActiveRun::WasRefused() const {
  const auto& ends = reader_->trace().end_why;
  return std::any_of(ends.begin(), ends.end(),
                     [](const auto& end) { return end.second == kBadPlan; });
}

// What ranks on other machines have written may come late.
void ActiveRun::OnNoneRuns() {
  // A launcher that ended well has seen all guards end; else some may have been killed.
  const GuardPace pace(ranks());
  const GuardPace::Duration most = deaths_.empty() ? pace.lost_after : pace.heard_after_failure;
  const bool may_wait = state_ == State::kRunning && !has_end_;
  if (may_wait && Clock::now() - last_progress_ < most && AwaitsFiles())
    return;  // till the next tick
  OnAllExited();
}

// Whether a guard has not said how its rank ended, or a trace is shorter than its guard saw it.
bool ActiveRun::AwaitsFiles() const {
  const auto guarded = ReadGuards(GuardFolder(folder_.path(), phase_name(), attempt_));
  if (guarded.empty()) return false;
  for (int rank = 0; rank < ranks(); ++rank) {
    const auto guard = guarded.find(rank);
    if (guard == guarded.end()) return true;
    if (StateOfGuarded(rank, guard->second) == RankState::kLost) continue;
    if (guard->second.state != "ended") return true;
    if (FileSize(TraceFile(folder_.path(), rank)) < guard->second.trace_bytes) return true;
  }
  return false;
}

void ActiveRun::EndOverBudget(double now_s) {
  WriteEvent("timeout", {{"seconds", pace_.budget_s()}});
  EndWith(RunEnd::kTimeout, fmt::format("{}, at step {}", pace_.Sentence(Overrun::kBudget, now_s),
                                        reader_->trace().last_step(0)));
}

// The state T lasts until somebody sends SIGCONT: nothing has to be waited out, as with a rank that
// may only be slow.
bool ActiveRun::HasStoppedRank(Clock::time_point now) {
  if (now - std::max(last_progress_, stops_checked_) < kStoppedAfter) return false;
  stops_checked_ = now;
  const std::vector<RankState> states = RankStates();
  return std::count(states.begin(), states.end(), RankState::kStopped) > 0;
}

std::vector<RankState> ActiveRun::RankStates() const {
  if (!rank_variable().empty()) return StatesOfForeignRanks();
  std::vector<RankState> states;
  for (const Rank& rank : ranks_) {
    if (rank.running) {
      const auto status = ReadProcess(rank.pid);
      states.push_back(status && status->state == 'T' ? RankState::kStopped : RankState::kRunning);
    } else {
      states.push_back(rank.Died() ? RankState::kDied : RankState::kFinished);
    }
  }
  return states;
}

// The states of ranks that the command's own launcher started. An ended rank left an event, or a
// trace with its end. A rank that has left nothing was never seen, and counts as running.
std::vector<RankState> ActiveRun::StatesOfForeignRanks() const {
  const auto found =
      FindRankProcesses(folder_.path(), rank_variable(), ranks_.empty() ? 0 : ranks_.front().pid);
  const auto guarded = ReadGuards(GuardFolder(folder_.path(), phase_name(), attempt_));
  const RunTrace& trace = reader_->trace();
  std::vector<RankState> states;
  for (int rank = 0; rank < ranks(); ++rank) {
    // A rank that only prints steps may do so more rarely than others.
    const RankState running =
        rank == 0 || trace.starts.contains(rank) ? RankState::kRunning : RankState::kSilent;
    if (const auto guard = guarded.find(rank); guard != guarded.end()) {
      const RankState state = StateOfGuarded(rank, guard->second);
      states.push_back(state == RankState::kRunning ? running : state);
      continue;
    }
    RankState state = running;
    if (const auto process = found.find(rank); process != found.end()) {
      if (process->second.state == 'T') state = RankState::kStopped;
    } else if (const Event* exit = LastOfAttempt("exited", rank)) {
      const Json code = exit->fields.value("code", Json(0));  // nobody saw how it ended
      state = code == Json(0) ? RankState::kFinished : RankState::kDied;
    }
    states.push_back(state);
  }
  for (const int rank : CutOffRanks(guarded, DeadLinks(guarded))) {
    if (rank >= ranks()) continue;
    RankState& state = states[rank];
    if (state == RankState::kRunning || state == RankState::kSilent) state = RankState::kCutOff;
  }
  return states;
}

std::string ActiveRun::WhoIsNotAnswered() const {
  if (!is_under_launcher()) return "";
  const auto guarded = ReadGuards(GuardFolder(folder_.path(), phase_name(), attempt_));
  return DescribeDeadLinks(guarded, DeadLinks(guarded));
}

// What the spawn server does not reach: ranks on other machines, and what was done to this one.
void ActiveRun::EndElsewhere() {
  EndGuards(folder_.path());
  UndoLeft(folder_.path());
}

RankState ActiveRun::StateOfGuarded(int rank, const GuardedRank& guarded) const {
  if (guarded.state == "ended") {
    return guarded.code == 0 && guarded.signal == 0 ? RankState::kFinished : RankState::kDied;
  }
  const Event* lost = LastOfAttempt("node_lost", rank);
  const bool is_lost = lost != nullptr && lost->fields.value("beat", Json()) == Json(guarded.beat);
  if (is_lost) return RankState::kLost;
  return guarded.state == "stopped" ? RankState::kStopped : RankState::kRunning;
}

void ActiveRun::KillRanks(const std::string& why) {
  if (state_ == State::kKilling) return;
  state_ = State::kKilling;
  was_killed_ = true;
  PollTrace();
  if (is_under_launcher()) {
    EndElsewhere();
    SignalRanks(SIGTERM);
    kill_at_ = Clock::now() + kLauncherGrace;
  } else {
    SignalRanks(SIGKILL);
  }
  if (running_ > 0) WriteEvent("killed", {{"why", why}});
}

void ActiveRun::SignalRanks(int signal) {
  for (const auto& [spawn, rank] : rank_of_spawn_) {
    if (ranks_[rank].running) guard_->Send({{"kill", spawn}, {"signal", signal}});
  }
}

void ActiveRun::NoteLastCalls() {
  last_calls_ = DescribeLastCalls(folder_.path(), ranks());
  for (int rank = 0; rank < ranks(); ++rank) {
    const std::vector<LastCall> calls = ReadLastCalls(folder_.path(), rank);
    if (calls.empty()) continue;
    const LastCall& last = calls.back();
    WriteEvent("last_call", {{"rank", rank},
                             {"call", last.call},
                             {"op", last.op},
                             {"shape", last.shape},
                             {"dtype", last.dtype},
                             {"call_step", last.step},
                             {"began_s", last.began_s},
                             {"state", ToString(last.state)}});
  }
}

// What a rank's watcher wrote in this attempt; null: nothing.
const Event* ActiveRun::LastOfAttempt(const std::string& name, std::optional<int> rank) const {
  const std::vector<Event>& events = reader_->trace().events;
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    const Json& fields = event->fields;
    if (event->name != name || fields.contains("cpu_s")) continue;  // the launcher's own
    if (rank && event->rank != *rank) continue;
    if (fields.value("attempt", Json()) == Json(attempt_) &&
        fields.value("phase", Json()) == Json(phase_name())) {
      return &*event;
    }
  }
  return nullptr;
}

// A rank that dies of another's death does so in a collective that the other has not come to. Then:
// a signal comes from outside, an exit code may be a complaint. Then the order of the ends.
int ActiveRun::FirstOf(const std::vector<int>& dead) const {
  return *std::min_element(dead.begin(), dead.end(), [&](int a, int b) {
    if (CallsOf(a) != CallsOf(b)) return CallsOf(a) < CallsOf(b);
    return ranks_[a].signal != 0 && ranks_[b].signal == 0;
  });
}

std::size_t ActiveRun::CallsOf(int rank) const {
  const auto& collectives = reader_->trace().collectives;
  const auto found = collectives.find(rank);
  return found == collectives.end() ? 0 : found->second.size();
}

// A rank that ends by its own hand within a collective complains of another: its part has another
// size, or its connection is gone. If all ranks end by their own hands at the same call, they have
// found something together.
std::optional<int> ActiveRun::Culprit() const {
  if (const Event* failed = ForeignFailure()) return failed->rank;
  const auto ended_itself = [&](int rank) {
    return ranks_[rank].signal == 0 || ranks_[rank].signal == SIGABRT;
  };
  const auto is_in_call = [&](int rank) {
    const std::vector<LastCall> calls = ReadLastCalls(folder_.path(), rank);
    return !calls.empty() && calls.back().state != CallState::kEnded;
  };
  std::vector<int> suspects;
  for (const int rank : deaths_) {
    if (!ended_itself(rank) || !is_in_call(rank)) suspects.push_back(rank);
  }
  if (suspects.empty()) return std::nullopt;
  const bool all_together =
      ranks() > 1 && static_cast<int>(suspects.size()) == ranks() &&
      std::all_of(suspects.begin(), suspects.end(), [&](int rank) {
        return ended_itself(rank) && CallsOf(rank) == CallsOf(suspects.front());
      });
  if (all_together) return std::nullopt;
  return FirstOf(suspects);
}

// The rank that failed first under the command's own launcher, as its watcher found out.
const Event* ActiveRun::ForeignFailure() const {
  return rank_variable().empty() ? nullptr : LastOfAttempt("rank_failed", std::nullopt);
}

std::vector<std::string> ActiveRun::WordsLeftBehind() const {
  std::vector<std::string> all = {
      DescribeNcclLogs(folder_.path(), run_.ranks, folder_.plan(phase_name(), attempt_),
                       result_.detail),
      DescribeFlightRecorders(folder_.path(), run_.ranks), last_calls_};
  all.erase(std::remove(all.begin(), all.end(), ""), all.end());
  return all;
}

std::string ActiveRun::FirstDeath() const {
  if (deaths_.empty()) return "";
  if (const Event* failed = ForeignFailure()) return ForeignDeath(*failed);
  const int rank = FirstOf(deaths_);
  const std::string who = LauncherWasKilled() ? "the launcher" : fmt::format("rank {}", rank);
  std::string sentence =
      fmt::format("{} {} after step {}", who, DescribeExit(ranks_[rank].code, ranks_[rank].signal),
                  reader_->trace().last_step(rank));
  if (attempt_ > 0) sentence += fmt::format(" in attempt {}", attempt_);
  for (auto exit = result_.exits.rbegin(); exit != result_.exits.rend(); ++exit) {
    if (exit->rank != rank || exit->last_words.empty()) continue;
    sentence += ": " + exit->last_words;
    break;
  }
  return sentence;
}

std::string ActiveRun::ForeignDeath(const Event& failed) const {
  const RunTrace& trace = reader_->trace();
  auto number = [&](const char* key, int fallback) {
    const auto found = failed.fields.find(key);
    return found != failed.fields.end() && found->is_number_integer() ? found->get<int>()
                                                                      : fallback;
  };
  const int step = std::max(trace.last_step(failed.rank), trace.last_step(0));
  const int code = number("code", -1), signal = number("signal", 0);
  std::string sentence = fmt::format(
      "rank {} {} after step {}", failed.rank,
      code == -1 && signal == 0 ? "was lost with its node" : DescribeExit(code, signal), step);
  if (attempt_ > 0) sentence += fmt::format(" in attempt {}", attempt_);
  const auto words = failed.fields.find("last_words");
  if (words != failed.fields.end() && words->is_string() && !words->get<std::string>().empty()) {
    sentence += ": " + words->get<std::string>();
  }
  const Rank& launcher = ranks_.front();
  return sentence + fmt::format("; its launcher {}", DescribeExit(launcher.code, launcher.signal));
}

std::string ActiveRun::DiskSentence() const {
  return fmt::format(
      "wrote {} MiB, and a run may write {} MiB: 'disk' in the 'budget' of the target allows more",
      folder_.bytes() >> 20, options_.disk_bytes >> 20);
}

}  // namespace trainwreck
