#include "harness/launch/fake_runs.h"

#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <thread>

#include "harness/launch/active_run.h"
#include "harness/text/files.h"

namespace trainwreck {

namespace fs = std::filesystem;

std::string FakeTargetPath() {
  if (const char* path = std::getenv("TRAINWRECK_FAKE_TARGET")) return path;
  const fs::path path = fs::absolute("harness/launch/fake_target");
  if (!fs::exists(path)) throw std::runtime_error("no fake target at " + path.string());
  return path;
}

Target FakeTarget() {
  Target target;
  target.command = {FakeTargetPath()};
  target.has_fork_server = true;
  return target;
}

std::string FreshFolder(const std::string& name) {
  const char* base = std::getenv("TEST_TMPDIR");
  std::string path = std::string(base != nullptr ? base : "/tmp") + "/" + name + ".XXXXXX";
  if (mkdtemp(path.data()) == nullptr) throw std::runtime_error("cannot create " + path);
  return path;
}

Run FakeRun(const std::string& id, const std::string& mode, const Recipe& changes) {
  Run run;
  run.id = id;
  run.scenario = "fake";
  run.arm = "control";
  run.plan.run = id;
  run.plan.recipe = {{"fake.mode", mode},   {"fake.at", 3},      {"fake.rank", 0},
                     {"fake.attempts", 1},  {"fake.step_ms", 0}, {"optimizer.lr", 0.1},
                     {"parallel.ranks", 1}, {"steps", 20}};
  for (const auto& [key, value] : changes) run.plan.recipe[key] = value;
  run.ranks = run.plan.recipe["parallel.ranks"].get<int>();
  run.steps = run.plan.recipe["steps"].get<int>();
  run.phases = {Phase{"train", std::nullopt}};
  run.policy.seconds = 60;
  run.policy.stall_seconds = 30;
  run.cost = 1;
  return run;
}

std::map<std::string, RunResult> RunFakes(
    const std::list<Run>& runs, Isolation isolation,
    const std::function<void(LauncherOptions&)>& adjust,
    const std::function<bool(const Run&, const RunTrace&)>& is_decided,
    const std::function<void(int running, int done, int total)>& progress) {
  LauncherOptions options;
  options.target = FakeTarget();
  options.isolation = isolation;
  options.cores = 2;
  options.output_dir = FreshFolder("runs");
  if (adjust) adjust(options);
  std::map<std::string, RunResult> results;
  LauncherCallbacks callbacks;
  callbacks.is_decided = is_decided;
  callbacks.progress = progress;
  callbacks.finished = [&](const Run& run, RunResult result) {
    results[run.id] = std::move(result);
  };
  std::vector<const Run*> pointers;
  for (const Run& run : runs) pointers.push_back(&run);
  Launcher launcher(options);
  launcher.RunAll(pointers, callbacks);
  return results;
}

std::vector<int> ProcessesWith(const std::string& marker) {
  std::vector<int> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const int pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 0) continue;
    const std::string text = ReadFile(entry.path() / "environ").value_or("");
    if (text.find(marker) != std::string::npos) found.push_back(pid);
  }
  return found;
}

std::vector<int> AwaitNoProcessWith(const std::string& marker, double seconds) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (;;) {
    std::vector<int> found = ProcessesWith(marker);
    if (found.empty() || std::chrono::steady_clock::now() > deadline) return found;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

std::vector<Event> EventsNamed(const RunTrace& trace, const std::string& name) {
  std::vector<Event> found;
  for (const Event& event : trace.events) {
    if (event.name == name) found.push_back(event);
  }
  return found;
}

}  // namespace trainwreck
