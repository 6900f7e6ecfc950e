#include "harness/launch/launcher.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <list>
#include <numeric>
#include <stdexcept>
#include <system_error>

#include "harness/launch/active_run.h"
#include "harness/launch/device_assert.h"
#include "harness/launch/gpu_memory.h"
#include "harness/launch/run_folder.h"
#include "harness/launch/shared_phases.h"
#include "harness/process/interruption.h"
#include "harness/process/spawn_client.h"

namespace trainwreck {
namespace {

constexpr int kTickMs = 25;
constexpr int kReadyMs = 60'000;   // for the target to load and warm up
constexpr int kActivePerCore = 8;  // at most, of which most wait
// Of a core, that each of several ranks uses at most: the rest of its time it waits for others.
constexpr double kCoreOfARank = 0.5;
// A run starts when this share of the cores that it uses is free: half a core that idles is worth
// more than a step that takes longer.
constexpr double kFreeShare = 0.5;
// Runs that may overtake the first one that waits. Where several ranks wait for most of their time,
// a core is free soon.
constexpr int kOvertakesPerCore = 16;
constexpr int kServerStarts = 3;  // how often a spawn server that dies is replaced

int UsableCores() {
  cpu_set_t cores;
  return sched_getaffinity(0, sizeof cores, &cores) == 0 ? std::max(1, CPU_COUNT(&cores)) : 1;
}

}  // namespace

const char* ToString(RunEnd end) {
  switch (end) {
    case RunEnd::kCompleted:
      return "completed";
    case RunEnd::kDecided:
      return "decided";
    case RunEnd::kFailed:
      return "failed";
    case RunEnd::kStalled:
      return "stalled";
    case RunEnd::kTimeout:
      return "timeout";
    case RunEnd::kLeak:
      return "leak";
    case RunEnd::kDiskBudget:
      return "disk_budget";
    case RunEnd::kGarbage:
      return "garbage";
    case RunEnd::kInfrastructure:
      return "infrastructure";
  }
  return "";
}

std::optional<RunEnd> FindRunEnd(std::string_view name) {
  for (int end = 0; end <= static_cast<int>(RunEnd::kInfrastructure); ++end) {
    if (name == ToString(static_cast<RunEnd>(end))) return static_cast<RunEnd>(end);
  }
  return std::nullopt;
}

// The spawn server and the guards that it forked.
class GuardSource {
 public:
  explicit GuardSource(const LauncherOptions& options) : options_(options) {}

  // For one run at a time. Throws when the target's fork server does not start.
  std::unique_ptr<SpawnConnection> Open();
  void Keep(std::unique_ptr<SpawnConnection> guard);
  void KillAll();  // returns when everything below the server is gone

 private:
  void EnsureServer();

  const LauncherOptions& options_;
  std::unique_ptr<SpawnServerProcess> server_;
  int server_starts_ = 0;
  std::string failure_;  // not empty: no more runs can be started
  // Without a run and without descendants: a fork of a large process saved.
  std::vector<std::unique_ptr<SpawnConnection>> idle_;
};

struct Launcher::Impl {
  explicit Impl(LauncherOptions given) : options(std::move(given)), guards(options) {}
  const LauncherOptions options;
  GuardSource guards;
  bool is_stopped = false;
};

// What these runs may take of the target's devices.
std::vector<DeviceInfo> DevicesFor(const std::vector<const Run*>& runs, const Target& target) {
  const bool need_gpus =
      std::any_of(runs.begin(), runs.end(), [](const Run* run) { return run->device == "cuda"; });
  return need_gpus ? LessOthers(target.devices, UsedByOthers(target.devices)) : target.devices;
}

// One call of RunAll.
class Packing {
 public:
  Packing(const LauncherOptions& options, const std::vector<const Run*>& runs,
          const LauncherCallbacks& callbacks, GuardSource& guards)
      : options_(options),
        callbacks_(callbacks),
        guards_(guards),
        room_(DevicesFor(runs, options.target), options.target.device_limits),
        shared_(options.output_dir + "/.shared-phases",
                options.isolation == Isolation::kExec ? std::vector<const Run*>() : runs),
        total_(static_cast<int>(runs.size())),
        waiting_(runs.begin(), runs.end()),
        repeat_options_(options) {
    waiting_.sort([](const Run* a, const Run* b) {
      return std::pair(a->may_wait_seconds, a->cost) > std::pair(b->may_wait_seconds, b->cost);
    });
    repeat_options_.room_of = nullptr;  // its trace is gone when the run is handed over
  }

  bool busy() const { return !waiting_.empty() || !active_.empty(); }
  void StartWhatFits();
  void Wait();
  void HandOverFinished();

 private:
  double CoresOf(const Run& run) const {
    return run.ranks <= 1 ? 1 : std::min<double>(kCoreOfARank * run.ranks, options_.cores);
  }
  int places() const { return kActivePerCore * options_.cores; }  // of runs at a time
  std::list<const Run*>::iterator NextThatFits(double free);
  void HandOver(const Run& run, RunResult result);
  // Null: the run is no repetition.
  struct Repetition;
  Repetition* RepetitionBy(const Run& run);

  // A run that ended with a device assert, and the run that shows where.
  struct Repetition {
    const Run* run;
    RunResult result;
    Run again;
  };

  const LauncherOptions& options_;
  const LauncherCallbacks& callbacks_;
  GuardSource& guards_;
  DeviceRoom room_;
  SharedPhases shared_;
  int total_ = 0;
  int done_ = 0;
  int overtakes_ = 0;              // of the first that waits, by smaller ones
  std::list<const Run*> waiting_;  // those that may wait first, then the longest
  std::list<ActiveRun> active_;
  std::list<Repetition> repetitions_;
  LauncherOptions repeat_options_;
  LauncherCallbacks no_callbacks_;
};

// The first that fits. A large run at the head lets small ones pass only so often: it would starve.
// Runs that may wait get half of the places, so that others can use the cores meanwhile.
std::list<const Run*>::iterator Packing::NextThatFits(double free) {
  const auto may_wait = [](const Run& run) { return run.may_wait_seconds > 0; };
  const auto such = std::count_if(active_.begin(), active_.end(),
                                  [&](const ActiveRun& run) { return may_wait(run.run()); });
  bool is_head = true;
  for (auto it = waiting_.begin(); it != waiting_.end(); ++it) {
    if (may_wait(**it) && such >= places() / 2) continue;
    if (shared_.MustWait(**it)) continue;
    if (kFreeShare * CoresOf(**it) <= free && room_.Fits(**it)) {
      overtakes_ = is_head ? 0 : overtakes_ + 1;
      return it;
    }
    if (is_head && overtakes_ >= kOvertakesPerCore * options_.cores) return waiting_.end();
    is_head = false;
  }
  return waiting_.end();
}

void Packing::StartWhatFits() {
  double free = options_.cores;
  for (const ActiveRun& run : active_) free -= run.cores(CoresOf(run.run()));
  while (free > 0 && !waiting_.empty() && std::ssize(active_) < places()) {
    const auto next = NextThatFits(free);
    if (next == waiting_.end()) return;
    const Run& run = **next;
    waiting_.erase(next);
    const bool is_repetition = RepetitionBy(run) != nullptr;
    ActiveRun& started = active_.emplace_back(run, is_repetition ? repeat_options_ : options_,
                                              is_repetition ? no_callbacks_ : callbacks_, shared_);
    shared_.Begin(run);
    const std::vector<int> gpus = room_.Take(run);
    const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
    started.UseGpus(gpus, room_.Visible(gpus, visible != nullptr ? visible : ""));
    try {
      started.Start(guards_.Open());
    } catch (const std::exception& error) {
      started.EndWith(RunEnd::kInfrastructure, error.what());
    }
    free -= started.cores(CoresOf(run));
  }
}

void Packing::Wait() {
  std::vector<pollfd> polled{{InterruptionDescriptor(), POLLIN, 0}};
  std::vector<ActiveRun*> runs;
  bool any_done = false;
  for (ActiveRun& run : active_) {
    any_done = any_done || run.done();
    if (run.done()) continue;
    polled.push_back({run.fd(), POLLIN, 0});
    runs.push_back(&run);
  }
  poll(polled.data(), polled.size(), any_done ? 0 : kTickMs);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (polled[i + 1].revents != 0) runs[i]->OnReadable();
  }
  const auto now = ActiveRun::Clock::now();
  for (ActiveRun* run : runs) {
    if (!run->done()) run->Tick(now);
  }
}

void Packing::HandOverFinished() {
  for (auto it = active_.begin(); it != active_.end();) {
    if (!it->done()) {
      ++it;
      continue;
    }
    const Run& run = it->run();
    RunResult result = it->TakeResult();
    guards_.Keep(it->TakeGuard());
    room_.Give(run, it->gpus());
    shared_.End(run);
    it = active_.erase(it);
    if (Repetition* repetition = RepetitionBy(run)) {
      const Run& first = *repetition->run;
      RunResult of_first = std::move(repetition->result);
      AddDeviceAssert(result, of_first);
      repetitions_.remove_if([&](const Repetition& one) { return &one == repetition; });
      HandOver(first, std::move(of_first));
    } else if (RankWithDeviceAssert(result)) {
      repetitions_.push_back({&run, std::move(result), WithBlockingLaunches(run)});
      waiting_.push_front(&repetitions_.back().again);
    } else {
      HandOver(run, std::move(result));
    }
  }
}

void Packing::HandOver(const Run& run, RunResult result) {
  ++done_;
  if (callbacks_.finished) callbacks_.finished(run, std::move(result));
  if (callbacks_.progress) callbacks_.progress(static_cast<int>(active_.size()), done_, total_);
}

Packing::Repetition* Packing::RepetitionBy(const Run& run) {
  for (Repetition& repetition : repetitions_) {
    if (&repetition.again == &run) return &repetition;
  }
  return nullptr;
}

void GuardSource::EnsureServer() {
  if (server_) {
    std::vector<Json> messages;
    if (server_->connection().Receive(messages)) return;
    server_.reset();  // it died; its guards go on with their runs
  }
  if (!failure_.empty()) throw std::runtime_error(failure_);
  const std::string log = options_.output_dir + "/fork-server.log";
  const auto give_up = [&](const std::string& what) {
    const std::string words = LastWords(log, 0);
    failure_ = what + (words.empty() ? "" : ": " + words);
    throw std::runtime_error(failure_);
  };
  if (++server_starts_ > kServerStarts) {
    give_up(fmt::format("the spawn server died {} times", kServerStarts));
  }
  const bool forks = options_.isolation == Isolation::kFork && options_.target.has_fork_server;
  const Target& target = options_.target;
  server_ = forks ? SpawnServerProcess::Exec(target.command, target.environment, target.folder, log)
                  : SpawnServerProcess::Fork();
  if (server_->AwaitReady(kReadyMs, InterruptionDescriptor())) return;
  server_.reset();
  give_up("the fork server did not start");
}

std::unique_ptr<SpawnConnection> GuardSource::Open() {
  while (!idle_.empty()) {
    std::unique_ptr<SpawnConnection> guard = std::move(idle_.back());
    idle_.pop_back();
    std::vector<Json> messages;
    if (guard->Receive(messages)) return guard;
  }
  EnsureServer();
  return server_->OpenGuard();
}

void GuardSource::Keep(std::unique_ptr<SpawnConnection> guard) {
  if (guard) idle_.push_back(std::move(guard));
}

void GuardSource::KillAll() {
  idle_.clear();
  server_.reset();
}

Launcher::Launcher(LauncherOptions options) {
  PrepareForInterruption();
  if (options.target.command.empty()) throw std::invalid_argument("a target without a command");
  if (options.cores <= 0) options.cores = UsableCores();
  options.disk_bytes = options.target.disk_bytes.value_or(options.disk_bytes);
  options.output_dir = std::filesystem::absolute(options.output_dir).lexically_normal();
  impl_ = std::make_unique<Impl>(std::move(options));
}

Launcher::~Launcher() = default;

void Launcher::RunAll(const std::vector<const Run*>& runs, const LauncherCallbacks& callbacks) {
  std::filesystem::create_directories(impl_->options.output_dir);
  Packing packing(impl_->options, runs, callbacks, impl_->guards);
  while (packing.busy()) {
    if (WasInterrupted() || impl_->is_stopped) {
      impl_->guards.KillAll();
      return;
    }
    packing.StartWhatFits();
    packing.Wait();
    packing.StartWhatFits();  // before the callbacks, which may take their time
    packing.HandOverFinished();
  }
}

void Launcher::Stop() { impl_->is_stopped = true; }

}  // namespace trainwreck
