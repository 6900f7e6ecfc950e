// Runs that an earlier invocation kept, as results of the runs that a scenario asks for now.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "harness/launch/launcher.h"
#include "harness/plan/run.h"
#include "harness/session/storage.h"

namespace trainwreck {

struct KeptRun {
  std::optional<RunResult> result;
  std::string why_not;  // "the run was not kept", "optimizer.lr was 0.1, it is 0.2 now"
};

class KeptRuns {
 public:
  explicit KeptRuns(std::string output_folder) : output_folder_(std::move(output_folder)) {}

  // The stored run under the invocation's folder that equals `wanted` in everything that a training
  // depends on: the one of its name, else one whose arm or point had another name then. Never
  // throws, whatever is in the folder; problems of the trace go to stderr.
  KeptRun Find(const Run& wanted);

 private:
  std::string output_folder_;
  std::optional<std::map<std::string, StoredRun>> all_;  // by folder, once they are asked for
};

}  // namespace trainwreck
