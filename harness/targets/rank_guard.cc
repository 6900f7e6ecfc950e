#include "harness/targets/rank_guard.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <utility>

#include "harness/outcome/exit_status.h"
#include "harness/process/peer_links.h"
#include "harness/process/rank_guards.h"
#include "harness/process/rank_processes.h"
#include "harness/process/spawn_client.h"
#include "harness/protocol/parse_json.h"
#include "harness/protocol/plan.h"
#include "harness/protocol/rank_files.h"
#include "harness/targets/environment_variable.h"
#include "harness/targets/output_tee.h"
#include "harness/targets/target_spec.h"
#include "harness/text/files.h"

namespace trainwreck {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPollMs = 100;
constexpr int kReadyMs = 10'000;
constexpr int kRestMs = 5'000;  // for a launcher to read the last words of its rank
// Of the patience. By then a guard whose calls return has seen itself that it is alone.
constexpr double kWatchAfter = 1.2;
constexpr int kWatchLooks = 10;  // which let the loop go first on a machine that was stopped
constexpr std::chrono::seconds kCommandTakes{30};  // at most, with its probes
constexpr const char* kPatienceVariable = "TRAINWRECK_GUARD_PATIENCE";
constexpr int kPassedOn[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};

struct RankOfLauncher {
  int rank = 0;
  int ranks = 1;
};

// torchrun goes first: it may itself be a task of the others. Those of MPICH may be started by
// Slurm.
constexpr std::pair<const char*, const char*> kRankAndRanks[] = {
    {"RANK", "WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},
    {"SLURM_PROCID", "SLURM_NTASKS"}};

std::optional<RankOfLauncher> RankOfEnvironment() {
  for (const auto& [rank, ranks] : kRankAndRanks) {
    const std::string text = Variable(rank);
    if (!text.empty())
      return RankOfLauncher{std::atoi(text.c_str()),
                            std::max(1, std::atoi(Variable(ranks).c_str()))};
  }
  return std::nullopt;
}

// It may be seen late, and in parts.
Plan AwaitPlan(const std::string& path) {
  const auto give_up = Clock::now() + std::chrono::milliseconds(kReadyMs);
  for (;; poll(nullptr, 0, kPollMs)) {
    try {
      std::ifstream file(path);
      if (!file) throw std::runtime_error("cannot read the plan " + path);
      return PlanFromJson(ParseJson(file));
    } catch (const std::exception&) {
      if (Clock::now() >= give_up) throw;
    }
  }
}

std::string StateOf(int pid) {
  const auto process = ReadProcessEnd(pid);
  if (!process || process->state == 'Z' || process->state == 'X') return "ended";
  return process->state == 'T' ? "stopped" : "running";
}

// What the server left when it was killed; it comes to this process, its subreaper, one by one.
void KillAllBelow() {
  const auto give_up = Clock::now() + std::chrono::seconds(5);
  while (Clock::now() < give_up) {
    for (const int pid : Descendants(getpid())) kill(pid, SIGKILL);
    const pid_t got = waitpid(-1, nullptr, WNOHANG);
    if (got < 0 && errno == ECHILD) return;
    if (got == 0) poll(nullptr, 0, 5);
  }
}

class RankGuard {
 public:
  RankGuard(const std::string& run_folder, std::string folder, const RankOfLauncher& of)
      : run_folder_(run_folder),
        folder_(std::move(folder)),
        rank_(of.rank),
        pace_(of.ranks),
        commands_(run_folder, of.rank),
        outputs_{{{1, OutputFile(folder_, rank_, 1)}, {2, OutputFile(folder_, rank_, 2)}}} {
    said_.host = Variable("SLURMD_NODENAME");  // as Slurm names it
    if (said_.host.empty()) said_.host = HostName();
    for (const auto& [address, interface] : OwnAddresses()) {
      said_.addresses.push_back(address);
      interfaces_.insert(interface);
    }
    // The launcher has started the rank again: no fault is performed twice.
    if (auto before = ReadGuard(folder_, rank_)) {
      said_.beat = before->beat;
      said_.obeyed = std::move(before->obeyed);
      said_.before = std::move(before->before);
      const bool has_ended = before->state == "ended";  // else its guard was killed, and so was it
      said_.before.push_back(
          {before->pid, has_ended ? before->code : -1, has_ended ? before->signal : SIGKILL});
    }
    const std::string patience = Variable(kPatienceVariable);
    if (!patience.empty()) pace_.patience = GuardPace::Duration(std::atof(patience.c_str()));
  }

  int Run(const std::vector<std::string>& command);

 private:
  bool Start(SpawnServerProcess& server, const std::vector<std::string>& command);
  void Hear(SpawnConnection& connection);
  void NoteFiles();
  void PassOn(SpawnConnection& connection, int signals);
  void ReadOrders();
  void Obey(const GuardOrder& order);
  std::vector<int> Processes() const;
  void EndPause();
  void Say();
  void LookAtLinks();
  bool IsAlone() const;  // nobody waits for this rank any more
  void Watch(const std::stop_token& stop, int server);
  void Reap(SpawnConnection& connection);

  const std::string run_folder_, folder_;
  const int rank_;
  GuardPace pace_;
  NodeCommands commands_;
  std::array<OutputTee, 2> outputs_;
  GuardedRank said_;
  std::set<std::string> interfaces_;                    // that had a link when this began
  std::string written_;                                 // the file, without its beat
  std::string orders_;                                  // as last read
  std::atomic<Clock::time_point> heard_{Clock::now()};  // of the harness
  Clock::time_point next_beat_, next_orders_, next_links_;
  std::vector<std::pair<Clock::time_point, std::vector<int>>> pauses_;
  bool has_ended_ = false;
  bool is_server_gone_ = false;
  std::atomic<bool> is_ending_{false};  // by one thread: the loop, or its watch
};

bool RankGuard::Start(SpawnServerProcess& server, const std::vector<std::string>& command) {
  if (!server.AwaitReady(kReadyMs)) return false;
  SpawnRequest request;
  request.id = 1;
  request.command = command;
  request.inherits_output = true;
  return server.connection().Send(ToJson(request));
}

void RankGuard::Hear(SpawnConnection& connection) {
  std::vector<Json> messages;
  is_server_gone_ = !connection.Receive(messages);
  for (const Json& message : messages) {
    if (!message.is_object()) continue;
    if (message.contains("error")) {
      std::cerr << "trainwreck rank: cannot start the command: "
                << message["error"].get<std::string>() << "\n";
      said_.code = kExitUsage;
      has_ended_ = true;
    } else if (message.contains("spawned")) {
      said_.pid = message.value("pid", 0);
    } else if (message.contains("exited")) {
      said_.code = message.value("code", -1);
      said_.signal = message.value("signal", 0);
      has_ended_ = true;
      NoteFiles();
    }
  }
}

// How long they are here, which other machines may see later.
void RankGuard::NoteFiles() {
  for (OutputTee& output : outputs_) output.PassAll(kRestMs);
  said_.trace_bytes = FileSize(TraceFile(run_folder_, rank_));
  for (int fd : {1, 2}) said_.output_bytes[fd - 1] = FileSize(OutputFile(folder_, rank_, fd));
}

void RankGuard::PassOn(SpawnConnection& connection, int signals) {
  signalfd_siginfo info;
  while (read(signals, &info, sizeof info) == sizeof info) {
    connection.Send({{"kill", 1}, {"signal", static_cast<int>(info.ssi_signo)}});
  }
}

std::vector<int> RankGuard::Processes() const {
  std::vector<int> pids = Descendants(said_.pid);
  pids.insert(pids.begin(), said_.pid);
  return pids;
}

void RankGuard::ReadOrders() {
  std::ifstream file(folder_ + "/orders.json");
  std::string text;
  if (!std::getline(file, text) || text == orders_) return;
  const Json json = TryParseJson(text);
  if (!json.is_object()) return;
  orders_ = text;
  heard_ = Clock::now();
  for (const Json& one : json.value("orders", Json::array())) {
    try {
      const GuardOrder order = OrderFromJson(one);
      if (order.rank == rank_) Obey(order);
    } catch (const Json::exception&) {  // of a newer harness: left alone
    }
  }
}

void RankGuard::Obey(const GuardOrder& order) {
  for (const ObeyedOrder& done : said_.obeyed) {
    if (done.id == order.id) return;
  }
  if (said_.pid == 0 || has_ended_) return;  // it shows that the order was not carried out
  if (order.command) {
    heard_ = Clock::now() + kCommandTakes;  // nobody reads orders meanwhile
    NodeAnswer answer = commands_.Run(*order.command);
    heard_ = Clock::now();
    said_.obeyed.push_back({order.id, answer.before, 0, std::move(answer)});
    return;
  }
  const std::vector<int> pids = Processes();
  said_.obeyed.push_back({order.id, StateOf(said_.pid), static_cast<int>(pids.size())});
  if (order.signal == SIGKILL) {
    KillTogether(pids);
  } else {
    for (const int pid : pids) kill(pid, order.signal);
  }
  if (order.seconds > 0) {
    const std::chrono::duration<double> length(order.seconds);
    pauses_.emplace_back(Clock::now() + std::chrono::duration_cast<Clock::duration>(length), pids);
  }
}

void RankGuard::EndPause() {
  commands_.UndoDue();
  std::erase_if(pauses_, [now = Clock::now()](const auto& pause) {
    if (pause.first > now) return false;
    for (const int pid : pause.second) kill(pid, SIGCONT);
    return true;
  });
}

void RankGuard::LookAtLinks() {
  if (said_.pid == 0 || Clock::now() < next_links_) return;
  next_links_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(pace_.beat_every);
  said_.unanswered = UnansweredPeers(Processes());
  said_.down = FirstWithoutLink(interfaces_);
}

void RankGuard::Say() {
  said_.state = has_ended_ ? "ended" : said_.pid > 0 ? StateOf(said_.pid) : "running";
  // Its end is said with how it ended, which the server tells next.
  if (!has_ended_ && said_.state == "ended") said_.state = "running";
  if (!has_ended_) LookAtLinks();
  GuardedRank text = said_;
  text.beat = 0;
  const std::string now = ToJson(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  if (now == written_ && Clock::now() < next_beat_) return;
  ++said_.beat;
  next_beat_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(pace_.beat_every);
  if (ReplaceFile(GuardFile(folder_, rank_),
                  ToJson(said_).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"))
    written_ = now;
}

bool RankGuard::IsAlone() const {
  const std::chrono::duration<double> silence = Clock::now() - heard_.load();
  if (silence > pace_.patience) {
    std::cerr << "trainwreck rank: no word of the harness for "
              << static_cast<int>(pace_.patience.count()) << " s, so rank " << rank_
              << " is ended\n";
    return true;
  }
  return std::filesystem::exists(folder_ + "/over");
}

// A call to a shared folder whose server is away does not return, and not even a signal may end it.
// So this thread, which asks the folder nothing, looks at the clock while the loop may wait. The
// spawn server does not ask the folder either before it has killed all that it started, which it
// does when its socket ends. (By shutdown: threads share their descriptors until the last of them
// is gone.) What is left to undo the server undoes, as after the death of a guard.
void RankGuard::Watch(const std::stop_token& stop, int server) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock<std::mutex> lock(mutex);
  int looks = 0;
  while (!stop.stop_requested()) {
    stopped.wait_for(lock, stop, std::chrono::milliseconds(kPollMs), [] { return false; });
    const GuardPace::Duration silence = Clock::now() - heard_.load();
    looks = silence > kWatchAfter * pace_.patience ? looks + 1 : 0;
    if (looks < kWatchLooks) continue;
    if (is_ending_.exchange(true)) return;
    shutdown(server, SHUT_WR);
    pollfd hung_up{server, 0, 0};
    poll(&hung_up, 1, kRestMs);
    pollfd errors{STDERR_FILENO, POLLOUT, 0};
    if (poll(&errors, 1, 0) == 1) {
      dprintf(STDERR_FILENO,
              "trainwreck rank: the run's folder does not answer, and no word of the harness came "
              "for %d s, so rank %d is ended\n",
              static_cast<int>(silence.count()), rank_);
    }
    _exit(1);
  }
}

// Returns when no process of the rank is left.
void RankGuard::Reap(SpawnConnection& connection) {
  connection.Send({{"reap", true}, {"grace_ms", 0}});
  const auto give_up = Clock::now() + std::chrono::milliseconds(kReadyMs);
  for (bool is_open = true; is_open && Clock::now() < give_up;) {
    pollfd polled{connection.fd(), POLLIN, 0};
    poll(&polled, 1, kPollMs);
    std::vector<Json> messages;
    is_open = connection.Receive(messages);
    for (const Json& message : messages) {
      if (message.is_object() && message.contains("reaped")) return;
    }
  }
}

int RankGuard::Run(const std::vector<std::string>& command) {
  const auto server = SpawnServerProcess::Fork(
      /*keeps_output=*/true, /*at_end=*/[this] { UndoLeft(run_folder_, rank_); });
  for (OutputTee& output : outputs_) output.Release();  // the server and the command have them now
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // for what the server leaves when it is killed
  sigset_t heard;
  sigemptyset(&heard);
  for (const int number : kPassedOn) sigaddset(&heard, number);
  sigprocmask(SIG_BLOCK, &heard, nullptr);
  const int signals = signalfd(-1, &heard, SFD_NONBLOCK | SFD_CLOEXEC);
  if (!Start(*server, command)) {
    std::cerr << "trainwreck rank: the process that starts the command has ended\n";
    return 1;
  }
  SpawnConnection& connection = server->connection();
  const std::jthread watch([&](const std::stop_token& stop) { Watch(stop, connection.fd()); });
  bool is_alone = false;
  while (!has_ended_ && !is_server_gone_ && !is_alone) {
    pollfd polled[] = {{connection.fd(), POLLIN, 0},
                       {signals, POLLIN, 0},
                       outputs_[0].Polled(),
                       outputs_[1].Polled()};
    poll(polled, std::size(polled), kPollMs);
    for (OutputTee& output : outputs_) output.Pass();
    if (polled[0].revents != 0) Hear(connection);
    PassOn(connection, signals);
    EndPause();
    if (Clock::now() >= next_orders_) {
      next_orders_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(pace_.orders_every);
      ReadOrders();
      is_alone = !has_ended_ && IsAlone();
    }
    if (!is_alone) Say();
  }
  while (is_ending_.exchange(true)) pause();  // the watch ends this process
  if (is_server_gone_ && !has_ended_) {
    KillAllBelow();
    return 1;
  }
  Reap(connection);  // before the folder is asked again, which may not answer
  commands_.UndoAll();
  if (is_alone) return 1;
  if (said_.signal == 0) return said_.code;
  sigprocmask(SIG_UNBLOCK, &heard, nullptr);
  signal(said_.signal, SIG_DFL);
  raise(said_.signal);
  return 1;
}

}  // namespace

int RunRankGuard(const std::vector<std::string>& command) {
  if (command.empty()) {
    std::cerr << "usage: trainwreck rank -- COMMAND...\n";
    return kExitUsage;
  }
  const std::string run_folder = Variable(kRunVariable), plan_file = Variable("TRAINWRECK_PLAN");
  if (run_folder.empty() || plan_file.empty()) {
    for (const int number : {SIGPIPE, SIGXFSZ})
      signal(number, SIG_DFL);  // this program ignores them
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    execvp(words[0], words.data());
    std::cerr << "trainwreck rank: cannot start '" << command[0] << "': " << std::strerror(errno)
              << "\n";
    return kExitUsage;
  }
  const std::optional<RankOfLauncher> rank = RankOfEnvironment();
  if (!rank) {
    std::cerr << "trainwreck rank: no launcher gave this process a rank: RANK, "
                 "OMPI_COMM_WORLD_RANK, PMI_RANK or SLURM_PROCID\n";
    return kExitUsage;
  }
  try {
    const Plan plan = AwaitPlan(plan_file);
    const std::string folder = GuardFolder(run_folder, plan.phase, plan.attempt);
    std::filesystem::create_directories(folder);
    return RankGuard(run_folder, folder, *rank).Run(command);
  } catch (const std::exception& error) {
    std::cerr << "trainwreck rank: " << error.what() << "\n";
    return kExitInfrastructure;
  }
}

}  // namespace trainwreck
