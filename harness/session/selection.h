// Which scenarios a command line means: paths to files, -k and -t expressions, shards.
#pragma once

#include <functional>
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
  // Throws UsageError, naming `option`, for what is no expression. Empty text matches all.
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
// each once. Throws UsageError for what names nothing.
std::vector<SelectedFile> FindScenarioFiles(const std::vector<std::string>& paths,
                                            const std::string& scenarios_root);

// All files of faults (fault_file.h) below the folder, which may not be there; sorted. A folder
// that cannot be read is no matter here: who asks for the scenarios in it is told.
std::vector<std::string> FindFaultFiles(const std::string& scenarios_root);

std::vector<std::string> PathsOf(const std::vector<SelectedFile>& files);

// Drops the cases that -k, -t and the points leave out.
std::vector<Case> SelectCases(std::vector<Case> cases, const SelectionOptions& options,
                              const std::vector<SelectedFile>& files,
                              const std::vector<std::string>& points);

// The cases of this shard alone.
std::vector<Case> KeepShard(std::vector<Case> cases, const SelectionOptions& options);

// Case -> shard from 0: the dearest first to the shard with least so far. Every shard computes the
// same.
std::vector<int> AssignShards(const std::vector<Case>& cases, int shard_count);

}  // namespace trainwreck
