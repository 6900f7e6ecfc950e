#include "harness/targets/adapter.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <stdexcept>

#include "harness/outcome/exit_status.h"
#include "harness/process/free_port.h"
#include "harness/process/rank_guards.h"
#include "harness/protocol/parse_json.h"
#include "harness/protocol/rank_files.h"
#include "harness/protocol/recipe_view.h"
#include "harness/protocol/trace.h"
#include "harness/targets/environment_variable.h"
#include "harness/targets/growing_file.h"
#include "harness/targets/launched_spec.h"
#include "harness/targets/mpirun_session.h"
#include "harness/targets/nccl_faults.h"
#include "harness/targets/outside_faults.h"
#include "harness/targets/python_hooks.h"
#include "harness/targets/rank_watch.h"
#include "harness/targets/signal_sources.h"
#include "harness/targets/target_spec.h"
#include "harness/text/files.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

constexpr int kPollMs = 20;
constexpr int kMaxComplaints = 20;
constexpr int kNotStarted = 127;

// What tells a process that it is a rank: a launcher that inherits it takes itself for one.
constexpr const char* kOfRanks[] = {
    "RANK",        "LOCAL_RANK",   "WORLD_SIZE",           "LOCAL_WORLD_SIZE", "MASTER_ADDR",
    "MASTER_PORT", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"};

double Now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Json ReadPlan() {
  std::ifstream file(Variable("TRAINWRECK_PLAN"));
  if (!file) throw std::runtime_error("TRAINWRECK_PLAN names no plan");
  return ParseJson(file);
}

Plan WithoutFaults(Plan plan) {
  plan.faults.clear();
  return plan;
}

sigset_t OnlySigterm() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  return set;
}

// Ends this process as the program ended.
int EndAs(int status) {
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  const sigset_t sigterm = OnlySigterm();
  sigprocmask(SIG_UNBLOCK, &sigterm, nullptr);
  signal(WTERMSIG(status), SIG_DFL);
  raise(WTERMSIG(status));
  return 1;
}

class Adapter {
 public:
  // `performs_faults`: those of the plan, from outside; else they are the program's own affair.
  explicit Adapter(const TargetSpec& spec, bool performs_faults = true)
      : spec_(spec),
        plan_json_(ReadPlan()),
        plan_(OfThisStart(PlanFromJson(plan_json_))),
        performed_(performs_faults ? plan_ : WithoutFaults(plan_)),
        // RANK may be of the shell that all was started from.
        rank_(std::stoi(Variable("TRAINWRECK_RANK", Variable("RANK", "0")))),
        // Where the program's launcher starts the ranks, there is one process: the recipe counts.
        ranks_(RecipeView(plan_.recipe).Int(kRanksKey).value_or(1)),
        folder_(Variable("TRAINWRECK_TRACE")),
        trace_(TraceFile(folder_, rank_)),
        events_(folder_ + "/launcher.jsonl"),
        begin_(Now()),
        guards_(GuardFolder(folder_, plan_.phase, plan_.attempt), ranks_),
        faults_(performed_, rank_, ranks_, spec.launcher, guards_, folder_,
                [this](Json fields) { WriteEvent("fired", std::move(fields)); }),
        nccl_faults_(performed_, rank_, spec.launcher,
                     folder_ + "/nccl.rank" + std::to_string(rank_) + ".jsonl",
                     [this](Json fields) { WriteEvent("fired", std::move(fields)); }),
        sources_(
            spec, guards_, rank_, ranks_,
            [this](int rank, const StepValues& values) { WriteStep(rank, values); },
            [this](int rank, const std::string& source, const std::string& text,
                   const std::string& why) {
              if (++complaints_ > kMaxComplaints) return;
              WriteEvent("unreadable", {{"source", source}, {"text", text}, {"why", why}}, rank);
            }) {}

  int Run();

 private:
  // A later start may have other ranks than the recipe's, and the program is told them.
  static Plan OfThisStart(Plan plan) {
    const int resumed = RecipeView(plan.recipe).Int(kResumeRanksKey).value_or(0);
    if (plan.resume && resumed > 0) plan.recipe[kRanksKey] = resumed;
    return plan;
  }

  bool writes_trace() const { return spec_.level == 0; }
  bool starts_ranks_itself() const { return spec_.launcher != LauncherKind::kOwn; }
  std::string WorkFolder() const { return folder_ + "/work"; }
  std::string PrepareData();
  void PrepareFolders();
  void WriteRoles();
  void OpenSources(const std::map<std::string, std::string>& values, bool has_guards);
  void NoteStep(int step);
  void SetMeetingPlace(std::map<std::string, std::string>& environment) const;
  pid_t StartProgram(const Invocation& invocation);
  void WriteProcessFile(const Invocation& invocation,
                        const std::map<std::string, std::string>& environment) const;
  void Watch(pid_t program, int& status);
  void ReadSignals(bool last);
  void WatchTrace();
  void WriteStep(int rank, const StepValues& values);
  void WriteEvent(const std::string& name, Json fields, std::optional<int> rank = std::nullopt);
  void WriteRankEvent(const std::string& name, Json fields);
  std::string OutputPath(int fd) const;
  void TellFailedRank(int status);

  const TargetSpec& spec_;
  const std::optional<double> entropy_floor_ = spec_.EntropyFloor();
  const Json plan_json_;
  const Plan plan_;
  const Plan performed_;  // with the faults that are performed here
  const int rank_;
  const int ranks_;
  const std::string folder_;
  TraceWriter trace_;
  TraceWriter events_;  // where rank 0 may append to its trace on another machine
  const double begin_;
  RankGuards guards_;
  OutsideFaults faults_;
  NcclFaults nccl_faults_;
  SignalSources sources_;
  std::map<int, std::unique_ptr<TraceWriter>> of_others_;  // traces of other ranks
  std::optional<RankWatch> ranks_watch_;                   // of those that the program starts
  std::optional<MpirunSession> mpirun_session_;
  int told_to_end_ = -1;  // readable when the harness ends the launcher and, with it, this
  bool is_put_down_ = false;
  std::int64_t stderr_begin_ = 0;         // of this attempt
  std::unique_ptr<GrowingFile> watched_;  // a trace that others write
  std::string watched_tail_;
  int complaints_ = 0;
  int first_step_ = -1, step_ = -1;  // that were seen
};

void Adapter::WriteEvent(const std::string& name, Json fields, std::optional<int> rank) {
  if (name != "fired") RequireDescribed(name, fields, AdapterEvents());  // that has evidence, too
  fields["t"] = "event";
  fields["event"] = name;
  if (!fields.contains("step")) fields["step"] = step_;
  if (!fields.contains("rank")) fields["rank"] = rank.value_or(rank_);
  fields["time"] = Now() - begin_;
  (guards_.ranks().empty() ? trace_ : events_).Write(fields);
}

void Adapter::WriteStep(int rank, const StepValues& values) {
  Json record = {{"t", "step"}, {"step", values.step}};
  const double time = values.wall_time > 0 ? values.wall_time : Now();
  record["time"] = std::max(0.0, time - begin_);
  for (const auto& [signal, value] : values.values) record[signal] = EncodeNumber(value);
  if (entropy_floor_ && values.values.contains(kLoss)) {
    record[kEntropyFloor] = EncodeNumber(*entropy_floor_);
  }
  if (rank == rank_) {
    trace_.Write(record);
  } else {
    std::unique_ptr<TraceWriter>& trace = of_others_[rank];
    if (!trace) trace = std::make_unique<TraceWriter>(TraceFile(folder_, rank));
    trace->Write(record);
  }
  NoteStep(values.step);
}

void Adapter::NoteStep(int step) {
  if (first_step_ < 0) first_step_ = step;
  step_ = std::max(step_, step);
}

void Adapter::PrepareFolders() {
  fs::create_directories(WorkFolder());
  fs::create_directories(plan_.checkpoint_dir);
}

// Into each trace that is written without the harness, ahead of the program's own records.
void Adapter::WriteRoles() {
  Json roles = Json::object();
  for (const SignalInfo& signal : spec_.signals) {
    if (!signal.own_name.empty()) roles[signal.own_name] = signal.name;
  }
  if (roles.empty()) return;
  const bool is_of_all = starts_ranks_itself();
  for (int rank = is_of_all ? 0 : rank_; rank < (is_of_all ? ranks_ : rank_ + 1); ++rank) {
    TraceWriter(TraceFile(folder_, rank)).Write({{"t", "roles"}, {"signals", roles}});
  }
}

// The original is never touched: a fault gets a copy.
std::string Adapter::PrepareData() {
  if (!faults_.WantsDataCopy()) return spec_.data;
  const fs::path copies = folder_ + "/data." + std::to_string(rank_);
  const fs::path copy = copies / fs::path(spec_.data).filename();
  fs::remove_all(copies);
  fs::create_directories(copies);
  fs::copy(spec_.data, copy, fs::copy_options::recursive);
  faults_.DamageData(copies.string());
  return copy.string();
}

void Adapter::OpenSources(const std::map<std::string, std::string>& values, bool has_guards) {
  // Ranks with hooks write their traces themselves, maybe on other machines.
  const bool others_write = !writes_trace() || !spec_.hooks.empty();
  sources_.Open(values, folder_, plan_.resume, has_guards && !others_write);
  // Ranks that log nothing follow the first one's steps.
  if (others_write || rank_ > 0) {
    const int watched_rank = others_write ? rank_ : 0;
    watched_ = std::make_unique<GrowingFile>(TraceFile(folder_, watched_rank), plan_.resume);
  }
}

// mpirun and srun set none. Where the job says on which machine the ranks meet, each run does so at
// a port of its own. torchrun on several nodes has a store there; its options come before this.
void Adapter::SetMeetingPlace(std::map<std::string, std::string>& environment) const {
  const char* const address = std::getenv("MASTER_ADDR");
  if (spec_.launcher == LauncherKind::kOwn || address == nullptr) return;
  const std::string port = std::to_string(FreePort());
  if (spec_.launcher == LauncherKind::kTorchrun) {
    environment.emplace("PET_RDZV_ENDPOINT", address + (":" + port));
  } else {
    environment.emplace("MASTER_ADDR", address);
    environment.emplace("MASTER_PORT", port);
  }
}

pid_t Adapter::StartProgram(const Invocation& invocation) {
  std::map<std::string, std::string> environment = invocation.environment;
  environment.emplace("PYTHONUNBUFFERED", "1");  // or its output comes when all is over
  // Runs share the machine, one to a core. Each would start a thread for each core, and be slow.
  if (std::getenv("OMP_NUM_THREADS") == nullptr) environment.emplace("OMP_NUM_THREADS", "1");
  if (!spec_.hooks.empty()) SetPythonHooks(spec_, environment);
  if (spec_.HooksEndRuns()) {
    environment["TRAINWRECK_ADAPTER_STEPS"] = ArgumentText(plan_.recipe.at(kStepsKey));
  }
  faults_.ChangeEnvironment(environment);
  nccl_faults_.ChangeEnvironment(environment);
  KeepNcclLog(spec_, NcclLogFile(folder_, rank_), environment);
  SetMeetingPlace(environment);
  if (spec_.launcher == LauncherKind::kMpirun) mpirun_session_.emplace(environment);
  WriteProcessFile(invocation, environment);
  const sigset_t sigterm = OnlySigterm();
  if (starts_ranks_itself()) {
    sigprocmask(SIG_BLOCK, &sigterm, nullptr);
    told_to_end_ = signalfd(-1, &sigterm, SFD_CLOEXEC);
  }
  const pid_t self = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
  if (pid > 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != self) _exit(kNotStarted);
  sigprocmask(SIG_UNBLOCK, &sigterm, nullptr);
  if (starts_ranks_itself()) {
    for (const char* name : kOfRanks) unsetenv(name);
  }
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& word : invocation.command) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  if (chdir(spec_.folder.c_str()) == 0) execvp(arguments[0], arguments.data());
  std::fprintf(stderr, "cannot start '%s' in %s: %s\n", arguments[0], spec_.folder.c_str(),
               std::strerror(errno));
  _exit(kNotStarted);
}

// What runs here, word by word, and what its environment has beyond the user's own.
void Adapter::WriteProcessFile(const Invocation& invocation,
                               const std::map<std::string, std::string>& environment) const {
  std::map<std::string, std::string> set = environment;
  for (const char* name :
       {"TRAINWRECK_RUN", "TRAINWRECK_PLAN", "TRAINWRECK_TRACE", "TRAINWRECK_RANK"}) {
    set.emplace(name, Variable(name));
  }
  Json unset = Json::array();
  if (starts_ranks_itself()) {
    for (const char* name : kOfRanks) {
      if (!set.contains(name)) unset.push_back(name);
    }
  } else if (spec_.SetsRanks()) {
    for (const char* name : {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR",
                             "MASTER_PORT", "OMP_NUM_THREADS"}) {
      set.emplace(name, Variable(name));
    }
  }
  const std::string path = folder_ + "/environment." + plan_.phase + "." +
                           std::to_string(plan_.attempt) + ".rank" + std::to_string(rank_) +
                           ".json";
  std::ofstream(path) << Json{{"command", invocation.command},
                              {"folder", spec_.folder},
                              {"set", set},
                              {"unset", unset}}
                             .dump(1, ' ', false, Json::error_handler_t::replace)
                      << "\n";
}

// Of the process that is started here.
std::string Adapter::OutputPath(int fd) const { return OutputFile(folder_, rank_, fd); }

void Adapter::ReadSignals(bool last) {
  sources_.Read(last);
  WatchTrace();
}

// Steps in a trace that somebody else writes.
void Adapter::WatchTrace() {
  bool begun_anew = false;
  if (!watched_ || !watched_->Read(watched_tail_, begun_anew, GrowingFile::Zeros::kAreLeft)) return;
  std::size_t begin = 0;
  for (std::size_t end; (end = watched_tail_.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    const Json record = TryParseJson(watched_tail_.substr(begin, end - begin));
    if (!record.is_object() || record.value("t", "") != "step") continue;
    const auto step = record.find("step");
    if (step != record.end() && step->is_number_integer()) {
      NoteStep(step->get<int>());
    }
  }
  watched_tail_.erase(0, begin);
}

void Adapter::Watch(pid_t program, int& status) {
  const int ended = static_cast<int>(syscall(SYS_pidfd_open, program, 0));
  for (;;) {
    pollfd polled[] = {{ended, POLLIN, 0},  // -1 is left out
                       {faults_.WritesFd(), POLLIN, 0},
                       {told_to_end_, POLLIN, 0}};
    poll(polled, 3, kPollMs);
    if (polled[2].revents != 0) {  // so was the launcher, which ends in its own way
      is_put_down_ = true;
      waitpid(program, &status, 0);
      break;
    }
    const bool is_paused = faults_.EndPauses();
    const pid_t got = waitpid(program, &status, WNOHANG | WUNTRACED);
    if (got == program && WIFSTOPPED(status)) {
      if (!is_paused) raise(SIGSTOP);  // so that whoever asks how we are is told how it is
      continue;
    }
    if (got == program) break;
    ReadSignals(/*last=*/false);
    guards_.Look();
    if (ranks_watch_) ranks_watch_->Look();
    faults_.HearGuards();
    if (step_ >= 0) faults_.ActAtStep(first_step_, step_, program);
    faults_.ActOnWrites(step_);
    nccl_faults_.Read();
  }
  if (ended >= 0) close(ended);
  if (is_put_down_) return;
  ReadSignals(/*last=*/!sources_.of_guards());
  faults_.HearLastOfGuards(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  if (sources_.of_guards()) {
    sources_.AwaitGuards();
    ReadSignals(/*last=*/true);
  }
  if (ranks_watch_ && !guards_.ranks().empty()) ranks_watch_->Look();
  nccl_faults_.Read();
}

void Adapter::WriteRankEvent(const std::string& name, Json fields) {
  fields["attempt"] = plan_.attempt;
  fields["phase"] = plan_.phase;
  WriteEvent(name, std::move(fields));
}

void Adapter::TellFailedRank(int status) {
  const std::string path = OutputPath(STDERR_FILENO);
  ranks_watch_->Finish(status, ReadTail(path, stderr_begin_, kReportBytes));
}

int Adapter::Run() {
  PrepareFolders();
  if (writes_trace()) {
    trace_.Write({{"t", "start"},
                  {"rank", rank_},
                  {"phase", plan_.phase},
                  {"attempt", plan_.attempt},
                  {"pid", getpid()},
                  {"version", spec_.name},
                  {"environment", plan_json_.value("fingerprint", Json::object())}});
  } else {
    WriteRoles();
  }
  faults_.DamageCheckpoints();
  faults_.WatchCheckpoints();
  const std::map<std::string, std::string> values =
      PlaceholderValues(spec_, plan_, WorkFolder(), PrepareData(), rank_, ranks_);
  const Invocation invocation = Invoke(spec_, plan_, values);
  OpenSources(values, StartsGuards(invocation.command));
  if (invocation.resumes) {
    WriteEvent("resumed", {{"command", Json(invocation.command).dump()}});
  }
  if (starts_ranks_itself()) {
    ranks_watch_.emplace(
        spec_.launcher, ranks_, folder_, guards_,
        [this](const std::string& name, Json fields) { WriteRankEvent(name, std::move(fields)); });
    stderr_begin_ = FileSize(OutputPath(STDERR_FILENO));
  }
  int status = 0;
  Watch(StartProgram(invocation), status);
  mpirun_session_.reset();  // this process may end by a signal, too
  if (is_put_down_) return EndAs(status);
  if (ranks_watch_) TellFailedRank(status);
  if (writes_trace() && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    trace_.Write({{"t", "end"}, {"why", "completed"}, {"step", step_ + 1}});
  }
  return EndAs(status);
}

}  // namespace

int RunLaunchedRanks(const std::vector<std::string>& arguments) {
  try {
    if (arguments.size() < 3) {
      std::cerr << "usage: trainwreck launch-ranks LAUNCHER RANKS COMMAND...\n";
      return kExitUsage;
    }
    const TargetSpec spec = LaunchedSpec(arguments);  // outlives its adapter
    return Adapter(spec, /*performs_faults=*/false).Run();
  } catch (const std::exception& error) {
    std::cerr << "trainwreck launch-ranks: " << error.what() << "\n";
    return 1;
  }
}

int RunAdapter(const std::string& file, const std::string& name, bool describe) {
  try {
    const TargetFile targets = LoadTargetFile(file);
    for (const Diagnostic& diagnostic : targets.errors) std::cerr << Format(diagnostic);
    const TargetSpec* spec = targets.Find(name);
    if (!targets.errors.empty() || spec == nullptr) return kExitInvalid;
    if (describe) {
      std::cout << ToJson(DescribeTarget(*spec)).dump(1) << "\n";
      return 0;
    }
    return Adapter(*spec).Run();
  } catch (const std::exception& error) {
    std::cerr << "trainwreck adapt: " << error.what() << "\n";
    return 1;
  }
}

}  // namespace trainwreck
