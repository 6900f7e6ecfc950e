#include "harness/session/doctor.h"

#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "harness/launch/gpu_memory.h"
#include "harness/launch/launcher.h"
#include "harness/protocol/recipe_view.h"
#include "harness/session/chosen.h"
#include "harness/session/selection.h"
#include "harness/session/session.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

std::string InSeconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, " in %.3f s", seconds);
  return text;
}

bool HasCudaDriver() {
  return fs::exists("/proc/driver/nvidia/version") || fs::exists("/dev/nvidia0");
}

Run ShortRun(const TargetDescription& target) {
  Run run;
  run.id = "doctor/" + std::to_string(getpid());
  run.scenario = "doctor";
  run.arm = "control";
  for (const ParamInfo& key : target.recipe) run.plan.recipe[key.name] = key.default_value;
  if (target.FindRecipeKey(kStepsKey) != nullptr) run.plan.recipe[kStepsKey] = 2;
  run.plan.run = run.id;
  run.plan.scenario = run.scenario;
  run.plan.arm = run.arm;
  SetPhases(run, {});
  run.steps = 2;
  run.policy = {.max_restarts = 0, .seconds = 60, .stall_seconds = 30};
  run.cost = 1;
  return run;
}

// Trains two steps for real.
Finding CheckTraining(const Session& session, Isolation isolation) {
  const std::string what = isolation == Isolation::kFork ? "train by fork" : "train by exec";
  char folder[] = "/tmp/trainwreck-doctor-XXXXXX";
  if (mkdtemp(folder) == nullptr) {
    return {Health::kFail, what, "no temporary folder", "make /tmp writable"};
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
  if (result.end == RunEnd::kCompleted) {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
    return {Health::kOk, what, "two steps" + InSeconds(result.wall_seconds), ""};
  }
  std::string seen = std::string(ToString(result.end)) + ": " + result.detail;
  if (!result.exits.empty() && !result.exits.front().last_words.empty()) {
    seen += ": " + result.exits.front().last_words;
  }
  return {Health::kFail, what, seen,
          "call the target by hand: TRAINWRECK_PLAN=" + std::string(folder) + "/" + run.id +
              "/plan.train.0.json TRAINWRECK_TRACE=/tmp " + session.target.command.front()};
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
Checked CheckPreflight(const Session& session) {
  try {
    return CheckedPreflight(Preflight(session, CasesFor(session).cases));
  } catch (const std::exception& error) {
    return {{Health::kFail, "preflight", error.what(), "see the line before"}, {}};
  }
}

Finding CheckDescription(const TargetDescription& target) {
  return {target.protocol == kProtocolVersion ? Health::kOk : Health::kFail, "description",
          target.name + " " + target.version + ", protocol " + std::to_string(target.protocol) +
              ", " + std::to_string(target.faults.size()) + " faults, " +
              std::to_string(target.signals.size()) + " signals",
          "build harness and target from the same commit"};
}

}  // namespace

Finding CheckScenarios(const CommonOptions& options) {
  try {
    const std::string root = FindScenariosRoot(options);
    const std::size_t files = FindScenarioFiles({}, root).size();
    return {Health::kOk, "scenarios", std::to_string(files) + " files under " + root, ""};
  } catch (const UsageError& error) {
    return {Health::kWarn, "scenarios", error.what(), "name the folder with --scenarios-root DIR"};
  }
}

std::vector<Finding> CheckDevices(const TargetDescription& target,
                                  const std::vector<std::int64_t>& used, bool has_driver) {
  std::vector<Finding> findings;
  for (std::size_t i = 0; i < target.devices.size(); ++i) {
    const DeviceInfo& device = target.devices[i];
    std::string seen = device.kind + (device.name.empty() ? "" : ", " + device.name);
    if (device.memory_bytes > 0) seen += ", " + Gibibytes(static_cast<double>(device.memory_bytes));
    const std::string others = SayOthers(device, used[i]);
    if (others.empty()) {
      findings.push_back({Health::kOk, "device", seen, ""});
    } else {
      findings.push_back({Health::kWarn, "device", seen + ": " + others,
                          "end them (nvidia-smi names them), or choose another GPU by "
                          "CUDA_VISIBLE_DEVICES; runs get the rest of the memory"});
    }
  }
  if (target.CountDevices("cuda") > 0) return findings;
  if (has_driver) {
    findings.push_back({Health::kWarn, "CUDA", "there is a driver, but the target finds no GPU",
                        "use the trainer that has GPUs (//trainer:trainwreck-trainer-cuda); if "
                        "this is it, see CUDA_VISIBLE_DEVICES and nvidia-smi"});
  } else {
    findings.push_back(
        {Health::kOk, "CUDA", "no driver: scenarios that require a GPU are skipped", ""});
  }
  return findings;
}

Checked CheckedPreflight(const PreflightResult& result) {
  const Health health = result.has_errors()       ? Health::kFail
                        : result.findings.empty() ? Health::kOk
                                                  : Health::kWarn;
  std::string seen = "no case that is to pass";
  if (!result.run.empty()) {
    seen = result.run + (health == Health::kFail ? "" : InSeconds(result.wall_seconds)) +
           "; read: " + (result.signals.empty() ? "nothing" : result.signals);
  }
  return {{health, "preflight", seen, ""}, result.findings};
}

void CheckTarget(const CommonOptions& options, const SayChecked& say) {
  const auto tell = [&](Health health, const std::string& what, const std::string& seen,
                        const std::string& fix = "") {
    say({{health, what, seen, fix}, {}});
  };
  try {
    const FoundTarget found = FindTarget(options);
    tell(Health::kOk, "target", found.name + (found.note.empty() ? "" : " (" + found.note + ")"));
  } catch (const ConfigurationError& error) {
    tell(Health::kFail, "target", error.what(),
         "bazel build //harness/cli:trainwreck //trainer:trainwreck-trainer");
    return;
  }
  Session session;
  try {
    session = OpenSession(options, /*builds=*/true);
  } catch (const std::exception& error) {
    tell(Health::kFail, "description", error.what(),
         "when a library is missing (libtorch_cpu.so, ...): source ci/setup.sh again, or "
         "set TORCH_HOME");
    return;
  }
  const TargetDescription& target = session.description;
  say({CheckDescription(target), {}});
  const std::vector<std::int64_t> used = UsedByOthers(target.devices);
  for (const Finding& finding : CheckDevices(target, used, HasCudaDriver())) say({finding, {}});
  if (target.level < 2) {
    say(CheckPreflight(session));
    return;
  }
  if (session.target.has_fork_server) {
    tell(Health::kOk, "fork server", "offered");
    say({CheckTraining(session, Isolation::kFork), {}});
  } else {
    tell(Health::kWarn, "fork server", "none: each run starts a fresh process",
         "runs start in 0.2 s instead of milliseconds; a target offers it with the feature "
         "fork-server");
  }
  say({CheckTraining(session, Isolation::kExec), {}});
}

}  // namespace trainwreck
