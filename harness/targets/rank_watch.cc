#include "harness/targets/rank_watch.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "harness/protocol/rank_files.h"
#include "harness/text/files.h"

namespace trainwreck {
namespace {

constexpr auto kSearchEvery = std::chrono::milliseconds(200);  // it reads all of /proc
// A rank that is being killed may end after one that lost it. Launchers give the others a second or
// more before they kill them.
constexpr auto kOneMoment = std::chrono::milliseconds(300);

// As a guard tells it.
ProcessEnd EndOf(int code, int signal) { return {'Z', signal != 0 ? signal : code << 8}; }

}  // namespace

void RankWatch::FindNew() {
  const auto now = Clock::now();
  if (static_cast<int>(alive_.size()) >= ranks_ || now < next_search_) return;
  for (const auto& [rank, process] :
       FindRankProcesses(run_folder_, RankVariable(kind_), getpid())) {
    if (rank >= ranks_ || !alive_.emplace(rank, Seen{process.pid, false}).second) continue;
    if (found_.insert(rank).second) continue;
    NoteRestart();
  }
  next_search_ = Clock::now() + kSearchEvery;
}

// The launcher has started its ranks again.
void RankWatch::NoteRestart() {
  first_.reset();
  is_first_sure_ = false;
  was_restarted_ = true;
}

void RankWatch::NoteStopped(int rank, Seen& seen, bool is_stopped) {
  if (is_stopped && !seen.is_stopped) write_("stopped", {{"rank", rank}, {"pid", seen.pid}});
  seen.is_stopped = is_stopped;
}

// The ranks of this machine. Returns those that have failed since the last look.
std::vector<RankFailure> RankWatch::LookHere() {
  FindNew();
  std::vector<int> gone;
  std::vector<RankFailure> failed;
  for (auto& [rank, seen] : alive_) {
    const auto end = ReadProcessEnd(seen.pid);
    if (!end || end->state == 'Z' || end->state == 'X') {
      if (auto failure = TellEnd(rank, seen.pid, end ? &*end : nullptr)) {
        failed.push_back(std::move(*failure));
      }
      gone.push_back(rank);
      continue;
    }
    NoteStopped(rank, seen, end->state == 'T');
  }
  for (const int rank : gone) alive_.erase(rank);
  return failed;
}

// Where guards start the ranks, they alone are asked: what is on this machine is a guard.
std::vector<RankFailure> RankWatch::LookAtGuards() {
  std::vector<RankFailure> failed;
  for (const auto& [rank, guarded] : guards_.ranks()) {
    if (rank >= ranks_) continue;
    TellLivesBefore(rank, guarded);
    if (told_.contains(rank)) continue;
    found_.insert(rank);
    if (guarded.state == "ended") {
      const ProcessEnd end = EndOf(guarded.code, guarded.signal);
      if (auto failure = TellEnd(rank, guarded.pid, &end)) failed.push_back(std::move(*failure));
      alive_.erase(rank);
      continue;
    }
    Seen& seen = alive_[rank];
    seen.pid = guarded.pid;
    NoteStopped(rank, seen, guarded.state == "stopped");
    const bool is_lost = guards_.IsLost(rank);
    if (is_lost && !seen.is_lost)
      write_("node_lost", {{"rank", rank}, {"host", guarded.host}, {"beat", guarded.beat}});
    seen.is_lost = is_lost;
  }
  return failed;
}

// Those after which the launcher started the rank again.
void RankWatch::TellLivesBefore(int rank, const GuardedRank& guarded) {
  std::size_t& lives = lives_before_[rank];
  for (; lives < guarded.before.size(); ++lives) {
    const EndedLife& life = guarded.before[lives];
    const ProcessEnd end = EndOf(life.code, life.signal);
    if (!told_.contains(rank)) TellEnd(rank, life.pid, &end);
    told_.erase(rank);
    alive_.erase(rank);
    NoteRestart();
  }
}

void RankWatch::Look() {
  const std::set<int> missed_before = missed_;
  const std::vector<RankFailure> failed = guards_.ranks().empty() ? LookHere() : LookAtGuards();
  const auto now = Clock::now();
  if (failed.empty() || (first_ && now - first_seen_ > kOneMoment)) return;
  if (!first_) {
    first_seen_ = now;
    missed_before_first_ = missed_before;
    at_first_.clear();
  }
  at_first_.insert(at_first_.end(), failed.begin(), failed.end());
  const FirstFailure first = FirstOf(at_first_);
  if (first_ && first_->rank == first.failure.rank) return;  // as sure as it was
  first_ = first.failure;
  is_first_sure_ = first.is_sure && missed_before_first_.empty() && !was_restarted_ &&
                   static_cast<int>(found_.size()) == ranks_;
  missed_with_first_ = missed_;
}

// Whether what was seen first came before, or at the same moment as, what the launcher reports.
bool RankWatch::KnowsBetter(const RankFailure& reported) const {
  if (!is_first_sure_ || reported.rank == first_->rank) return false;
  const std::set<int> reported_alone = {reported.rank};
  if (!missed_with_first_.empty() && missed_with_first_ != reported_alone) return false;
  return FirstOf({*first_, reported}).failure.rank == first_->rank;
}

// The first rank of a node that the launcher has given up. Guards say where the ranks are.
std::optional<RankFailure> RankWatch::LostWithNode(const std::string& words) const {
  const std::string node = FailedNode(kind_, words);
  for (const auto& [rank, guarded] : guards_.ranks()) {
    if (rank >= ranks_ || node.empty() || guarded.host != node || guarded.state == "ended")
      continue;
    return RankFailure{rank, -1, 0, guarded.pid, "Node failure on " + node};
  }
  return std::nullopt;
}

// Without `end` it was waited for between two looks: how it ended is the launcher's to say.
std::optional<RankFailure> RankWatch::TellEnd(int rank, int pid, const ProcessEnd* end) {
  std::optional<RankFailure> failure;
  Json fields = {{"rank", rank}, {"pid", pid}};
  if (end != nullptr) {
    const int status = end->status;
    const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    fields["code"] = code;
    fields["signal"] = signal;
    told_.insert(rank);
    if (signal != 0 || code != 0) failure = RankFailure{rank, code, signal, pid, ""};
  } else {
    missed_.insert(rank);
  }
  write_("exited", std::move(fields));
  return failure;
}

// Where a guard kept what the rank wrote, that alone; else what all of them did.
std::string RankWatch::OutputOf(const RankFailure& failure, const std::string& words) const {
  if (!guards_.ranks().contains(failure.rank)) return words;
  return ReadTail(OutputFile(guards_.folder(), failure.rank, STDERR_FILENO), 0, kReportBytes);
}

void RankWatch::Finish(int status, const std::string& words) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  std::optional<RankFailure> failure = ReadLauncherReport(kind_, words);
  const char* by = "report";
  // torchrun looks at its workers ten times a second, and names the lowest of those that it found
  // dead at one time. But a rank that is being killed may end after one that lost it.
  if (auto lost = LostWithNode(words)) {
    failure = std::move(lost);
  } else if (!failure || KnowsBetter(*failure)) {
    failure = first_;
    by = "seen";
  }
  if (!failure) return;
  // It was waited for between two looks, or lived between two searches.
  if (!told_.contains(failure->rank) && !failure->IsLost()) {
    write_("exited", {{"rank", failure->rank},
                      {"pid", failure->pid},
                      {"code", failure->code},
                      {"signal", failure->signal}});
  }
  if (failure->words.empty()) failure->words = WordsOfRank(OutputOf(*failure, words), *failure);
  write_("rank_failed", {{"rank", failure->rank},
                         {"code", failure->code},
                         {"signal", failure->signal},
                         {"pid", failure->pid},
                         {"last_words", failure->words},
                         {"by", by}});
}

}  // namespace trainwreck
