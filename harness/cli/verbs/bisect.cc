// trainwreck bisect: the commit that broke a scenario or a test, found through noise. Every commit
// is built in a worktree of ours and put to the test there, seed by seed.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <system_error>

#include "harness/bisect/between.h"
#include "harness/bisect/bisection.h"
#include "harness/bisect/report.h"
#include "harness/bisect/repository.h"
#include "harness/bisect/trial.h"
#include "harness/bisect/workshop.h"
#include "harness/cli/verbs.h"
#include "harness/launch/launcher.h"
#include "harness/process/command.h"
#include "harness/process/interruption.h"
#include "harness/protocol/digest.h"
#include "harness/session/session.h"
#include "harness/session/storage.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

class BisectSession {
 public:
  explicit BisectSession(const Options& options);
  int Run();

 private:
  std::string Folder() const;
  Json Header() const;
  void Lock();
  void Resume();
  void ApplyMarks();
  void ApplyMark(const std::string& revisions, const std::string& option, Mark mark);
  Mark MarkOf(const std::string& word, const std::string& text) const;
  void Record(const Json& record);
  bool Prepare(int commit);
  void RunSeeds(int commit, const char* phase);
  void CheckEnd(const SeedResult& result) const;
  int Conclude(const Step& step);
  void PrintStep(int commit, const char* phase, const SeedResult& result) const;
  std::string Name(int commit) const {
    return repository_.Describe(bisection_->commits()[commit].id);
  }
  bool IsEnd(int commit) const {
    return commit == 0 || commit == static_cast<int>(bisection_->commits().size()) - 1;
  }

  const Options& options_;
  Repository repository_;
  std::vector<std::string> goods_;
  std::string bad_;
  std::unique_ptr<Trial> trial_;
  Terms terms_;
  std::string folder_;
  std::unique_ptr<Bisection> bisection_;
  std::unique_ptr<Workshop> workshop_;
  std::unique_ptr<Journal> journal_;
};

SearchOptions SearchOptionsFor(const BisectOptions& options) {
  SearchOptions search;
  search.confidence = options.confidence;
  search.max_runs = options.max_runs;
  return search;
}

// An error now, not when the answer is there.
void CheckWritable(const std::string& path) {
  if (!path.empty() && !std::ofstream(path, std::ios::app)) {
    throw UsageError("--json " + path + ": cannot be written");
  }
}

BisectSession::BisectSession(const Options& options)
    : options_(options), repository_("."), terms_(options.bisect) {
  const BisectOptions& bisect = options.bisect;
  for (const std::string& good : bisect.goods) {
    goods_.push_back(repository_.Resolve(good, "--good"));
  }
  bad_ = repository_.Resolve(bisect.bad, "--bad");
  trial_ = MakeTrial(options, repository_);
  CheckWritable(bisect.json);
  folder_ = Folder();
  fs::create_directories(folder_);
  // Nothing of ours shows in `git status`.
  WriteWholeFile(repository_.root() + "/.trainwreck/bisect/.gitignore", "*\n");
  Lock();
  if (bisect.fresh) {
    for (const char* name : {"log.jsonl", "builds", "runs"}) fs::remove_all(folder_ + "/" + name);
  }
  bisection_ = std::make_unique<Bisection>(
      repository_.Between(goods_, bad_, {bisect.first_parent, bisect.paths}),
      BisectionOptions{SearchOptionsFor(bisect), !bisect.metric.empty(), bisect.no_flakes});
  const TargetPlace target = trial_->target();
  workshop_ = std::make_unique<Workshop>(
      repository_, WorkshopOptions{folder_, bisect.build, target.program, bisect.artifacts,
                                   target.declaration, bisect.build_limit_seconds});
  Resume();
  ApplyMarks();
}

// One for each question, so that the same command goes on where it was. Marks are answers.
std::string BisectSession::Folder() const {
  const BisectOptions& bisect = options_.bisect;
  const Json question = {goods_,       bad_,         bisect.first_parent, bisect.no_flakes,
                         bisect.paths, bisect.build, bisect.artifacts,    trial_->Question()};
  return repository_.root() + "/.trainwreck/bisect/" + DigestText(question.dump());
}

// Held until we and every build of ours are gone: also after a SIGKILL no two are in one worktree.
void BisectSession::Lock() {
  const int fd = open((folder_ + "/lock").c_str(), O_RDWR | O_CREAT, 0644);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), folder_ + "/lock");
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return;
  std::cerr << "trainwreck: waiting for the bisection that runs in " << folder_ << "\n";
  while (flock(fd, LOCK_EX) != 0) {
    if (WasInterrupted()) throw Interrupted();
  }
}

Json BisectSession::Header() const {
  Json commits = Json::array();
  for (const Commit& commit : bisection_->commits()) {
    commits.push_back({{"id", commit.id}, {"tree", commit.tree}, {"parents", commit.parents}});
  }
  return {{"t", "begin"},
          {"schema", kBisectLogSchema},
          {"version", kBisectLogVersion},
          {"command_line", options_.command_line},
          {"scenario", options_.bisect.scenario},
          {"test", options_.bisect.test},
          {"confidence", options_.bisect.confidence},
          {"max_runs", options_.bisect.max_runs},
          {"metric", options_.bisect.metric},
          {"no_flakes", options_.bisect.no_flakes},
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

void BisectSession::ApplyMarks() {
  for (const std::string& skip : options_.bisect.skips) ApplyMark(skip, "--skip", Mark::kSkip);
  for (const std::string& text : options_.bisect.marks) {
    const std::size_t equals = text.rfind('=');
    if (equals == std::string::npos) {
      throw UsageError("--mark " + text + ": say REV=good, REV=bad or REV=skip");
    }
    ApplyMark(text.substr(0, equals), "--mark", MarkOf(text.substr(equals + 1), text));
  }
}

Mark BisectSession::MarkOf(const std::string& word, const std::string& text) const {
  if (word == "skip") return Mark::kSkip;
  if (word == terms_.old_end) return Mark::kGood;
  if (word == terms_.new_end) return Mark::kBad;
  throw UsageError("--mark " + text + ": say REV=" + terms_.old_end + ", REV=" + terms_.new_end +
                   " or REV=skip");
}

void BisectSession::ApplyMark(const std::string& revisions, const std::string& option, Mark mark) {
  const CommitList& commits = bisection_->commits();
  bool is_any = false;
  for (const std::string& id : repository_.Listed(revisions, option)) {
    const auto found = std::find_if(commits.begin(), commits.end(),
                                    [&](const Commit& commit) { return commit.id == id; });
    if (found == commits.end()) continue;
    is_any = true;
    const int number = static_cast<int>(found - commits.begin());
    const auto known = bisection_->marks().find(number);
    if (known != bisection_->marks().end() && known->second == mark) continue;
    const std::string what = option + " " + revisions + ": ";
    if (known != bisection_->marks().end()) {
      throw UsageError(what + id + " was marked otherwise before; --fresh forgets that");
    }
    if (IsEnd(number)) throw UsageError(what + id + " is an end; give another --good or --bad");
    const Json record = Bisection::LogMark(*found, number, mark);
    try {
      bisection_->Apply(record);
    } catch (const std::runtime_error& error) {
      throw UsageError(what + error.what());
    }
    journal_->Append(record);
  }
  if (!is_any) throw UsageError(option + " " + revisions + ": is not between --good and --bad");
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

void BisectSession::PrintStep(int commit, const char* phase, const SeedResult& result) const {
  std::string seen = terms_.passes;
  if (!result.error.empty()) {
    seen = result.is_skip ? "skip" : "error";
  } else if (result.margin) {
    seen = BisectNumber(*result.margin);
  } else if (!result.failures.empty()) {
    seen = terms_.fails;
  } else if (!result.undecided.empty() || !options_.bisect.metric.empty()) {
    seen = "unknown";
  }
  const Search& search = bisection_->search();
  std::printf("%-7s %-7s seed %-3d %s", phase, seen.c_str(), result.seed, Name(commit).c_str());
  std::printf("   likeliest: %s %s\n",
              bisection_->commits()[search.suspects().front()].id.substr(0, 7).c_str(),
              BisectPercent(search.confidence()).c_str());
  std::fflush(stdout);
}

// Nothing can come of an end that its own test refuses: said at once, not after more tries.
void BisectSession::CheckEnd(const SeedResult& result) const {
  const Bisection::Tally tally = bisection_->TallyOf(result.commit);
  if (!result.is_skip || !IsEnd(result.commit) || tally.passed + tally.failed > 0) return;
  const bool is_good = result.commit == 0;
  throw UsageError("the " + (is_good ? terms_.old_end : terms_.new_end) +
                   " end cannot be tested: the test gave status 125 at " + Name(result.commit) +
                   "; give another " + (is_good ? "--good" : "--bad") + ", see " + folder_ +
                   "/last-run.log");
}

void BisectSession::RunSeeds(int commit, const char* phase) {
  if (!Prepare(commit)) return;
  const int left = std::max(1, options_.bisect.max_runs - bisection_->runs());
  TrialRequest request;
  request.commit = commit;
  request.id = bisection_->commits()[commit].id;
  request.first_seed = bisection_->NextSeed();
  request.seeds = std::min(trial_->SeedsAtOnce(), left);
  request.worktree = workshop_->worktree();
  request.folder = folder_;
  for (const SeedResult& result : trial_->Run(request)) {
    CheckEnd(result);
    Record(Bisection::LogRun(result));
    PrintStep(commit, phase, result);
    if (!result.error.empty()) std::cout << "        " << result.error << "\n";
  }
}

int BisectSession::Conclude(const Step& step) {
  const Conclusion conclusion = {*bisection_, repository_, options_.bisect, step,
                                 folder_ + "/log.jsonl"};
  conclusion.Print();
  Json end = conclusion.ToJson();
  if (!options_.bisect.json.empty()) {
    std::ofstream file(options_.bisect.json);
    file << end.dump(1) << "\n";
    if (!file.flush()) {
      throw std::system_error(EIO, std::generic_category(), options_.bisect.json);
    }
  }
  end["t"] = "end";
  journal_->Append(end);
  workshop_->RemoveWorktree();
  return conclusion.ExitStatus();
}

int BisectSession::Run() {
  const int candidates = static_cast<int>(bisection_->commits().size()) - 1;
  std::cout << "# " << candidates << " commits after " << Name(0) << "\n";
  if (bisection_->commits().back().id != bad_) {
    std::cout << "# " << Name(candidates)
              << " is the last one that changes a path, and stands for --bad\n";
  }
  for (;;) {
    std::vector<bool> is_ready;
    for (const Commit& commit : bisection_->commits()) {
      is_ready.push_back(workshop_->IsReady(commit));
    }
    const Step step = bisection_->Next(!options_.bisect.build.empty(), is_ready);
    if (step.kind != Step::kRun) return Conclude(step);
    if (WasInterrupted()) throw Interrupted();
    RunSeeds(step.commit, step.phase);
  }
}

void CheckArguments(const BisectOptions& options) {
  if (options.scenario.empty() && options.test.empty()) {
    throw UsageError("bisect: name a scenario, or a command with --test");
  }
  if (options.goods.empty() || options.bad.empty()) {
    throw UsageError("bisect: say where it was good and where it is bad, --good REV --bad REV");
  }
  const Terms terms(options);
  if (terms.old_end == terms.new_end || terms.old_end == "skip" || terms.new_end == "skip") {
    throw UsageError("--term-old and --term-new have to be two words, and neither is 'skip'");
  }
}

}  // namespace

int BisectVerb(const Options& options) {
  if (!options.bisect.replay.empty()) return ReplayBisection(options.bisect.replay);
  if (!options.bisect.between.empty()) return BisectBetween(options);
  CheckArguments(options.bisect);
  try {
    return BisectSession(options).Run();
  } catch (const RepositoryError& error) {
    throw UsageError(error.what());
  } catch (const TestAborted& aborted) {
    std::cerr << "trainwreck: " << aborted.why << "; the same command goes on from here\n";
    return kExitInfrastructure;
  } catch (const Interrupted&) {
    std::cerr << "trainwreck: interrupted; the same command goes on from here\n";
    return kExitInterrupted;
  }
}

}  // namespace trainwreck
