// trainwreck bisect: the commit that broke a scenario, found through noise. Every commit is built
// in a worktree of ours and run by `trainwreck run` there, seed by seed.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <system_error>

#include "harness/bisect/bisection.h"
#include "harness/bisect/command.h"
#include "harness/bisect/repository.h"
#include "harness/bisect/workshop.h"
#include "harness/cli/between.h"
#include "harness/cli/seed_result.h"
#include "harness/cli/selection.h"
#include "harness/cli/session.h"
#include "harness/cli/storage.h"
#include "harness/cli/stored_trace.h"
#include "harness/cli/verbs.h"
#include "harness/launch/launcher.h"
#include "harness/protocol/digest.h"
#include "harness/report/report.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSchema = "trainwreck/bisect";
constexpr int kLogVersion = 1;

std::string Percent(double p) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f%%", 100 * p);
  return text;
}

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

// Absolute, as the commits' own checkouts have other files.
struct ScenarioPlace {
  std::string file;
  std::string point;
  std::string root;
};

ScenarioPlace FindScenario(const Options& options) {
  ScenarioPlace place;
  place.root = FindScenariosRoot(options.common);
  const auto files = FindScenarioFiles({options.bisect.scenario}, place.root);
  if (files.size() != 1) {
    throw UsageError("'" + options.bisect.scenario + "' is " + std::to_string(files.size()) +
                     " scenarios; name one");
  }
  place.file = fs::canonical(files.front().path).string();
  place.point = files.front().point;
  place.root = fs::exists(place.root) ? fs::canonical(place.root).string() : place.root;
  return place;
}

// Where a commit's worktree has what trains. Both are empty when it is the same for all commits.
struct TargetPlace {
  std::string program;      // a program that the repository has or builds
  std::string declaration;  // or the trainwreck.yaml that declares a target
};

std::string BelowRoot(const std::string& path, const Repository& repository) {
  std::error_code error;
  const fs::path relative = fs::weakly_canonical(path, error)
                                .lexically_relative(fs::weakly_canonical(repository.root(), error));
  return relative.empty() || *relative.begin() == ".." ? "" : relative.string();
}

TargetPlace FindTargetPlace(const Options& options, const Repository& repository) {
  const std::string& target = options.common.target;
  if (const std::string file = DeclaringFile(options.common); !file.empty()) {
    // Its paths lead to the commits only when it lies among them.
    const std::string declaration = BelowRoot(file, repository);
    if (!declaration.empty()) return {"", declaration};
    throw UsageError("the target is declared in " + file +
                     ", outside of the repository: it would be the same at every commit");
  }
  if (target.empty() || target == "reference") return {};
  if (fs::path(target).is_relative()) return {fs::path(target).lexically_normal().string(), ""};
  return {BelowRoot(target, repository), ""};
}

class BisectSession {
 public:
  explicit BisectSession(const Options& options);
  int Run();

 private:
  std::string Folder() const;
  Json Header() const;
  void Lock();
  void Resume();
  void Record(const Json& record);
  bool Prepare(int commit);
  void RunSeeds(int commit, const char* phase);
  std::vector<SeedResult> Execute(int commit, int first, int count);
  std::optional<double> MarginOf(const Verdict& verdict, const std::string& output) const;
  int Conclude(const Step& step);
  void PrintStep(int commit, const char* phase, const SeedResult& result) const;
  std::string Name(int commit) const {
    return repository_.Describe(bisection_->commits()[commit].id);
  }

  const Options& options_;
  Repository repository_;
  std::string good_, bad_;
  ScenarioPlace scenario_;
  TargetPlace target_;
  std::string folder_;
  std::unique_ptr<Bisection> bisection_;
  std::unique_ptr<Workshop> workshop_;
  std::unique_ptr<Journal> journal_;
  int cores_;
  std::optional<formula::Formula> metric_;
};

std::optional<formula::Formula> ParseMetric(const std::string& text) {
  if (text.empty()) return std::nullopt;
  formula::Formula::ParseResult parsed = formula::Formula::Parse(text);
  if (parsed.formula && parsed.errors.empty()) return *parsed.formula;
  throw UsageError("--metric: " +
                   (parsed.errors.empty() ? "no formula" : parsed.errors.front().message));
}

SearchOptions SearchOptionsFor(const BisectOptions& options) {
  SearchOptions search;
  search.confidence = options.confidence;
  search.max_runs = options.max_runs;
  return search;
}

BisectSession::BisectSession(const Options& options)
    : options_(options),
      repository_("."),
      good_(repository_.Resolve(options.bisect.good, "--good")),
      bad_(repository_.Resolve(options.bisect.bad, "--bad")),
      scenario_(FindScenario(options)),
      target_(FindTargetPlace(options, repository_)),
      cores_(options.bisect.jobs > 0 ? options.bisect.jobs : UsableCores()),
      metric_(ParseMetric(options.bisect.metric)) {
  folder_ = Folder();
  fs::create_directories(folder_);
  // Nothing of ours shows in `git status`.
  WriteWholeFile(repository_.root() + "/.trainwreck/bisect/.gitignore", "*\n");
  Lock();
  if (options.bisect.fresh) {
    for (const char* name : {"log.jsonl", "builds", "runs"}) fs::remove_all(folder_ + "/" + name);
  }
  bisection_ = std::make_unique<Bisection>(
      repository_.Between(good_, bad_),
      BisectionOptions{SearchOptionsFor(options.bisect), !options.bisect.metric.empty()});
  workshop_ = std::make_unique<Workshop>(
      repository_,
      WorkshopOptions{folder_, options.bisect.build, target_.program, options.bisect.artifacts,
                      target_.declaration, options.bisect.build_limit_seconds});
  Resume();
}

// One for each question, so that the same command goes on where it was.
std::string BisectSession::Folder() const {
  Json question = {good_,
                   bad_,
                   ReadWholeFile(scenario_.file),
                   scenario_.point,
                   options_.common.target,
                   options_.bisect.build,
                   options_.bisect.artifacts,
                   options_.bisect.metric,
                   options_.bisect.arm};
  return repository_.root() + "/.trainwreck/bisect/" + DigestText(question.dump());
}

// Held until we and every build of ours are gone: also after a SIGKILL no two are in one worktree.
void BisectSession::Lock() {
  const int fd = open((folder_ + "/lock").c_str(), O_RDWR | O_CREAT, 0644);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), folder_ + "/lock");
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return;
  std::cerr << "trainwreck: waiting for the bisection that runs in " << folder_ << "\n";
  while (flock(fd, LOCK_EX) != 0) {
    if (Launcher::interrupted()) throw Interrupted();
  }
}

Json BisectSession::Header() const {
  Json commits = Json::array();
  for (const Commit& commit : bisection_->commits()) {
    commits.push_back({{"id", commit.id}, {"tree", commit.tree}, {"parents", commit.parents}});
  }
  return {{"t", "begin"},
          {"schema", kSchema},
          {"version", kLogVersion},
          {"command_line", options_.command_line},
          {"scenario", scenario_.file},
          {"confidence", options_.bisect.confidence},
          {"max_runs", options_.bisect.max_runs},
          {"metric", options_.bisect.metric},
          {"commits", commits}};
}

void BisectSession::Resume() {
  const std::string path = folder_ + "/log.jsonl";
  std::vector<Json> records;
  if (fs::exists(path)) records = Journal::Load(path);
  journal_ = std::make_unique<Journal>(path);
  if (records.empty()) {
    journal_->Append(Header());
    return;
  }
  for (const Json& record : records) bisection_->Apply(record);
  std::cout << "# goes on after " << bisection_->runs() << " runs: " << path << "\n";
}

void BisectSession::Record(const Json& record) {
  journal_->Append(record);
  bisection_->Apply(record);
}

// False when the commit cannot be tested.
bool BisectSession::Prepare(int number) {
  const Commit& commit = bisection_->commits()[number];
  const Built built = workshop_->Prepare(commit);
  if (built.ok && built.from_cache && bisection_->IsBuilt(number)) return true;
  Record(Bisection::LogBuild(commit, number, built.ok, built.program, built.seconds,
                             built.from_cache, built.why));
  if (!built.ok) {
    std::cout << "skip    " << Name(number) << ": " << built.why << ", see " << built.log << "\n";
  }
  return built.ok;
}

// Runs `count` seeds of the commit that lies in the worktree.
std::vector<SeedResult> BisectSession::Execute(int commit, int first, int count) {
  const std::string output = folder_ + "/runs";
  fs::remove_all(output);
  std::vector<std::string> command = {"/proc/self/exe",
                                      "run",
                                      scenario_.file,
                                      "--each-seed",
                                      std::to_string(first) + ":" + std::to_string(first + count),
                                      "--cores",
                                      std::to_string(cores_),
                                      "--output",
                                      output,
                                      "--keep",
                                      options_.bisect.metric.empty() ? "none" : "all",
                                      "--color",
                                      "never"};
  command[0] = fs::read_symlink(command[0]).string();
  if (fs::is_directory(scenario_.root)) {
    command.insert(command.end(), {"--scenarios-root", scenario_.root});
  }
  if (!scenario_.point.empty()) command.insert(command.end(), {"--point", scenario_.point});
  if (!target_.program.empty()) {
    command.insert(command.end(), {"--target", workshop_->worktree() + "/" + target_.program});
  } else if (!options_.common.target.empty()) {
    command.insert(command.end(), {"--target", options_.common.target});
  }
  const std::string log = folder_ + "/last-run.log";
  fs::remove(log);
  const std::string here =
      (fs::path(workshop_->worktree()) / target_.declaration).parent_path().string();
  const CommandResult called = RunCommand(command, {.folder = here, .log = log, .environment = {}});
  if (called.status == kExitInterrupted) throw Interrupted();
  if (called.status == kExitUsage) throw UsageError("the commits cannot be run so, see " + log);
  std::vector<SeedResult> results;
  if (fs::exists(output + "/verdicts.json")) {
    const StoredReport report = ReadJsonReport(output + "/verdicts.json");
    if (static_cast<int>(report.verdicts.size()) != count) {
      throw UsageError("'" + options_.bisect.scenario +
                       "' has several points; name one, as 'nan/x[sgd]'");
    }
    for (const Verdict& verdict : report.verdicts) {
      const int seed = std::stoi(verdict.case_name.substr(verdict.case_name.rfind('@') + 1));
      results.push_back(SeedResultOf(verdict, commit, seed));
      if (metric_) results.back().margin = MarginOf(verdict, output);
    }
  } else {
    // The target says nothing, or does not know what the scenario asks for.
    SeedResult none;
    none.commit = commit;
    none.seed = first;
    none.error = "trainwreck run gave status " + std::to_string(called.status) + ", see " + log;
    results.push_back(none);
  }
  std::sort(results.begin(), results.end(),
            [](const SeedResult& a, const SeedResult& b) { return a.seed < b.seed; });
  for (SeedResult& result : results) {
    result.seconds = called.seconds / static_cast<double>(results.size());
  }
  return results;
}

// Empty when the run is not there or the formula is unknown.
std::optional<double> BisectSession::MarginOf(const Verdict& verdict,
                                              const std::string& output) const {
  const auto runs = verdict.runs.find(options_.bisect.arm);
  if (runs == verdict.runs.end()) {
    throw UsageError("--arm: the scenario has no arm '" + options_.bisect.arm + "' that is run");
  }
  const auto target = FindStoredDescription(output);
  const std::string& folder = runs->second.front().folder;
  if (!target || !fs::is_directory(folder)) return std::nullopt;
  return StoredMargin(folder, *metric_, *target);
}

void BisectSession::PrintStep(int commit, const char* phase, const SeedResult& result) const {
  std::string seen = "pass";
  if (!result.error.empty()) {
    seen = "error";
  } else if (result.margin) {
    seen = Number(*result.margin);
  } else if (!result.failures.empty()) {
    seen = "fail";
  } else if (!result.undecided.empty()) {
    seen = "unknown";
  }
  const Search& search = bisection_->search();
  std::printf("%-7s %-7s seed %-3d %s", phase, seen.c_str(), result.seed, Name(commit).c_str());
  std::printf("   likeliest: %s %s\n",
              bisection_->commits()[search.suspects().front()].id.substr(0, 7).c_str(),
              Percent(search.confidence()).c_str());
  std::fflush(stdout);
}

void BisectSession::RunSeeds(int commit, const char* phase) {
  if (!Prepare(commit)) return;
  // A seed of a scenario is several runs already; only with many cores is there room for more.
  constexpr int kCoresPerSeed = 4;
  const int first = bisection_->NextSeed();
  const int count = std::max(1, cores_ / kCoresPerSeed);
  const int left = std::max(1, options_.bisect.max_runs - bisection_->runs());
  for (const SeedResult& result : Execute(commit, first, std::min(count, left))) {
    Record(Bisection::LogRun(result));
    PrintStep(commit, phase, result);
    if (!result.error.empty()) std::cout << "        " << result.error << "\n";
  }
}

std::string Tallied(const Bisection::Tally& tally, const Bisection& bisection) {
  const int total = tally.passed + tally.failed;
  if (!bisection.sought()) return std::to_string(total) + " runs";
  return std::to_string(tally.failed) + " of " + std::to_string(total) + " runs fail";
}

int BisectSession::Conclude(const Step& step) {
  const Search& search = bisection_->search();
  const int candidates = static_cast<int>(bisection_->commits().size()) - 1;
  const bool is_found = step.kind == Step::kCulprit;
  Json end = {{"t", "end"}, {"runs", bisection_->runs()}, {"builds", bisection_->builds()}};
  if (is_found) {
    const auto& suspects = search.suspects();
    std::cout << (suspects.size() == 1 ? "culprit" : "one of these, those between cannot be tested")
              << "\n";
    end["culprits"] = Json::array();
    for (int suspect : suspects) {
      std::cout << "  " << Name(suspect) << "\n";
      end["culprits"].push_back(bisection_->commits()[suspect].id);
    }
    std::cout << "confidence " << Percent(search.confidence()) << "\n";
    if (bisection_->sought()) std::cout << "failure    " << bisection_->sought()->Text() << "\n";
    std::cout << "with it    " << Tallied(bisection_->TallyOf(search.Witness()), *bisection_)
              << "\n";
    for (int parent : search.WitnessParents()) {
      std::cout << "before it  " << Tallied(bisection_->TallyOf(parent), *bisection_) << " ("
                << Name(parent) << ")\n";
    }
    std::cout << (options_.bisect.metric.empty() ? "rates      " : "margins    ")
              << Number(search.GoodLevel()) << " before, " << Number(search.BadLevel())
              << " after\n";
    end["confidence"] = search.confidence();
  } else {
    const bool is_alike = step.kind == Step::kNoChange || bisection_->IsSkipped(0) ||
                          bisection_->IsSkipped(candidates);
    std::cout << (is_alike
                      ? bisection_->WhyNoChange()
                      : "undecided: --max-runs is reached; likeliest " +
                            Name(search.suspects().front()) + ", " + Percent(search.confidence()))
              << "\n";
    end["culprits"] = Json::array();
    end["why"] = bisection_->WhyNoChange();
  }
  const double oracle = std::ceil(std::log2(std::max(candidates, 1)));
  std::cout << "cost       " << bisection_->runs() << " runs, " << bisection_->builds()
            << " builds, " << Number(bisection_->seconds()) << " s; an oracle needs "
            << Number(oracle) << " looks";
  if (is_found) {
    std::cout << ", through this noise "
              << Number(std::log2(std::max(candidates, 1)) / search.BitsPerRun()) << " runs";
  }
  std::cout << "\nlog        " << folder_ << "/log.jsonl\n";
  if (is_found && search.suspects().size() == 1) {
    std::cout << repository_.DiffSummary(bisection_->commits()[search.suspects().front()].id)
              << "\n";
  }
  journal_->Append(end);
  workshop_->RemoveWorktree();
  fs::remove_all(folder_ + "/runs");
  if (is_found) return kExitPassed;
  const bool is_undecided = step.kind == Step::kUndecided && !bisection_->IsSkipped(0) &&
                            !bisection_->IsSkipped(candidates);
  return is_undecided ? kExitInconclusive : kExitFailed;
}

int BisectSession::Run() {
  const int candidates = static_cast<int>(bisection_->commits().size()) - 1;
  std::cout << "# " << candidates << " commits after " << Name(0) << "\n";
  for (;;) {
    std::vector<bool> is_ready;
    for (const Commit& commit : bisection_->commits()) {
      is_ready.push_back(workshop_->IsReady(commit));
    }
    const Step step = bisection_->Next(!options_.bisect.build.empty(), is_ready);
    if (step.kind != Step::kRun) return Conclude(step);
    if (Launcher::interrupted()) throw Interrupted();
    RunSeeds(step.commit, step.phase);
  }
}

// What a log says, without git and without runs.
int Replay(const std::string& path) {
  const std::vector<Json> records = [&] {
    if (!fs::is_regular_file(path)) throw UsageError("--replay: there is no file '" + path + "'");
    return Journal::Load(path);
  }();
  if (records.empty() || records.front().value("schema", "") != kSchema) {
    throw UsageError("--replay: '" + path + "' is no log of a bisection");
  }
  const Json& header = records.front();
  if (header.at("version") != kLogVersion) {
    throw UsageError("--replay: '" + path + "' has version " + header.at("version").dump() +
                     ", this trainwreck reads " + std::to_string(kLogVersion));
  }
  CommitList commits;
  for (const Json& commit : header.at("commits")) {
    commits.push_back({commit.at("id"), commit.at("tree"), commit.at("parents")});
  }
  SearchOptions search;
  search.confidence = header.at("confidence");
  search.max_runs = header.at("max_runs");
  Bisection bisection(commits, {search, header.at("metric") != ""});
  for (const Json& record : records) {
    bisection.Apply(record);
    if (record.at("t") != "run") continue;
    const Search& now = bisection.search();
    std::cout << "run " << bisection.runs() << "  commit "
              << commits[record.at("commit").get<int>()].id.substr(0, 7) << "  seed "
              << record.at("seed") << "  likeliest "
              << commits[now.suspects().front()].id.substr(0, 7) << " " << Percent(now.confidence())
              << ", no change " << Percent(now.posterior()[0]) << "\n";
  }
  const Step step = bisection.Next(false, std::vector<bool>(commits.size(), true));
  if (step.kind == Step::kCulprit) {
    for (int suspect : bisection.search().suspects()) {
      std::cout << "culprit " << commits[suspect].id << "\n";
    }
    return kExitPassed;
  }
  std::cout << (step.kind == Step::kNoChange ? bisection.WhyNoChange() : "not decided yet") << "\n";
  return step.kind == Step::kNoChange ? kExitFailed : kExitInconclusive;
}

void CheckArguments(const BisectOptions& options) {
  if (options.scenario.empty()) throw UsageError("bisect: name a scenario");
  if (options.good.empty() || options.bad.empty()) {
    throw UsageError("bisect: say where it was good and where it is bad, --good REV --bad REV");
  }
}

}  // namespace

int BisectVerb(const Options& options) {
  if (!options.bisect.replay.empty()) return Replay(options.bisect.replay);
  if (!options.bisect.between.empty()) return BisectBetween(options);
  CheckArguments(options.bisect);
  try {
    return BisectSession(options).Run();
  } catch (const RepositoryError& error) {
    throw UsageError(error.what());
  } catch (const Interrupted&) {
    std::cerr << "trainwreck: interrupted; the same command goes on from here\n";
    return kExitInterrupted;
  }
}

}  // namespace trainwreck
