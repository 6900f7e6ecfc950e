// trainwreck bisect: the commit, or the release of a package, that broke a scenario or a test,
// found through noise. Each is made ready (lineage.h) and put to the test, seed by seed.
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
#include "harness/bisect/lineage.h"
#include "harness/bisect/options.h"
#include "harness/bisect/report.h"
#include "harness/bisect/repository.h"
#include "harness/bisect/trial.h"
#include "harness/cli/verb.h"
#include "harness/cli/verbs/page_file.h"
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
  explicit BisectSession(const BisectOptions& options);
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
    return lineage_->Describe(bisection_->commits()[commit].id);
  }
  // What gives another end.
  std::string EndOption(bool is_good) const {
    if (!options_.versions.empty()) return "range";
    return is_good ? "--good" : "--bad";
  }
  bool IsEnd(int commit) const {
    return commit == 0 || commit == static_cast<int>(bisection_->commits().size()) - 1;
  }

  const BisectOptions& options_;
  std::unique_ptr<Lineage> lineage_;
  std::unique_ptr<Trial> trial_;
  Terms terms_;
  std::string folder_;
  std::unique_ptr<Bisection> bisection_;
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

BisectSession::BisectSession(const BisectOptions& options)
    : options_(options),
      lineage_(MakeLineage(options)),
      trial_(MakeTrial(options, lineage_->target())),
      terms_(options) {
  const BisectOptions& bisect = options;
  CheckWritable(bisect.json);
  CheckPage(bisect.html);
  folder_ = Folder();
  fs::create_directories(folder_);
  // Nothing of ours shows in `git status`.
  WriteWholeFile(lineage_->root() + "/.trainwreck/bisect/.gitignore", "*\n");
  Lock();
  if (bisect.fresh) {
    for (const char* name : {"log.jsonl", "builds", "runs"}) fs::remove_all(folder_ + "/" + name);
  }
  bisection_ = std::make_unique<Bisection>(
      lineage_->commits(),
      BisectionOptions{SearchOptionsFor(bisect), !bisect.metric.empty(), bisect.no_flakes});
  lineage_->Open(folder_);
  Resume();
  ApplyMarks();
}

// One for each question, so that the same command goes on where it was. Marks are answers.
std::string BisectSession::Folder() const {
  const Json question = {lineage_->Question(), options_.no_flakes, trial_->Question()};
  return lineage_->root() + "/.trainwreck/bisect/" + DigestText(question.dump());
}

// Held until we and every build of ours are gone: also after a SIGKILL no two are in one worktree.
void BisectSession::Lock() {
  const int fd = open((folder_ + "/lock").c_str(), O_RDWR | O_CREAT, 0644);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), folder_ + "/lock");
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return;
  std::cerr << "trainwreck: waiting for the bisection that runs in " << folder_ << "\n";
  AwaitLock(fd);
}

Json BisectSession::Header() const {
  Json commits = Json::array();
  for (const Commit& commit : bisection_->commits()) {
    commits.push_back({{"id", commit.id}, {"tree", commit.tree}, {"parents", commit.parents}});
  }
  return {{"t", "begin"},
          {"schema", kBisectLogSchema},
          {"version", kBisectLogVersion},
          {"command_line", options_.common.command_line},
          {"of", lineage_->noun()},
          {"scenario", options_.scenario},
          {"test", options_.test},
          {"confidence", options_.confidence},
          {"max_runs", options_.max_runs},
          {"metric", options_.metric},
          {"no_flakes", options_.no_flakes},
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
  for (const std::string& skip : options_.skips) ApplyMark(skip, "--skip", Mark::kSkip);
  for (const std::string& text : options_.marks) {
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
  for (const std::string& id : lineage_->Listed(revisions, option)) {
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
    if (IsEnd(number)) {
      throw UsageError(what + id + " is an end; give another " + EndOption(number == 0));
    }
    const Json record = Bisection::LogMark(*found, number, mark);
    try {
      bisection_->Apply(record);
    } catch (const std::runtime_error& error) {
      throw UsageError(what + error.what());
    }
    journal_->Append(record);
  }
  if (!is_any) throw UsageError(option + " " + revisions + ": is not between the ends");
}

void BisectSession::Record(const Json& record) {
  journal_->Append(record);
  bisection_->Apply(record);
}

// False when the commit cannot be tested.
bool BisectSession::Prepare(int number) {
  const Commit& commit = bisection_->commits()[number];
  const Built built = lineage_->Prepare(commit);
  if (built.ok && built.from_cache && bisection_->IsBuilt(number)) return true;
  Record(Bisection::LogBuild(commit, number, built));
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
  } else if (!bisection_->OtherFailure(result).empty()) {
    seen = "other";
  } else if (!result.failures.empty()) {
    seen = terms_.fails;
  } else if (!result.undecided.empty() || !options_.metric.empty()) {
    seen = "unknown";
  }
  const Search& search = bisection_->search();
  std::printf("%-7s %-7s seed %-3d %s", phase, seen.c_str(), result.seed, Name(commit).c_str());
  std::printf("   likeliest: %s %s\n",
              ShortId(bisection_->commits()[search.suspects().front()].id).c_str(),
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
                   "; give another " + EndOption(is_good) + ", see " + folder_ + "/last-run.log");
}

void BisectSession::RunSeeds(int commit, const char* phase) {
  if (!Prepare(commit)) return;
  const int left = std::max(1, options_.max_runs - bisection_->runs());
  TrialRequest request;
  request.commit = commit;
  request.id = bisection_->commits()[commit].id;
  request.first_seed = bisection_->NextSeed();
  request.seeds = std::min(trial_->SeedsAtOnce(), left);
  request.control_only = bisection_->AsksOfControlOnly();
  request.place = lineage_->PlaceOf(bisection_->commits()[commit]);
  request.folder = folder_;
  for (const SeedResult& result : trial_->Run(request)) {
    CheckEnd(result);
    Record(Bisection::LogRun(result));
    PrintStep(commit, phase, result);
    const std::string other = bisection_->OtherFailure(result);
    for (const std::string& why : {result.error, other}) {
      if (!why.empty()) std::cout << "        " << why << "\n";
    }
  }
}

int BisectSession::Conclude(const Step& step) {
  const Conclusion conclusion = {*bisection_, *lineage_, options_, step, folder_ + "/log.jsonl"};
  conclusion.Print();
  const Json whole =
      options_.json.empty() && options_.html.empty() ? Json() : conclusion.WithTrail();
  if (!options_.json.empty()) {
    std::ofstream file(options_.json);
    file << whole.dump(1) << "\n";
    if (!file.flush()) {
      throw std::system_error(EIO, std::generic_category(), options_.json);
    }
  }
  WritePage(options_.html, whole);
  Json end = conclusion.ToJson();
  end["t"] = "end";
  journal_->Append(end);
  lineage_->Close();
  return conclusion.ExitStatus();
}

int BisectSession::Run() {
  const int candidates = static_cast<int>(bisection_->commits().size()) - 1;
  std::cout << "# " << candidates << " " << lineage_->noun() << (candidates == 1 ? "" : "s")
            << (lineage_->is_backwards() ? " before " : " after ") << Name(0) << "\n";
  if (const std::string note = lineage_->Note(); !note.empty()) std::cout << "# " << note << "\n";
  for (;;) {
    std::vector<bool> is_ready;
    for (const Commit& commit : bisection_->commits()) {
      is_ready.push_back(lineage_->IsReady(commit));
    }
    const Step step = bisection_->Next(is_ready);
    if (step.kind != Step::kRun) return Conclude(step);
    if (WasInterrupted()) throw Interrupted();
    RunSeeds(step.commit, step.phase);
  }
}

void CheckArguments(const BisectOptions& options) {
  if (options.scenario.empty() && options.test.empty()) {
    throw UsageError("bisect: name a scenario, or a command with --test");
  }
  const Terms terms(options);
  if (terms.old_end == terms.new_end || terms.old_end == "skip" || terms.new_end == "skip") {
    throw UsageError("--term-old and --term-new have to be two words, and neither is 'skip'");
  }
}

int BisectVerb(const BisectOptions& options) {
  if (!options.html.empty() && (!options.replay.empty() || !options.between.empty())) {
    throw UsageError("--html: --between and --replay have no page");
  }
  if (!options.replay.empty()) return ReplayBisection(options.replay);
  if (!options.between.empty()) return BisectBetween(options);
  CheckArguments(options);
  try {
    return BisectSession(options).Run();
  } catch (const RepositoryError& error) {
    throw UsageError(error.what());
  } catch (const BisectionStopped& aborted) {
    std::cerr << "trainwreck: " << aborted.why << "; the same command goes on from here\n";
    return kExitInfrastructure;
  } catch (const Interrupted&) {
    std::cerr << "trainwreck: interrupted; the same command goes on from here\n";
    return kExitInterrupted;
  }
}

void DeclareQuestion(VerbArguments& arguments, BisectOptions& options) {
  arguments.Positional("SCENARIO", options.scenario,
                       "File or name, as nan/lr-too-high or 'nan/x[sgd]'");
  arguments.Option("--test", options.test,
                   "Instead of a scenario: a shell command, run in each commit's worktree with "
                   "$TRAINWRECK_SEED; exit 0 good, 125 skip, other below 128 bad, 128 and above "
                   "end the bisection",
                   "CMD");
  arguments
      .Option("--test-limit", options.test_limit_seconds,
              "A test that takes longer is ended and says nothing [7200]", "SECONDS")
      .Between(1, 10'000'000);
  arguments.Option("--good,--old", options.goods, "A commit that passes; may be repeated", "REV");
  arguments.Option("--bad,--new", options.bad, "A commit that fails", "REV");
  arguments
      .Option("--versions", options.versions,
              "Instead of commits: the releases of a Python package between a good and a bad one",
              "PACKAGE A..B")
      .Count(2);
  arguments.Option("--with", options.partners,
                   "Another package that goes with every release; may be repeated",
                   "PACKAGE==VERSION");
  arguments.Flag("--pre", options.pre, "Of --versions also pre-releases");
  arguments.Option("--also", options.also,
                   "A version that pip does not list, as a yanked one; may be repeated", "VERSION");
  arguments.Option("--python", options.python,
                   "The Python that runs the target [as its command says, else python3]",
                   "PROGRAM");
  arguments.Option("--skip", options.skips,
                   "A commit, or a range as A..B, that cannot be tested; may be repeated", "REV");
  arguments.Option("--mark", options.marks,
                   "What you know of a commit: REV=good, REV=bad or REV=skip; it is not run; "
                   "may be repeated",
                   "REV=WORD");
  arguments.Flag("--first-parent", options.first_parent,
                 "Of a merge only the branch it was made on");
  arguments.Option("--term-old", options.term_old, "A word for good [good]", "WORD");
  arguments.Option("--term-new", options.term_new, "A word for bad [bad]", "WORD");
  arguments.Option("--metric", options.metric,
                   "Go by the margin of this formula, not by whether the scenario passes",
                   "FORMULA");
  arguments.Option("--arm", options.arm, "The arm that --metric is read in [control]", "ARM");
  arguments.Rest(options.paths);
  arguments.Footer(
      "-- PATH...: only commits that change one of these paths. `-- PATH` stands at the end.");
}

void Declare(VerbArguments& arguments, BisectOptions& options) {
  DeclareQuestion(arguments, options);
  arguments.Option("--build", options.build,
                   "Shell command that builds a commit, run in its worktree", "CMD");
  arguments
      .Option("--build-limit", options.build_limit_seconds,
              "A build that takes longer is ended; its commit cannot be tested [7200]", "SECONDS")
      .Between(1, 10'000'000);
  arguments.Option("--artifact", options.artifacts,
                   "File or folder that the build makes and runs need; may be repeated "
                   "[--target, if it is a binary]",
                   "PATH");
  arguments
      .Option("--confidence", options.confidence, "Name a commit only when this sure [0.95]", "P")
      .Between(0.5, 0.9999);
  arguments.Flag("--no-flakes", options.no_flakes,
                 "You are certain that no run fails before the culprit: fewer runs are needed");
  arguments.Option("--max-runs", options.max_runs, "Give up after so many runs [1000]", "N")
      .Between(1, 1000000);
  arguments.Option("-j,--jobs", options.jobs, "Cores to use [all that this process may use]", "N")
      .Between(1, 4096);
  arguments.Option("--json", options.json, "Write the result to this file as JSON", "FILE");
  DeclarePage(arguments, options.html);
  arguments
      .Option("--between", options.between,
              "Instead of commits: which differences of two scenarios' recipes flip the verdict",
              "GOOD BAD")
      .Count(2);
  arguments.Flag("--fresh", options.fresh, "Forget what an earlier, interrupted bisection saw");
  arguments.Option("--replay", options.replay, "Go through a log again; run nothing", "LOG");
  arguments.Common(options.common);
}

const VerbRegistration registration(
    "bisect", "Find the commit or release that broke a scenario or a test, through noise",
    kSearching, Declare, BisectVerb);

}  // namespace
}  // namespace trainwreck
