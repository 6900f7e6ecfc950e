// The report of `bisect`, for people and as JSON, and the same from a log.
#pragma once

#include <string>

#include "harness/bisect/bisection.h"
#include "harness/bisect/lineage.h"
#include "harness/bisect/options.h"

namespace trainwreck {

inline constexpr const char* kBisectLogSchema = "trainwreck/bisect";
inline constexpr int kBisectLogVersion = 1;

std::string BisectPercent(double p);
std::string BisectNumber(double value);
// A commit's id as tables have it: the first digits of a hash, a version as a whole.
std::string ShortId(const std::string& id);

// The user's words for good and bad.
struct Terms {
  explicit Terms(const BisectOptions& options);
  std::string passes, fails;  // the words for one run: "pass", "fail"
  std::string old_end, new_end;
};

struct Conclusion {
  const Bisection& bisection;
  const Lineage& lineage;
  const BisectOptions& options;
  const Step& step;
  std::string log;

  bool IsFound() const { return step.kind == Step::kCulprit; }
  bool IsUndecided() const;  // --max-runs is reached
  int ExitStatus() const;
  std::string Why() const;  // nothing was found
  void Print() const;
  Json ToJson() const;  // schema trainwreck/bisect-result
  // The same with all commits, and the search after each run, read again from the log.
  Json WithTrail() const;

 private:
  bool IsOfReleases() const { return !options.versions.empty(); }
  std::string Name(int commit) const;
  std::string Tallied(int commit) const;
  void PrintFound() const;
  void PrintSkipped() const;
  Json CommitJson(int commit) const;
  Json EndJson(int commit) const;
  Json TestedCommits() const;
  // The median margin of all runs on one side of the culprit.
  double MiddleMargin(bool of_bad) const;
};

// Prints the report of a log, without git and without runs.
int ReplayBisection(const std::string& path);

}  // namespace trainwreck
