#include "harness/bisect/trial.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "harness/bisect/seed_result.h"
#include "harness/launch/launcher.h"
#include "harness/process/command.h"
#include "harness/report/report.h"
#include "harness/session/selection.h"
#include "harness/session/session.h"
#include "harness/session/storage.h"
#include "harness/session/stored_trace.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

std::string LastLine(const std::string& path) {
  std::ifstream file(path);
  std::string last;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("try '", 0) != 0 && !line.empty()) last = line;
  }
  constexpr const char* kOurs = "trainwreck: ";
  return last.rfind(kOurs, 0) == 0 ? last.substr(std::string(kOurs).size()) : last;
}

// Absolute, as the commits' own checkouts have other files.
struct ScenarioPlace {
  std::string file;
  std::string point;
  std::string root;
};

ScenarioPlace FindScenario(const BisectOptions& options) {
  ScenarioPlace place;
  place.root = FindScenariosRoot(options.common);
  const auto files = FindScenarioFiles({options.scenario}, place.root);
  if (files.size() != 1) {
    throw UsageError("'" + options.scenario + "' is " + std::to_string(files.size()) +
                     " scenarios; name one");
  }
  place.file = fs::canonical(files.front().path).string();
  place.point = files.front().point;
  place.root = fs::exists(place.root) ? fs::canonical(place.root).string() : place.root;
  return place;
}

formula::Formula ParseMetric(const std::string& text) {
  auto parsed = formula::Formula::Parse(text);
  if (parsed.formula && parsed.errors.empty()) return std::move(*parsed.formula);
  throw UsageError("--metric: " +
                   (parsed.errors.empty() ? "no formula" : parsed.errors.front().message));
}

// A scenario, judged seed by seed by `trainwreck run` in the worktree; or the margin of a formula,
// read in runs of the arms that it asks about and of no others.
class ScenarioTrial : public Trial {
 public:
  ScenarioTrial(const BisectOptions& options, TargetPlace target)
      : options_(options),
        scenario_(FindScenario(options)),
        target_(std::move(target)),
        cores_(options.jobs > 0 ? options.jobs : UsableCores()) {
    if (!options.metric.empty()) metric_ = ParseMetric(options.metric);
  }

  Json Question() const override {
    return {ReadWholeFile(scenario_.file), scenario_.point, options_.common.target, options_.metric,
            options_.arm};
  }
  int SeedsAtOnce() const override {
    // A seed of a scenario is several runs already; only with many cores is there room for more.
    constexpr int kCoresPerSeed = 4;
    return std::max(1, cores_ / kCoresPerSeed);
  }
  std::vector<SeedResult> Run(const TrialRequest& request) override;

 private:
  std::vector<std::string> CommandLine(const TrialRequest& request,
                                       const std::string& output) const;
  std::vector<SeedResult> Judged(const TrialRequest& request, const std::string& output) const;
  std::vector<SeedResult> Measured(const TrialRequest& request, const std::string& output) const;

  const BisectOptions& options_;
  ScenarioPlace scenario_;
  TargetPlace target_;
  std::optional<formula::Formula> metric_;
  int cores_;
};

std::vector<std::string> ScenarioTrial::CommandLine(const TrialRequest& request,
                                                    const std::string& output) const {
  const int end = request.first_seed + request.seeds;
  std::vector<std::string> command = {fs::read_symlink("/proc/self/exe").string(),
                                      "run",
                                      scenario_.file,
                                      "--cores",
                                      std::to_string(cores_),
                                      "--output",
                                      output,
                                      "--keep",
                                      "none",
                                      "--color",
                                      "never"};
  auto add = [&](const std::string& option, const std::string& value) {
    command.push_back(option);
    command.push_back(value);
  };
  if (metric_) {
    std::set<std::string> arms = metric_->arms();
    arms.insert(options_.arm);
    for (const std::string& arm : arms) add("--arm", arm);
    for (int seed = request.first_seed; seed < end; ++seed) add("--seed", std::to_string(seed));
  } else {
    add("--each-seed", std::to_string(request.first_seed) + ":" + std::to_string(end));
    if (request.control_only) command.push_back("--control-only");
  }
  if (fs::is_directory(scenario_.root)) add("--scenarios-root", scenario_.root);
  if (!scenario_.point.empty()) add("--point", scenario_.point);
  if (!target_.program.empty()) {
    add("--target", request.place.folder + "/" + target_.program);
  } else if (!options_.common.target.empty()) {
    add("--target", options_.common.target);
  }
  return command;
}

std::vector<SeedResult> ScenarioTrial::Judged(const TrialRequest& request,
                                              const std::string& output) const {
  std::vector<SeedResult> results;
  if (!fs::exists(output + "/verdicts.json")) return results;
  const StoredReport report = ReadJsonReport(output + "/verdicts.json");
  if (static_cast<int>(report.verdicts.size()) != request.seeds) {
    throw UsageError("'" + options_.scenario + "' has several points; name one, as 'nan/x[sgd]'");
  }
  for (const Verdict& verdict : report.verdicts) {
    const int seed = std::stoi(verdict.case_name.substr(verdict.case_name.rfind('@') + 1));
    results.push_back(SeedResultOf(verdict, request.commit, seed));
  }
  return results;
}

// Run folders are named <case>/<arm>/<seed>.
std::vector<SeedResult> ScenarioTrial::Measured(const TrialRequest& request,
                                                const std::string& output) const {
  std::vector<SeedResult> results;
  const auto target = fs::is_directory(output) ? FindStoredDescription(output) : std::nullopt;
  if (!target) return results;
  for (const auto& entry : fs::recursive_directory_iterator(output)) {
    const fs::path folder = entry.path().parent_path();
    if (entry.path().filename() != "run.json" || folder.parent_path().filename() != options_.arm) {
      continue;
    }
    SeedResult result;
    result.commit = request.commit;
    result.seed = std::stoi(folder.filename().string());
    const StoredRun stored = LoadStoredRun(folder.string());
    if (stored.end == RunEnd::kInfrastructure) {
      result.error = std::string(ToString(*stored.end)) + ": " + stored.detail;
    } else {
      result.margin = StoredMargin(folder.string(), *metric_, *target);
    }
    results.push_back(result);
  }
  if (static_cast<int>(results.size()) > request.seeds) {
    throw UsageError("'" + options_.scenario + "' has several points; name one, as 'nan/x[sgd]'");
  }
  return results;
}

std::vector<SeedResult> ScenarioTrial::Run(const TrialRequest& request) {
  const std::string output = request.folder + "/runs", log = request.folder + "/last-run.log";
  fs::remove_all(output);
  fs::remove(log);
  const std::string here =
      (fs::path(request.place.folder) / target_.declaration).parent_path().string();
  const CommandResult called =
      RunCommand(CommandLine(request, output),
                 {.folder = here, .log = log, .environment = request.place.environment});
  if (called.status == kExitInterrupted) throw Interrupted();
  if (called.status == kExitUsage) {
    throw UsageError("it cannot be run so: " + LastLine(log) + "; see " + log);
  }
  std::vector<SeedResult> results = metric_ ? Measured(request, output) : Judged(request, output);
  fs::remove_all(output);
  if (results.empty()) {
    // The target says nothing, or does not know what the scenario asks for.
    SeedResult none;
    none.commit = request.commit;
    none.seed = request.first_seed;
    none.error = "trainwreck run gave status " + std::to_string(called.status) + ": " +
                 LastLine(log) + "; see " + log;
    results.push_back(none);
  }
  std::sort(results.begin(), results.end(),
            [](const SeedResult& a, const SeedResult& b) { return a.seed < b.seed; });
  for (SeedResult& result : results) {
    result.seconds = called.seconds / static_cast<double>(results.size());
  }
  return results;
}

// Any command, with the exit statuses of `git bisect run`.
class CommandTrial : public Trial {
 public:
  explicit CommandTrial(const BisectOptions& options) : options_(options) {}

  Json Question() const override { return {"test", options_.test}; }
  std::vector<SeedResult> Run(const TrialRequest& request) override {
    constexpr int kSkip = 125, kAbort = 128;
    const std::string log = request.folder + "/last-run.log";
    fs::remove(log);
    std::map<std::string, std::string> environment = request.place.environment;
    environment["TRAINWRECK_SEED"] = std::to_string(request.first_seed);
    const CommandResult called = RunCommand({"/bin/sh", "-c", options_.test},
                                            {.folder = request.place.folder,
                                             .log = log,
                                             .environment = std::move(environment),
                                             .limit_seconds = options_.test_limit_seconds});
    SeedResult result;
    result.commit = request.commit;
    result.seed = request.first_seed;
    result.seconds = called.seconds;
    if (called.timed_out) {
      result.error = "the test takes longer than --test-limit";
      return {result};
    }
    result.status = called.status;
    const std::string status = "the test gave status " + std::to_string(called.status);
    if (called.status >= kAbort) {
      throw BisectionStopped{status + " at " + request.id + " with seed " +
                             std::to_string(request.first_seed) +
                             ", and 128 and above end a bisection" +
                             " (where a crash is the failure, say CMD || exit 1); see " + log};
    }
    if (called.status == kSkip) {
      result.is_skip = true;
      result.error = status + ": it cannot be tested";
    } else if (called.status != 0) {
      result.failures = {{"test", "", ""}};
    }
    return {result};
  }

 private:
  const BisectOptions& options_;
};

}  // namespace

std::unique_ptr<Trial> MakeTrial(const BisectOptions& options, const TargetPlace& target) {
  const BisectOptions& bisect = options;
  if (bisect.test.empty()) return std::make_unique<ScenarioTrial>(options, target);
  if (!bisect.scenario.empty()) {
    throw UsageError("bisect: '" + bisect.scenario + "' and --test are two tests; name one");
  }
  if (!bisect.metric.empty()) {
    throw UsageError("--metric is read in runs of a scenario; --test has only its exit status");
  }
  if (!options.common.target.empty()) {
    throw UsageError(
        "--target is what a scenario runs; name what the build makes for --test with --artifact");
  }
  return std::make_unique<CommandTrial>(bisect);
}

}  // namespace trainwreck
