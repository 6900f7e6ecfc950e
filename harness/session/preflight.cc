#include "harness/session/preflight.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "harness/launch/launcher.h"
#include "harness/process/interruption.h"
#include "harness/protocol/recipe_view.h"
#include "harness/session/preflight_causes.h"
#include "harness/targets/python_hooks.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

constexpr int kStepsToSee = 2;
constexpr int kPatience = 10;  // steps of other signals that a signal nobody asks about may lag

// Holds a folder for as long as this process, or one that guards what it started, lives.
class FolderLock {
 public:
  FolderLock(const std::string& path, int how)
      : fd_(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)) {
    holds_ = fd_ >= 0 && flock(fd_, how) == 0;
  }
  ~FolderLock() {
    if (fd_ >= 0) close(fd_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  bool holds() const { return holds_; }

 private:
  int fd_;
  bool holds_ = false;
};

// A folder that goes with its owner. One whose owner was killed goes when the next one is made.
class PreflightFolder {
 public:
  PreflightFolder() {
    const std::string all = CacheFolder() + "/preflight";
    fs::create_directories(all);
    const FolderLock making(all, LOCK_EX);  // nobody sees a folder that has no owner yet
    RemoveLeftovers(all);
    path_ = all + "/XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) {
      throw std::system_error(errno, std::generic_category(), path_);
    }
    lock_ = std::make_unique<FolderLock>(path_, LOCK_EX | LOCK_NB);
  }
  ~PreflightFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  PreflightFolder(const PreflightFolder&) = delete;
  PreflightFolder& operator=(const PreflightFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  static void RemoveLeftovers(const std::string& all) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(all, ignored)) {
      if (FolderLock(entry.path().string(), LOCK_EX | LOCK_NB).holds()) {
        fs::remove_all(entry.path(), ignored);
      }
    }
  }

  std::string path_;
  std::unique_ptr<FolderLock> lock_;
};

// Steps in which some rank has the signal.
int CountSteps(const RunTrace& trace, const std::string& signal) {
  int most = 0;
  for (const auto& [key, series] : trace.series) {
    if (key.first != signal && key.first.rfind(signal + "{", 0) != 0) continue;
    most =
        std::max(most, static_cast<int>(std::count_if(series.present.begin(), series.present.end(),
                                                      [](auto has) { return has != 0; })));
  }
  return most;
}

std::set<std::string> MentionedSignals(const Scenario& scenario) {
  std::set<std::string> names;
  const auto add = [&](const Check& check) {
    for (const std::string& name : check.formula.signals()) {
      names.insert(name.substr(0, name.find('{')));
    }
  };
  for (const Check& check : scenario.healthy) add(check);
  for (const Check& check : scenario.symptoms) add(check);
  if (scenario.quality) add(*scenario.quality);
  return names;
}

const Run* ControlOf(const Case& one) {
  for (const ArmPlan& arm : one.arms) {
    if (arm.kind == ArmKind::kControl && !arm.runs.empty()) return &arm.runs.front();
  }
  return nullptr;
}

Run DefaultRun(const TargetDescription& target) {
  Run run;
  run.scenario = target.name;
  run.arm = "control";
  for (const ParamInfo& key : target.recipe) run.plan.recipe[key.name] = key.default_value;
  SetPhases(run, {});
  const RecipeView recipe(run.plan.recipe);
  run.steps = recipe.Int(kStepsKey).value_or(1);
  run.ranks = recipe.Int(kRanksKey).value_or(1);
  if (std::count(target.features.begin(), target.features.end(), "one-process") > 0)
    run.processes = 1;
  run.cost = 1;
  return run;
}

// Of its sources and of its hooks.
std::vector<SignalInfo> SignalsOf(const TargetSpec& spec) {
  if (spec.hooks.empty()) return spec.signals;
  TargetDescription target;
  target.signals = spec.signals;
  AddPythonHooks(spec, target);
  return target.signals;
}

RunResult Launch(const Session& session, Run& run, const std::string& folder,
                 const std::function<bool(const RunTrace&)>& is_enough) {
  run.id = "preflight/control/0";
  run.plan.run = run.id;
  run.policy.max_restarts = 0;
  LauncherOptions options;
  options.target = session.target;
  options.isolation = Isolation::kExec;
  options.output_dir = folder;
  RunResult result;
  LauncherCallbacks callbacks;
  callbacks.is_decided = [&](const Run&, const RunTrace& trace) { return is_enough(trace); };
  callbacks.finished = [&](const Run&, RunResult done) { result = std::move(done); };
  Launcher(options).RunAll({&run}, callbacks);
  return result;
}

class Flight {
 public:
  Flight(const Session& session, const TargetSpec& spec, const std::set<std::string>& mentioned)
      : session_(session), spec_(spec), signals_(SignalsOf(spec)) {
    for (const SignalInfo& signal : signals_) {
      if (signal.sparse || signal.optional) continue;
      declared_.push_back(signal.name);
      if (mentioned.contains(signal.name)) required_.insert(signal.name);
    }
  }

  PreflightResult Make(Run run) {
    const PreflightFolder folder;
    RunResult result = Launch(session_, run, folder.path(),
                              [&](const RunTrace& trace) { return HasSeenAll(run, trace); });
    PreflightResult seen;
    seen.run = run.arm + " of " + run.scenario;
    seen.wall_seconds = result.wall_seconds;
    seen.disk_bytes = result.disk_bytes;
    if (WasInterrupted()) return seen;
    for (const SignalInfo& signal : signals_) {
      if (CountSteps(result.trace, signal.name) == 0) continue;
      seen.signals += (seen.signals.empty() ? "" : ", ") + signal.name;
    }
    seen.findings = FindCauses(spec_, run, result, MissingIn(result.trace));
    seen.printed = PrintedLines(result, "stdout");
    seen.trace = std::move(result.trace);
    return seen;
  }

 private:
  bool HasSeenAll(const Run& run, const RunTrace& trace) const {
    const int enough = std::min(kStepsToSee, std::max(run.steps, 1));
    int most = 0;
    bool has_all = true;
    for (const SignalInfo& signal : signals_) most = std::max(most, CountSteps(trace, signal.name));
    for (const std::string& signal : declared_) {
      const int steps = CountSteps(trace, signal);
      if (steps < enough && required_.contains(signal)) return false;
      has_all = has_all && steps >= enough;
    }
    return most >= enough && (has_all || most >= kPatience);
  }

  std::vector<MissingSignal> MissingIn(const RunTrace& trace) const {
    std::vector<MissingSignal> missing;
    for (const std::string& signal : declared_) {
      if (CountSteps(trace, signal) > 0) continue;
      missing.push_back({signal, required_.contains(signal)});
    }
    return missing;
  }

  const Session& session_;
  const TargetSpec& spec_;
  const std::vector<SignalInfo> signals_;
  std::vector<std::string> declared_;  // that are to come with every step
  std::set<std::string> required_;     // of these, what formulas mention
};

}  // namespace

bool PreflightResult::has_errors() const {
  return std::any_of(findings.begin(), findings.end(),
                     [](const PreflightFinding& finding) { return finding.is_error; });
}

PreflightResult Preflight(const Session& session, const std::vector<Case>& cases) {
  if (session.target_file.empty() || session.description.level >= 2) return {};
  const TargetFile file = LoadTargetFile(session.target_file);
  const TargetSpec* spec = file.Find(session.target_name);
  if (spec == nullptr) return {};
  if (cases.empty()) {
    std::set<std::string> all;
    for (const SignalInfo& signal : SignalsOf(*spec)) all.insert(signal.name);
    return Flight(session, *spec, all).Make(DefaultRun(session.description));
  }
  for (const Case& one : cases) {
    // A case that is to fail or to be skipped says nothing about the program.
    if (!one.skip_reason.empty() || one.scenario->expect.verdict != VerdictKind::kPass) continue;
    if (const Run* control = ControlOf(one)) {
      return Flight(session, *spec, MentionedSignals(*one.scenario)).Make(*control);
    }
  }
  return {};
}

std::optional<int> StepsMade(const Session& session, int asked) {
  const PreflightFolder folder;
  Run run = DefaultRun(session.description);
  run.plan.recipe[kStepsKey] = asked;
  run.steps = 0;  // however many there are, they are counted
  const auto made = [](const RunTrace& trace) { return CountSteps(trace, "step_s"); };
  const RunResult result = Launch(session, run, folder.path(),
                                  [&](const RunTrace& trace) { return made(trace) > 2 * asked; });
  const bool is_known = result.end == RunEnd::kCompleted || result.end == RunEnd::kDecided;
  return is_known ? std::optional(made(result.trace)) : std::nullopt;
}

std::string Format(const PreflightFinding& finding, bool color) {
  std::string text = Format(finding.diagnostic, color);
  if (!finding.is_error) {
    if (const std::size_t at = text.find("error: "); at != std::string::npos) {
      text.replace(at, 7, "warning: ");
    }
  }
  for (const std::string& line : finding.lines) text += "    | " + line + "\n";
  return text;
}

void RequirePreflight(const CommonOptions& options, const Session& session,
                      const std::vector<Case>& cases) {
  if (!options.preflight) return;
  const PreflightResult result = Preflight(session, cases);
  for (const PreflightFinding& finding : result.findings) {
    std::cerr << Format(finding, session.color);
  }
  if (!result.has_errors()) return;
  throw ConfigurationError("the preflight run (" + result.run +
                           ") failed, so nothing else was run; --no-preflight leaves it out");
}

}  // namespace trainwreck
