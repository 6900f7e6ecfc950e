// A bisection as a log of what was seen: which commits were built, how each run ended. Everything
// else follows from the log, so an interrupted bisection goes on where it was, and a log can be
// replayed.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/bisect/commit.h"
#include "harness/bisect/failure.h"
#include "harness/bisect/search.h"
#include "harness/protocol/json.h"

namespace trainwreck {

// The user's knowledge about a commit, which is then not run.
enum class Mark { kGood, kBad, kSkip };

// One seed of one commit.
struct SeedResult {
  int commit = 0;
  int seed = 0;
  std::vector<Failure> failures;   // none: it passed
  std::vector<Failure> undecided;  // checks without an answer
  std::optional<double> margin;    // of the metric, when there is one
  std::string error;               // not empty: the run could not be made
  bool is_skip = false;            // the test itself says that the commit cannot be tested
  int status = 0;                  // of a test command
  double seconds = 0;
};

struct BisectionOptions {
  SearchOptions search;
  bool has_metric = false;
  bool nothing_flakes = false;
};

class Bisection {
 public:
  Bisection(CommitList commits, BisectionOptions options);

  // Records of what was seen: Log... makes the record that Apply reads.
  static Json LogBuild(const Commit& commit, int number, const Built& built);
  static Json LogRun(const SeedResult& result);
  static Json LogMark(const Commit& commit, int number, Mark mark);
  // Throws std::runtime_error for what is no record, and for a mark that contradicts others.
  void Apply(const Json& record);

  // `is_ready`: the commits that need no build before a run.
  Step Next(const std::vector<bool>& is_ready) const;

  const CommitList& commits() const { return commits_; }
  const Search& search() const { return *search_; }
  const std::optional<Failure>& sought() const { return sought_; }
  // Whether runs of other arms than control could not change the answer.
  bool AsksOfControlOnly() const { return sought_ && sought_->arm == "control"; }
  // A seed that no commit has run yet. Two runs with one seed may give the same result for the same
  // reason, and the search takes its runs to be independent.
  int NextSeed() const;
  const std::map<int, Mark>& marks() const { return marks_; }
  bool IsBuilt(int commit) const { return programs_.contains(commit); }
  bool IsSkipped(int commit) const { return skip_reasons_.contains(commit); }
  const std::map<int, std::string>& skip_reasons() const { return skip_reasons_; }

  struct Tally {
    int passed = 0, failed = 0, unusable = 0;
    int total() const { return passed + failed + unusable; }
    std::map<Failure, int> failures;
  };
  Tally TallyOf(int commit) const;
  // Why a run says nothing although it failed: another failure hides what is looked for. Empty: it
  // tells something, or it did not fail.
  std::string OtherFailure(const SeedResult& result) const;
  std::vector<double> MarginsOf(int commit) const;  // of the metric, in the order of the runs
  const std::vector<SeedResult>& results() const { return results_; }
  int runs() const { return static_cast<int>(results_.size()); }
  int builds() const { return builds_; }
  double seconds() const { return seconds_; }  // of builds and runs, also before an interruption
  // Why no commit can be blamed: what both ends showed.
  std::string WhyNoChange() const;

 private:
  std::string WhyMarginsAreAlike() const;
  enum class Reading { kGood, kBad, kUnusable };
  Reading Read(const SeedResult& result) const;
  std::vector<double> AllMargins() const;
  bool IsTimeForModel() const;
  void Rebuild();
  void Observe(const SeedResult& result, bool refresh = true);
  void Merge(int commit, const std::string& program);
  void Apply(int commit, Mark mark);
  void Take(SeedResult result);
  const Failure* SoughtIn(const SeedResult& result) const;
  bool IsOfOtherSize(const Failure& failure, int commit) const;
  bool NeedsSizes() const;
  int bad_end() const { return static_cast<int>(commits_.size()) - 1; }

  CommitList commits_;
  BisectionOptions options_;
  std::vector<SeedResult> results_;
  std::map<int, std::string> programs_;
  std::map<int, std::string> skip_reasons_, unbuilt_;
  std::map<int, Mark> marks_;
  std::optional<Failure> sought_;
  FailureSizes sought_sizes_;  // in the runs of the bad end
  std::unique_ptr<Search> search_;
  bool has_model_ = false;         // the model of margins exists: both ends were seen
  bool has_gap_ = false;           // the model is of margins with a clear gap
  std::size_t modelled_runs_ = 0;  // runs with a margin that the model was made of
  int builds_ = 0;
  double build_seconds_ = 0, run_seconds_ = 0, seconds_ = 0;
};

// A file with one JSON record per line. Each line is on the disk before Append returns. A last line
// that was cut off by a SIGKILL is dropped.
class Journal {
 public:
  explicit Journal(const std::string& path);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  void Append(const Json& record);  // throws std::system_error
  static std::vector<Json> Load(const std::string& path);

 private:
  int fd_;
};

}  // namespace trainwreck
