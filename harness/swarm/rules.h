// What must hold after every run, whatever was injected.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/launch/launcher.h"
#include "harness/plan/run.h"

namespace trainwreck {

struct BrokenRule {
  std::string
      rule;  // "ends", "leaves_nothing", "blames_no_healthy_rank", "fires", "resumes_exactly"
  std::string text;
};

// What is read of a run besides its trace.
struct LeftBehind {
  std::vector<int> processes;      // that still have the run's folder in their environment
  std::vector<std::string> files;  // beside the run's folder
};

// The run was refused: its recipe is not valid, or a fault does not fit it. No rule applies.
bool IsRefused(const RunResult& result);

// Ids of the faults that acted, with different values before and after.
std::set<std::string> FiredIn(const RunResult& result);
// Ids of faults whose trigger matched a step that was done, and that did not fire.
std::vector<std::string> SilentIn(const Run& run, const RunResult& result);

std::vector<BrokenRule> CheckEnd(const Run& run, const RunResult& result);
std::vector<BrokenRule> CheckLeftBehind(const RunResult& result, const LeftBehind& left);
std::vector<BrokenRule> CheckBlame(const Run& run, const RunResult& result);

// Whether a restart must give the bits of the run without faults: the supervisor may restart, and
// all faults stop processes or damage checkpoint files.
bool ResumesExactly(const Run& run);
std::vector<BrokenRule> CheckResumed(const RunResult& result, const RunResult& reference);

}  // namespace trainwreck
