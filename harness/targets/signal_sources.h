// All sources of a running program's signals, of this rank and, where guards start the ranks
// (`trainwreck rank`), of the others: the guards keep what each rank writes.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/process/rank_guards.h"
#include "harness/targets/signal_reader.h"
#include "harness/targets/target_spec.h"

namespace trainwreck {

// `trainwreck rank -- COMMAND` is somewhere in the command line.
bool StartsGuards(const std::vector<std::string>& command);

class SignalSources {
 public:
  // Of a rank: a step's values; text that could not be read, with its source and why.
  using Step = std::function<void(int, const StepValues&)>;
  using Unreadable =
      std::function<void(int, const std::string&, const std::string&, const std::string&)>;

  SignalSources(const TargetSpec& spec, const RankGuards& guards, int rank, int ranks, Step step,
                Unreadable unreadable);

  // `values` are those of the placeholders. `of_guards`: guards keep the output of all ranks.
  // Otherwise it is that of the process that is started here, in `run_folder`. `resumes`: files
  // that are there were read in an earlier attempt.
  void Open(const std::map<std::string, std::string>& values, const std::string& run_folder,
            bool resumes, bool of_guards);

  // Reads what is new. With `last`, the program has ended.
  void Read(bool last);
  bool of_guards() const { return !outputs_.empty(); }
  // Waits, for 2 s at most, while files are shorter here than the guards of ranks that have ended
  // saw them.
  void AwaitGuards() const;

 private:
  void OpenOutputs(const SourceSpec& source, const std::string& run_folder, bool resumes,
                   bool of_guards);
  std::string PatternOf(const SourceSpec& source,
                        const std::map<std::string, std::string>& values) const;
  const SignalSink& SinkOf(int rank);

  const TargetSpec& spec_;
  const RankGuards& guards_;
  const int rank_, ranks_;
  const Step step_;
  const Unreadable unreadable_;
  std::map<int, SignalSink> sinks_;  // by rank
  std::vector<std::unique_ptr<SignalReader>> readers_;
  std::vector<std::unique_ptr<SignalReader>> outputs_;  // that guards keep
  std::chrono::steady_clock::time_point next_outputs_;
};

}  // namespace trainwreck
