// The scenarios that a command line selects: by paths, -k and -t expressions, shards.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/plan/run.h"
#include "harness/session/options.h"
#include "harness/spec/scenario.h"

namespace trainwreck {

// A boolean expression over words: `nan and not (sgd or adamw)`.
class WordExpression {
 public:
  // Throws UsageError, naming `option`, for an invalid expression. Empty text matches all.
  WordExpression(const std::string& text, const std::string& option);
  ~WordExpression();
  WordExpression(WordExpression&&) noexcept;

  bool Matches(const std::function<bool(const std::string&)>& has_word) const;

 private:
  struct Node;
  friend class WordParser;
  std::unique_ptr<Node> root_;
};

struct SelectedFile {
  std::string path;
  std::string point;  // of "nan/lr-too-high[sgd]"; empty: all points
};

// Files, folders (with all below them), and names or globs of names under `scenarios_root`; sorted,
// each once. Throws UsageError for a word that names nothing.
std::vector<SelectedFile> FindScenarioFiles(const std::vector<std::string>& paths,
                                            const std::string& scenarios_root);

// All files of faults (fault_file.h) below the folder, which may not be there; sorted. A folder
// that cannot be read is no error here: loading scenarios from it reports that.
std::vector<std::string> FindFaultFiles(const std::string& scenarios_root);

std::vector<std::string> PathsOf(const std::vector<SelectedFile>& files);

// Removes the cases that -k, -t and the points do not select.
std::vector<Case> SelectCases(std::vector<Case> cases, const SelectionOptions& options,
                              const std::vector<SelectedFile>& files,
                              const std::vector<std::string>& points);

// Only the cases of this shard. Throws UsageError for costs that cannot be read.
std::vector<Case> KeepShard(std::vector<Case> cases, const SelectionOptions& options);

// A file of costs for --shard-costs: {"schema": "trainwreck/costs", "version": 1, "seconds": {CASE:
// seconds, ...}}.
std::string CostsText(const std::map<std::string, double>& seconds);

// Case -> shard from 0: the most expensive cases first, each to the shard with the least cost so
// far. Every shard computes the same. What a case took is `measured`, in seconds by its name; of
// others it is estimated from the plan, scaled to those that were measured.
std::vector<int> AssignShards(const std::vector<Case>& cases, int shard_count,
                              const std::map<std::string, double>& measured = {});

}  // namespace trainwreck
