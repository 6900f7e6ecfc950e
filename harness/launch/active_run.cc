#include "harness/launch/active_run.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "harness/launch/last_calls.h"
#include "harness/launch/steps_done.h"
#include "harness/process/free_port.h"
#include "harness/text/files.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

using std::chrono::milliseconds;

constexpr auto kPollEvery = milliseconds(50);
constexpr auto kDiskEvery = milliseconds(250);
constexpr auto kAskEvery = milliseconds(100);
constexpr auto kRestartAfter = milliseconds(100);  // after a death, to see whose it was in truth
constexpr int kGraceMs = 200;                      // for helpers that end when their rank has
constexpr std::size_t kNamedLeaks = 8;

double SecondsOf(ActiveRun::Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// To what the ranks say of themselves, which goes into verdicts.
void AddFingerprint(const std::map<std::string, std::string>& fingerprint, RunTrace& trace) {
  for (auto& [rank, start] : trace.starts) {
    if (!start.is_object()) continue;
    Json& environment = start["environment"];
    if (environment.is_null()) environment = Json::object();
    if (!environment.is_object()) continue;
    for (const auto& [name, version] : fingerprint) environment[name] = version;
  }
}

}  // namespace

ActiveRun::ActiveRun(const Run& run, const LauncherOptions& options,
                     const LauncherCallbacks& callbacks, SharedPhases& shared)
    : run_(run), options_(options), callbacks_(callbacks), shared_(shared), begin_(Clock::now()) {
  result_.folder = options.output_dir + "/" + run.id;
  pace_ = Pace(run.policy, options.target.limits, run.steps,
               run.device == "cuda" ? GpuStartSeconds(options.target.device_limits.runs) : 0);
  restarts_ = Restarts(run.policy);
}

double ActiveRun::Seconds(Clock::time_point now) const { return SecondsOf(now - begin_); }

std::string ActiveRun::phase_name() const {
  return run_.phases.empty() ? run_.plan.phase : run_.phases[phase_].name;
}

void ActiveRun::Start(std::unique_ptr<SpawnConnection> guard) {
  begin_ = Clock::now();
  guard_ = std::move(guard);
  try {
    folder_ = RunFolder(result_.folder);
    for (const std::string& file : run_.checkpoint_files) {
      std::filesystem::copy(file, folder_.checkpoints());
    }
    const std::string maker = shared_.CopyInto(run_, folder_.path());
    log_ = std::make_unique<TraceWriter>(folder_.path() + "/launcher.jsonl");
    TraceLimits limits;
    limits.file_bytes = options_.disk_bytes + 1;
    if (options_.room_of) limits.room = options_.room_of(run_);
    reader_ = std::make_unique<TraceReader>(folder_.path(), run_.ranks, run_.steps, limits);
    for (const AppliedAmendment& amendment : run_.amendments) {
      WriteEvent("fired", {{"id", amendment.fault_id},
                           {"fault", amendment.fault},
                           {"key", amendment.key},
                           {"before", amendment.before},
                           {"after", amendment.after}});
    }
    if (!maker.empty()) SkipFirstPhase(maker);
    BeginAttempt();
  } catch (const std::exception& error) {
    EndWith(RunEnd::kInfrastructure, error.what());
  }
}

void ActiveRun::BeginAttempt() {
  state_ = State::kRunning;
  next_ = Next::kFinish;
  was_killed_ = false;
  has_begun_ = false;
  ranks_.clear();
  rank_of_spawn_.clear();
  deaths_.clear();
  restart_at_ = Clock::time_point::max();
  attempt_memory_bytes_ = 0;
  const std::string phase = phase_name();
  Plan plan = phase_ == 0 ? FirstPlan(run_) : run_.plan;
  plan.run = run_.id;
  plan.phase = phase;
  plan.attempt = attempt_;
  if (!run_.phases.empty()) plan.until = run_.phases[phase_].until;
  if (phase_ > 0) {
    for (const auto& [key, value] : run_.later_changes) plan.recipe[key] = value;
  }
  plan.resume = run_.plan.resume || phase_ > 0 || attempt_ > 0;
  plan.checkpoint_dir = folder_.checkpoints();
  plan.rendezvous = folder_.rendezvous(phase, attempt_);
  port_ = options_.target.sets_ranks ? FreePort() : 0;
  WritePlan(plan);
  for (int rank = 0; rank < run_.ranks; ++rank) {  // of the start before, which others may not make
    unlink(CallsPath(folder_.path(), rank).c_str());
  }
  if (attempt_ + phase_ > 0)
    first_step_ = FirstStepWatch(folder_.path(), ranks(), BeginsWithACall());

  RunTrace& trace = reader_->mutable_trace();  // what it says of the current attempt alone
  trace.collectives.clear();
  trace.end_why.clear();
  trace.starts.clear();
  comparer_.Restart();
  ranks_.assign(processes(), Rank());
  for (int rank = 0; rank < processes(); ++rank) {
    ranks_[rank].stderr_begin = attempt_ + phase_ > 0 ? FileSize(folder_.stderr_of(rank)) : 0;
    SpawnRequest request = RequestOf(rank);
    request.id = next_spawn_++;
    rank_of_spawn_[request.id] = rank;
    ranks_[rank].running = true;
    ++running_;
    guard_->Send(ToJson(request));  // a guard that is gone shows at the next read
  }
  last_progress_ = Clock::now();
  pace_.BeginAttempt(Seconds(last_progress_));
  core_use_.Begin();
  next_poll_ = last_progress_ + kPollEvery;
  next_disk_check_ = last_progress_ + kDiskEvery;
  next_question_ = last_progress_ + kAskEvery;
}

// With what the ranks are started with, which nobody has to read.
void ActiveRun::WritePlan(const Plan& plan) const {
  Json json = ToJson(plan);
  const SpawnRequest request = RequestOf(0);
  json["started"] = {{"command", options_.target.command},
                     {"folder", options_.target.folder},
                     {"environment_of_rank_0", request.environment}};
  if (!options_.target.fingerprint.empty()) json["fingerprint"] = options_.target.fingerprint;
  WriteFile(folder_.plan(phase_name(), attempt_),
            json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void ActiveRun::OnReadable() {
  std::vector<Json> messages;
  const bool open = guard_->Receive(messages);
  try {
    for (const Json& message : messages) {
      if (message.is_object()) Handle(message);
      if (done()) return;
    }
  } catch (const std::exception& error) {
    EndWith(RunEnd::kInfrastructure, error.what());
  }
  if (!open && !done()) {
    state_ = State::kRunning;
    running_ = 0;
    has_end_ = false;
    EndWith(RunEnd::kInfrastructure, "the process that guards this run ended unexpectedly");
    if (!done()) Finish();
  }
}

void ActiveRun::Handle(const Json& message) {
  if (message.contains("spawned")) {
    const auto found = rank_of_spawn_.find(message["spawned"].get<int>());
    if (found == rank_of_spawn_.end()) return;
    Rank& rank = ranks_[found->second];
    if (message.contains("error")) {
      rank.running = false;
      --running_;
      EndWith(RunEnd::kInfrastructure,
              fmt::format("rank {} could not be started: {}", found->second,
                          message["error"].get<std::string>()));
      if (running_ == 0 && state_ != State::kReaping) OnAllExited();
      return;
    }
    rank.pid = message["pid"].get<int>();
    WriteEvent("spawned", {{"rank", found->second},
                           {"pid", rank.pid},
                           {"attempt", attempt_},
                           {"phase", phase_name()}});
  } else if (message.contains("exited")) {
    OnExit(message);
  } else if (message.contains("orphan")) {
    const int pid = message["orphan"].get<int>();
    const std::string command = message.value("command", "");
    // Helpers that lost their rank by our hand, and ranks that lost their launcher.
    if (was_killed_ || LauncherWasKilled()) return;
    WriteEvent("leaked", {{"pid", pid}, {"command", command}});
    if (leaks_.size() < kNamedLeaks) leaks_.push_back(fmt::format("{} (pid {})", command, pid));
  } else if (message.contains("reaped")) {
    OnReaped();
  }
}

void ActiveRun::OnExit(const Json& message) {
  const auto found = rank_of_spawn_.find(message["exited"].get<int>());
  if (found == rank_of_spawn_.end()) return;
  const int index = found->second;
  Rank& rank = ranks_[index];
  rank.running = false;
  rank.code = message["code"].get<int>();
  rank.signal = message["signal"].get<int>();
  --running_;
  PollTrace();
  last_progress_ = Clock::now();
  pace_.Touch(Seconds(last_progress_));
  const std::int64_t memory_bytes = message.value("peak_memory_bytes", std::int64_t{0});
  attempt_memory_bytes_ += memory_bytes;
  result_.peak_memory_bytes = std::max(result_.peak_memory_bytes, attempt_memory_bytes_);
  result_.cpu_seconds += message.value("cpu_seconds", 0.0);
  RankExit exit;
  exit.rank = index;
  exit.attempt = attempt_;
  exit.phase = phase_name();
  exit.code = rank.code;
  exit.signal = rank.signal;
  exit.stderr_begin = rank.stderr_begin;
  exit.last_words = LastWords(folder_.stderr_of(index), exit.stderr_begin);
  // An end by our own hand is none of the target's: nothing may be claimed of it.
  const bool ended_well = rank.code == 0 && rank.signal == 0;
  const bool by_us =
      was_killed_ && (rank.signal == SIGKILL || (is_under_launcher() && !ended_well));
  WriteEvent(by_us ? "put_down" : "exited", {{"rank", index},
                                             {"code", exit.code},
                                             {"signal", exit.signal},
                                             {"attempt", exit.attempt},
                                             {"phase", exit.phase},
                                             {"last_words", exit.last_words},
                                             {"peak_memory_bytes", memory_bytes},
                                             {"cpu_s", message.value("cpu_seconds", 0.0)}});
  result_.exits.push_back(std::move(exit));
  if (rank.Died() && !was_killed_) {
    deaths_.push_back(index);
    if (rank.signal == SIGXFSZ) {
      EndWith(RunEnd::kDiskBudget, DiskSentence());
    } else if (MayRestart() && state_ == State::kRunning) {
      // The peer that complains of a lost connection may be gone before the rank that broke it.
      restart_at_ = std::min(restart_at_, Clock::now() + kRestartAfter);
      next_poll_ = std::min(next_poll_, restart_at_);
    }
  }
  if (running_ == 0 && state_ != State::kReaping) OnNoneRuns();
}

void ActiveRun::OnAllExited() {
  while (!has_end_ && PollTrace()) {  // a poll reads so much at most
  }
  CheckTrace();
  if (restart_at_ != Clock::time_point::max() && !has_end_) RestartAfterDeath();
  state_ = State::kReaping;
  // After a clean end helpers get a moment to notice; after a kill there is nothing to wait for.
  guard_->Send({{"reap", true}, {"grace_ms", was_killed_ ? 0 : kGraceMs}});
  if (has_end_ || next_ == Next::kRestart) return;
  if (!deaths_.empty()) {
    result_.end = RunEnd::kFailed;
    result_.detail = FirstDeath();
    if (folder_.DiskIsFull()) {
      result_.end = RunEnd::kInfrastructure;
      result_.detail = "the disk is full; " + result_.detail;
    } else if (folder_.bytes() >= options_.disk_bytes) {  // it may have come to the limit of a file
      result_.end = RunEnd::kDiskBudget;
      result_.detail = DiskSentence() + "; " + result_.detail;
    }
    has_end_ = true;
    return;
  }
  const RunTrace& trace = reader_->trace();
  for (int rank = 0; rank < processes(); ++rank) {
    if (trace.end_why.contains(rank)) continue;
    const bool wrote = trace.starts.contains(rank) || trace.last_step(rank) >= 0;
    EndWith(RunEnd::kGarbage,
            wrote ? fmt::format("rank {} exited with code 0 without an `end` record", rank)
                  : fmt::format("rank {} exited with code 0 and wrote nothing", rank));
    return;
  }
  if (phase_ + 1 < run_.phases.size()) {
    next_ = Next::kPhase;
  } else {
    result_.end = RunEnd::kCompleted;
    has_end_ = true;
    NoticeEarlyEnd();
  }
}

// A program may exit with 0 in the middle of its run.
void ActiveRun::NoticeEarlyEnd() {
  const std::optional<StepsDone> done = CountStepsDone(reader_->trace());
  if (!done || done->steps >= run_.steps) return;
  WriteEvent("ended_early",
             {{"rank", done->rank}, {"steps_done", done->steps}, {"steps_planned", run_.steps}});
}

void ActiveRun::OnReaped() {
  EndElsewhere();
  const bool has_failed =
      has_end_ && (result_.end == RunEnd::kFailed || result_.end == RunEnd::kStalled);
  if (has_failed || next_ == Next::kRestart) NoteLastCalls();
  if (has_end_) return Finish();
  while (PollTrace()) {
  }
  reader_->CutTornTails();
  if (next_ == Next::kPhase) {
    if (phase_ == 0 && attempt_ == 0) shared_.Keep(run_, folder_.path());
    ++phase_;
    attempt_ = 0;
    return BeginAttempt();
  }
  const Clock::time_point now = Clock::now();
  const double wait_s = restarts_.WaitAt(Seconds(now));
  restart_cause_["waited_s"] = wait_s;
  if (wait_s <= 0) return BeginRestart();
  state_ = State::kBackingOff;
  pace_.BeginAttempt(Seconds(now));  // waiting is no work
  backoff_end_ =
      now + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(wait_s));
}

// Nothing runs, but a hard budget of seconds goes on.
void ActiveRun::BackOff(Clock::time_point now) {
  if (pace_.Check(Seconds(now), /*is_any_dead=*/false) == Overrun::kBudget) {
    EndOverBudget(Seconds(now));
  } else if (now >= backoff_end_) {
    BeginRestart();
  }
}

void ActiveRun::BeginRestart() {
  ++attempt_;
  restarts_.Note(Seconds(Clock::now()));
  result_.restarts = restarts_.made();
  Json fields = std::move(restart_cause_);
  fields["attempt"] = attempt_;
  const int from_step = StepsSaved();
  fields["from_step"] = from_step;
  fields["lost_steps"] = std::max(0, reader_->trace().last_step(0) + 1 - from_step);
  WriteEvent("restarted", std::move(fields));
  BeginAttempt();
}

int ActiveRun::StepsSaved() const {
  int steps_saved = 0;
  for (const Event& event : reader_->trace().events) {
    if (event.name != "checkpoint_saved") continue;
    const auto steps = event.fields.find("steps_done");
    if (steps != event.fields.end() && steps->is_number()) {
      steps_saved = std::max(steps_saved, static_cast<int>(steps->get<double>()));
    }
  }
  return steps_saved;
}

void ActiveRun::RestartAfterDeath() {
  if (WasRefused()) return EndWith(RunEnd::kFailed, FirstDeath());
  Restart(FirstDeath(), Culprit());
}

void ActiveRun::Restart(const std::string& why, std::optional<int> culprit) {
  next_ = Next::kRestart;
  restart_at_ = Clock::time_point::max();
  restart_cause_ = {{"why", why}};
  if (culprit) restart_cause_["dead_rank"] = *culprit;
  KillRanks(why);
}

void ActiveRun::EndWith(RunEnd end, const std::string& detail) {
  if (!has_end_) {
    has_end_ = true;
    result_.end = end;
    result_.detail = detail;
  }
  if (state_ == State::kDone || state_ == State::kReaping) return;
  if (running_ > 0) {
    KillRanks(detail);
  } else if (ranks_.empty() || state_ == State::kBackingOff) {
    Finish();  // it has no process
  }
}

void ActiveRun::Finish() {
  if (state_ != State::kReaping) guard_.reset();  // it may have descendants
  state_ = State::kDone;
  result_.disk_bytes = folder_.bytes();
  if (result_.end == RunEnd::kDiskBudget) folder_.TruncateLargeFiles();
  bool is_over_room = false;
  if (reader_) {
    reader_->Poll(/*last=*/true);
    result_.problems = reader_->problems();
    result_.trace = std::move(reader_->mutable_trace());
    is_over_room = reader_->is_over_room();
    reader_.reset();
    AddFingerprint(options_.target.fingerprint, result_.trace);
  }
  log_.reset();
  const bool ended_by_itself = result_.end == RunEnd::kCompleted || result_.end == RunEnd::kFailed;
  if (is_over_room ||
      (!result_.problems.empty() && (ended_by_itself || result_.end == RunEnd::kDecided))) {
    result_.end = RunEnd::kGarbage;
    result_.detail = Join(result_.problems, "; ");
  }
  if (result_.end == RunEnd::kFailed || result_.end == RunEnd::kStalled) {
    for (const std::string& words : WordsLeftBehind()) result_.detail += "; " + words;
  }
  if (!leaks_.empty()) {
    const std::string what = "left processes behind, which were killed: " + Join(leaks_, "; ");
    if (ended_by_itself) result_.end = RunEnd::kLeak;
    result_.detail = result_.detail.empty() ? what : result_.detail + "; " + what;
  }
  result_.wall_seconds = Seconds(Clock::now());
}

// On a GPU the first step loads libraries and kernels, behind the first collective, and belongs to
// the start.
bool ActiveRun::BeginsWithACall() const { return run_.device != "cuda"; }

bool ActiveRun::PollTrace() {
  if (!reader_ || !reader_->Poll()) return false;
  last_progress_ = Clock::now();
  asked_once_ = false;
  const RunTrace& trace = reader_->trace();
  if (!has_begun_) {
    // A rank that has only started has an entry without a call.
    const bool any_call = std::any_of(trace.collectives.begin(), trace.collectives.end(),
                                      [](const auto& calls) { return !calls.second.empty(); });
    has_begun_ = attempt_ + phase_ == 0 ? (any_call && BeginsWithACall()) || trace.last_step(0) >= 0
                                        : first_step_.Seen();
  }
  pace_.Progress(Seconds(last_progress_), has_begun_, trace.last_step(0) + 1);
  if (auto mismatch = comparer_.Next(trace))
    WriteEvent("collective_mismatch", std::move(*mismatch));
  return true;
}

void ActiveRun::CheckTrace() {
  if (!reader_->problems().empty()) EndWith(RunEnd::kGarbage, Join(reader_->problems(), "; "));
}

void ActiveRun::Tick(Clock::time_point now) {
  if (state_ == State::kKilling && now >= kill_at_) {
    kill_at_ = Clock::time_point::max();
    SignalRanks(SIGKILL);
  }
  const bool is_backing_off = state_ == State::kBackingOff;
  if ((state_ != State::kRunning && !is_backing_off) || now < next_poll_) return;
  try {
    next_poll_ = now + kPollEvery;
    if (is_backing_off) return BackOff(now);
    if (running_ == 0) return OnNoneRuns();
    PollTrace();
    CheckTrace();
    if (state_ == State::kRunning && now >= restart_at_) RestartAfterDeath();
    if (state_ == State::kRunning && now >= next_disk_check_) CheckDisk();
    if (state_ == State::kRunning) MeasureCoreUse(Seconds(now));
    if (state_ == State::kRunning) CheckPace(now);
    if (state_ == State::kRunning && callbacks_.is_decided && !asked_once_ &&
        now >= next_question_) {
      next_question_ = now + kAskEvery;
      asked_once_ = true;
      if (callbacks_.is_decided(run_, reader_->trace())) EndWith(RunEnd::kDecided, "all was known");
    }
  } catch (const std::exception& error) {
    EndWith(RunEnd::kInfrastructure, error.what());
  }
}

void ActiveRun::CheckDisk() {
  next_disk_check_ = Clock::now() + kDiskEvery;
  if (folder_.bytes() > options_.disk_bytes) EndWith(RunEnd::kDiskBudget, DiskSentence());
}

void ActiveRun::WriteEvent(const std::string& name, Json fields) {
  if (log_failed_) return;
  RequireDescribed(name, fields, LauncherEvents());
  fields["t"] = "event";
  fields["event"] = name;
  fields["time"] = Seconds(Clock::now());
  fields["step"] = reader_ ? reader_->trace().last_step(0) : -1;
  try {
    log_->Write(fields);
  } catch (const std::exception& error) {
    log_failed_ = true;
    EndWith(RunEnd::kInfrastructure, error.what());
  }
}

}  // namespace trainwreck
