#include "harness/slurm/follow.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <iostream>
#include <optional>
#include <ostream>
#include <set>
#include <utility>

#include "harness/process/interruption.h"
#include "harness/session/session.h"
#include "harness/text/clean_text.h"
#include "harness/text/files.h"
#include "harness/text/words.h"

namespace trainwreck {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr Seconds kLateFiles(60);  // a shared file system may keep old answers so long
constexpr int kSubmissions = 3;    // that may fail in a row once there was one

// Latency of a twentieth of what it waits for, which spares a controller of many users.
Seconds PauseAfter(Seconds unchanged) {
  return std::clamp(unchanged / 20, Seconds(1), Seconds(15));
}

void Pause(Seconds seconds) {
  pollfd entry = {InterruptionDescriptor(), POLLIN, 0};
  poll(&entry, 1,
       static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(seconds).count()));
  if (WasInterrupted()) throw Interrupted();
}

// It would end this process at once, without a word. nohup has it ignored.
void HandleHangup() {
  struct sigaction termination = {};
  struct sigaction hangup = {};
  sigaction(SIGTERM, nullptr, &termination);
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler == SIG_DFL) sigaction(SIGHUP, &termination, nullptr);
}

// The last line that says something.
std::string LastLine(const std::string& file) {
  std::string text = ReadFile(file).value_or("");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const std::size_t newline = text.rfind('\n');
  return CleanText(newline == std::string::npos ? text : text.substr(newline + 1));
}

std::string HintOn(const std::string& error) {
  if (error.find("job array") == std::string::npos) return "";
  return "; a task's number must be below the cluster's MaxArraySize, which 'scontrol show config' "
         "prints: take fewer --shards";
}

using TasksById = std::map<std::pair<std::int64_t, int>, SlurmTask>;

TasksById ById(const std::vector<SlurmTask>& tasks) {
  TasksById by_id;
  for (const SlurmTask& task : tasks) by_id[{task.job, task.index}] = task;
  return by_id;
}

class Follower {
 public:
  Follower(SlurmJob& job, const SlurmOrder& order, std::ostream& out)
      : job_(job), order_(order), out_(out), folder_(FolderOf(order.output, job)) {}

  SlurmResult Run() {
    PrepareForInterruption();
    HandleHangup();
    try {
      Look();
      while (!IsSettled()) {
        Pause(PauseAfter(Clock::now() - changed_));
        Look();
      }
    } catch (const Interrupted&) {
      result_.interrupted = true;
      if (InterruptingSignal() == SIGINT) {
        CancelAll();
      } else {
        LeaveAll();
      }
    }
    return std::move(result_);
  }

 private:
  struct Wanted {
    int shard;
    std::string end;  // of the submission before; empty: there was none
  };

  int count() const { return static_cast<int>(job_.shards.size()); }
  std::string NameOf(int shard) const {
    return std::to_string(shard) + "/" + std::to_string(count());
  }
  ShardRecord& RecordOf(int shard) { return job_.shards[static_cast<std::size_t>(shard - 1)]; }
  bool IsSettled() const { return static_cast<int>(settled_.size()) == count(); }

  void Say(const std::string& text) { out_ << "# slurm: " << text << "\n" << std::flush; }

  void Look() {
    const SlurmAnswer answer = AskQueue(job_);
    if (!answer.is_there) return SayThatSlurmIsSilent(answer.error);
    if (is_silent_) Say("it answers again");
    is_silent_ = false;
    Adopt(answer.tasks);
    std::vector<SlurmTask> active;
    std::vector<Wanted> wanted;
    const TasksById queued = ById(answer.tasks);
    std::optional<TasksById> accounts;
    for (int shard = 1; shard <= count(); ++shard) {
      if (settled_.contains(shard)) continue;
      if (RecordOf(shard).job == 0) {
        wanted.push_back({shard, ""});
        continue;
      }
      std::optional<SlurmTask> task = Find(queued, shard);
      if (!task) {
        if (!accounts) accounts = ById(AskAccounts(job_));
        task = Find(*accounts, shard);
      }
      if (!task) task = {.job = RecordOf(shard).job, .index = shard, .state = kForgotten};
      if (HasEnded(task->state)) {
        Settle(*task, wanted);
      } else {
        active.push_back(*task);
      }
    }
    if (!wanted.empty()) return SubmitAll(wanted);  // the next look sees what became of it
    SaySummary(active);
  }

  void SayThatSlurmIsSilent(const std::string& error) {
    if (!job_.WasSubmitted()) throw ConfigurationError("Slurm does not answer: " + error);
    if (!is_silent_) {
      std::cerr << "trainwreck: Slurm does not answer (" << error << "); waiting for it\n";
    }
    is_silent_ = true;
  }

  std::optional<SlurmTask> Find(const TasksById& tasks, int shard) {
    const auto found = tasks.find({RecordOf(shard).job, shard});
    return found == tasks.end() ? std::nullopt : std::optional(found->second);
  }

  // Submissions that no record was written of.
  void Adopt(const std::vector<SlurmTask>& tasks) {
    bool is_changed = false;
    for (const SlurmTask& task : tasks) {
      if (task.index < 1 || task.index > count()) continue;
      std::int64_t& known = RecordOf(task.index).job;
      if (task.job <= known) continue;
      known = task.job;
      is_changed = true;
    }
    if (is_changed) StoreSlurmJob(order_.output, job_);
  }

  // A shard whose last submission has ended: it has its verdicts, is wanted again, or is lost.
  void Settle(const SlurmTask& task, std::vector<Wanted>& wanted) {
    const int shard = task.index;
    const std::vector<std::string> attempts = AttemptsOf(folder_, shard);
    for (const std::string& attempt : attempts) {
      if (!order_.is_whole(attempt)) continue;
      result_.folders[shard] = attempt;
      settled_.insert(shard);
      return;
    }
    const bool has_ended_itself = task.state == "COMPLETED" || task.state == "FAILED";
    if (has_ended_itself && WritesVerdicts(task.exit_status)) {
      const auto [first, is_new] = late_since_.emplace(shard, Clock::now());
      if (Clock::now() - first->second < kLateFiles) return;
    }
    std::string end = task.state;
    if (!task.nodes.empty()) end += " on " + task.nodes;
    if (IsSubmittedAgain(task.state, RecordOf(shard).ends)) {
      Say("shard " + NameOf(shard) + " ended with " + end + ": submitting it again");
      wanted.push_back({shard, task.state});
      return;
    }
    if (has_ended_itself) end += ", exit status " + std::to_string(task.exit_status);
    if (!RecordOf(shard).ends.empty()) end += ", after " + Join(RecordOf(shard).ends);
    if (!attempts.empty()) result_.folders[shard] = attempts.back();
    Lose(shard, end);
  }

  void Lose(int shard, const std::string& why) {
    result_.lost[shard] = why;
    settled_.insert(shard);
    const std::string log = folder_ + "/" + std::to_string(shard) + ".log";
    const std::string last_line = LastLine(log);
    std::cerr << "trainwreck: shard " << NameOf(shard) << " has not come: " << why
              << (last_line.empty() ? "" : "; its last words: " + last_line) << "\n"
              << "trainwreck: its log: " << log << "\n";
  }

  void SubmitAll(std::vector<Wanted> wanted) {
    std::vector<int> shards;
    for (const Wanted& one : wanted) shards.push_back(one.shard);
    shards = FirstThatFit(std::move(shards));
    wanted.resize(shards.size());  // the next look finds the others again
    const Submission submission = Submit(job_, shards, order_.options, folder_);
    if (submission.job == 0) return AnswerRefusal(wanted, submission.error);
    failures_ = 0;
    if (!submission.error.empty()) std::cerr << submission.error << "\n";  // a warning
    for (const Wanted& one : wanted) {
      RecordOf(one.shard).job = submission.job;
      if (!one.end.empty()) RecordOf(one.shard).ends.push_back(one.end);
    }
    StoreSlurmJob(order_.output, job_);
    Say("job " + std::to_string(submission.job) + ": " +
        (shards.size() == 1 ? "shard " : "shards ") + ArrayText(shards) + " of " +
        std::to_string(count()));
    changed_ = Clock::now();
  }

  // The answer may have got lost on its way back; then the next look finds the job.
  void AnswerRefusal(const std::vector<Wanted>& wanted, const std::string& error) {
    if (!job_.WasSubmitted()) {
      const SlurmAnswer answer = AskQueue(job_);
      Adopt(answer.tasks);
      if (!job_.WasSubmitted())
        throw ConfigurationError("Slurm does not take the job: " + error + HintOn(error));
      return;
    }
    if (++failures_ < kSubmissions) return;
    for (const Wanted& one : wanted) Lose(one.shard, "it could not be submitted again: " + error);
  }

  void SaySummary(const std::vector<SlurmTask>& active) {
    const std::string waiting = Summary(active);
    std::string text =
        std::to_string(result_.folders.size()) + " of " + std::to_string(count()) + " shards done";
    if (!waiting.empty()) text += ", " + waiting;
    if (text == summary_) return;
    summary_ = text;
    changed_ = Clock::now();
    Say(text);
  }

  void LeaveAll() {
    const char* const signal = InterruptingSignal() == SIGHUP ? "SIGHUP" : "SIGTERM";
    const char* const state = job_.WasSubmitted() ? "the job goes on" : "nothing is submitted yet";
    Say(std::string("ended by ") + signal + ", and " + state + "; the same command with --output " +
        order_.output + " follows it, 'scancel --name=" + job_.name + "' ends it");
  }

  void CancelAll() {
    const std::string error = Cancel(job_);
    if (!error.empty()) {
      std::cerr << "trainwreck: the job could not be cancelled: " << error
                << "; later, 'scancel --name=" << job_.name << "' does it\n";
      return;
    }
    job_.is_over = true;
    StoreSlurmJob(order_.output, job_);
    Say("cancelled; " + std::to_string(result_.folders.size()) + " of " + std::to_string(count()) +
        " shards were done, their reports are below " + folder_);
  }

  SlurmJob& job_;
  const SlurmOrder& order_;
  std::ostream& out_;
  const std::string folder_;
  SlurmResult result_;
  std::set<int> settled_;
  std::map<int, Clock::time_point> late_since_;  // shards that ended, with no verdicts to be seen
  Clock::time_point changed_ = Clock::now();
  std::string summary_;
  bool is_silent_ = false;
  int failures_ = 0;
};

}  // namespace

SlurmResult FollowSlurmJob(SlurmJob& job, const SlurmOrder& order, std::ostream& out) {
  return Follower(job, order, out).Run();
}

}  // namespace trainwreck
