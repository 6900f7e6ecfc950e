// trainwreck doctor: is this machine, and is the target, fit to run scenarios? Every line that is
// not ok says what to do.
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <thread>

#include "harness/cli/verbs.h"
#include "harness/launch/launcher.h"
#include "harness/session/chosen.h"
#include "harness/session/preflight.h"
#include "harness/session/selection.h"
#include "harness/session/session.h"
#include "harness/text/clean_text.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

enum class Health { kOk, kWarn, kFail };

class Findings {
 public:
  explicit Findings(bool color) : color_(color) {}

  void Add(Health health, const std::string& what, const std::string& seen,
           const std::string& fix = "") {
    static const char* const words[] = {"ok  ", "warn", "fail"};
    static const char* const colors[] = {"\033[32m", "\033[33m", "\033[31m"};
    const int index = static_cast<int>(health);
    std::cout << (color_ ? colors[index] : "") << words[index] << (color_ ? "\033[0m" : "") << "  "
              << what << std::string(what.size() < 14 ? 14 - what.size() : 1, ' ')
              << CleanText(seen) << "\n";
    if (health != Health::kOk && !fix.empty()) {
      std::cout << "      fix: " << CleanText(fix) << "\n";
    }
    if (health == Health::kFail) has_failed_ = true;
  }
  bool has_failed() const { return has_failed_; }

 private:
  bool color_;
  bool has_failed_ = false;
};

std::string Gibibytes(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GiB", bytes / (1 << 30));
  return text;
}

void CheckCores(Findings& findings) {
  const int usable = UsableCores();
  const unsigned all = std::thread::hardware_concurrency();
  findings.Add(
      usable >= 2 ? Health::kOk : Health::kWarn, "cores",
      std::to_string(usable) + " usable of " + std::to_string(all),
      "scenarios of two ranks share one core; they are slower and their budgets may not do");
}

void CheckMemory(Findings& findings) {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  double kibibytes = 0, available = 0;
  while (file >> key >> kibibytes) {
    std::getline(file, unit);
    if (key == "MemAvailable:") available = kibibytes * 1024;
  }
  const Health health = available >= 2.0 * (1 << 30)   ? Health::kOk
                        : available >= 0.5 * (1 << 30) ? Health::kWarn
                                                       : Health::kFail;
  findings.Add(health, "memory", Gibibytes(available) + " available",
               "each rank of the reference trainer takes about 0.2 GiB: use fewer cores (-j)");
}

void CheckDisk(Findings& findings) {
  struct statvfs disk {};
  if (access(".", W_OK) != 0) {
    findings.Add(Health::kFail, "disk", fs::current_path().string() + " is not writable",
                 "run elsewhere, or name a folder with --output DIR");
    return;
  }
  const double free = statvfs(".", &disk) == 0
                          ? static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize)
                          : 0;
  findings.Add(
      free >= 1.0 * (1 << 30) ? Health::kOk : Health::kWarn, "disk", Gibibytes(free) + " free here",
      "traces and checkpoints of the suite need some hundred MB: --output DIR on another disk");
}

void CheckKernel(Findings& findings) {
  int signal_number = 0, is_subreaper = 0;
  const bool has_death_signal = prctl(PR_GET_PDEATHSIG, &signal_number) == 0;
  findings.Add(has_death_signal ? Health::kOk : Health::kFail, "death signal",
               has_death_signal ? "PR_SET_PDEATHSIG works" : "no PR_SET_PDEATHSIG",
               "runs could outlive a killed harness: use Linux without this seccomp filter");
  const bool has_subreaper = prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper) == 0;
  findings.Add(has_subreaper ? Health::kOk : Health::kFail, "subreaper",
               has_subreaper ? "PR_SET_CHILD_SUBREAPER works" : "no PR_SET_CHILD_SUBREAPER",
               "processes that hide could not be found: use Linux without this seccomp filter");
  const bool has_proc = fs::exists("/proc/self/stat");
  findings.Add(has_proc ? Health::kOk : Health::kFail, "/proc",
               has_proc ? "mounted" : "not mounted", "mount -t proc proc /proc");
}

void CheckDescriptors(Findings& findings) {
  struct rlimit limit {};
  getrlimit(RLIMIT_NOFILE, &limit);
  findings.Add(limit.rlim_cur >= 512 ? Health::kOk : Health::kWarn, "open files",
               "up to " + std::to_string(limit.rlim_cur), "ulimit -n 1024");
}

bool HasCudaDriver() {
  return fs::exists("/proc/driver/nvidia/version") || fs::exists("/dev/nvidia0");
}

// What the target can train on, and the driver that nobody uses.
void CheckDevices(Findings& findings, const TargetDescription& target) {
  for (const DeviceInfo& device : target.devices) {
    findings.Add(
        Health::kOk, "device",
        device.kind + (device.name.empty() ? "" : ", " + device.name) +
            (device.memory_bytes > 0 ? ", " + Gibibytes(static_cast<double>(device.memory_bytes))
                                     : ""));
  }
  if (target.CountDevices("cuda") > 0) return;
  if (!HasCudaDriver()) {
    findings.Add(Health::kOk, "CUDA", "no driver: scenarios that require a GPU are skipped");
    return;
  }
  findings.Add(Health::kWarn, "CUDA", "there is a driver, but the target finds no GPU",
               "use the trainer that has GPUs (//trainer:trainwreck-trainer-cuda); if this "
               "is it, see CUDA_VISIBLE_DEVICES and nvidia-smi");
}

void CheckScenarios(Findings& findings, const CommonOptions& options) {
  try {
    const std::string root = FindScenariosRoot(options);
    const std::size_t files = FindScenarioFiles({}, root).size();
    findings.Add(Health::kOk, "scenarios", std::to_string(files) + " files under " + root);
  } catch (const UsageError& error) {
    findings.Add(Health::kWarn, "scenarios", error.what(),
                 "name the folder with --scenarios-root DIR");
  }
}

Run ShortRun(const TargetDescription& target) {
  Run run;
  run.id = "doctor/" + std::to_string(getpid());
  run.scenario = "doctor";
  run.arm = "control";
  for (const ParamInfo& key : target.recipe) run.plan.recipe[key.name] = key.default_value;
  if (target.FindRecipeKey("steps") != nullptr) run.plan.recipe["steps"] = 2;
  run.plan.run = run.id;
  run.plan.scenario = run.scenario;
  run.plan.arm = run.arm;
  run.phases = {{"train", std::nullopt}};
  run.steps = 2;
  run.policy = {.max_restarts = 0, .seconds = 60, .stall_seconds = 30};
  run.cost = 1;
  return run;
}

// Trains two steps for real.
void CheckTraining(Findings& findings, const Session& session, Isolation isolation) {
  const std::string what = isolation == Isolation::kFork ? "train by fork" : "train by exec";
  char folder[] = "/tmp/trainwreck-doctor-XXXXXX";
  if (mkdtemp(folder) == nullptr) {
    findings.Add(Health::kFail, what, "no temporary folder", "make /tmp writable");
    return;
  }
  LauncherOptions options;
  options.target = session.target;
  options.isolation = isolation;
  options.output_dir = folder;
  const Run run = ShortRun(session.description);
  RunResult result;
  try {
    Launcher launcher(options);
    LauncherCallbacks callbacks;
    callbacks.finished = [&](const Run&, RunResult finished) { result = std::move(finished); };
    launcher.RunAll({&run}, callbacks);
  } catch (const std::exception& error) {
    result.detail = error.what();
  }
  const bool is_well = result.end == RunEnd::kCompleted;
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, " in %.3f s", result.wall_seconds);
  std::string seen = is_well ? std::string("two steps") + seconds
                             : std::string(ToString(result.end)) + ": " + result.detail;
  if (!is_well && !result.exits.empty() && !result.exits.front().last_words.empty()) {
    seen += ": " + result.exits.front().last_words;
  }
  findings.Add(is_well ? Health::kOk : Health::kFail, what, seen,
               "call the target by hand: TRAINWRECK_PLAN=" + std::string(folder) + "/" + run.id +
                   "/plan.train.0.json TRAINWRECK_TRACE=/tmp " + session.target.command.front());
  std::error_code ignored;
  if (is_well) fs::remove_all(folder, ignored);
}

// The scenarios' cases as `run` would have them; none when there are none, or invalid ones.
Chosen CasesFor(const Session& session) {
  try {
    return ChooseCases(session, {}, {}, {});
  } catch (const std::runtime_error&) {
    return {};
  }
}

// A declared program, and whether its signals are read: what `run` begins with.
void CheckPreflight(Findings& findings, const Session& session) {
  PreflightResult result;
  try {
    const Chosen chosen = CasesFor(session);
    result = Preflight(session, chosen.cases);
  } catch (const std::exception& error) {
    findings.Add(Health::kFail, "preflight", error.what(), "see the line before");
    return;
  }
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, " in %.3f s", result.wall_seconds);
  const Health health = result.has_errors()       ? Health::kFail
                        : result.findings.empty() ? Health::kOk
                                                  : Health::kWarn;
  findings.Add(health, "preflight",
               result.run.empty()
                   ? "no case that is to pass"
                   : result.run + (health == Health::kFail ? "" : seconds) +
                         "; read: " + (result.signals.empty() ? "nothing" : result.signals));
  for (const PreflightFinding& finding : result.findings) {
    std::cout << Format(finding, session.color);
  }
}

void CheckTarget(Findings& findings, const CommonOptions& options) {
  try {
    const FoundTarget found = FindTarget(options);
    findings.Add(Health::kOk, "target",
                 found.name + (found.note.empty() ? "" : " (" + found.note + ")"));
  } catch (const ConfigurationError& error) {
    findings.Add(Health::kFail, "target", error.what(),
                 "bazel build //harness/cli:trainwreck //trainer:trainwreck-trainer");
    return;
  }
  Session session;
  try {
    session = OpenSession(options, /*builds=*/true);
  } catch (const std::exception& error) {
    findings.Add(Health::kFail, "description", error.what(),
                 "when a library is missing (libtorch_cpu.so, ...): source ci/setup.sh again, or "
                 "set TORCH_HOME");
    return;
  }
  const TargetDescription& target = session.description;
  const bool fits = target.protocol == kProtocolVersion;
  findings.Add(fits ? Health::kOk : Health::kFail, "description",
               target.name + " " + target.version + ", protocol " +
                   std::to_string(target.protocol) + ", " + std::to_string(target.faults.size()) +
                   " faults, " + std::to_string(target.signals.size()) + " signals",
               "build harness and target from the same commit");
  CheckDevices(findings, target);
  if (target.level < 2) {
    CheckPreflight(findings, session);
    return;
  }
  findings.Add(session.target.has_fork_server ? Health::kOk : Health::kWarn, "fork server",
               session.target.has_fork_server ? "offered" : "none: each run starts a fresh process",
               "runs start in 0.2 s instead of milliseconds; a target offers it with the feature "
               "fork-server");
  if (session.target.has_fork_server) CheckTraining(findings, session, Isolation::kFork);
  CheckTraining(findings, session, Isolation::kExec);
}

}  // namespace

int DoctorVerb(const Options& options) {
  Findings findings(WantsColor(options.common.color, STDOUT_FILENO));
  findings.Add(Health::kOk, "trainwreck", std::string(kVersion) + " in " + ProgramFolder());
  CheckCores(findings);
  CheckMemory(findings);
  CheckDisk(findings);
  CheckDescriptors(findings);
  CheckKernel(findings);
  CheckScenarios(findings, options.common);
  CheckTarget(findings, options.common);
  return findings.has_failed() ? kExitInvalid : kExitPassed;
}

}  // namespace trainwreck
