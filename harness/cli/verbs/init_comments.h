// What `trainwreck init` saw of a program, in words for a person: the comments of trainwreck.yaml.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/protocol/run_trace.h"
#include "harness/session/preflight.h"
#include "harness/targets/command_draft.h"
#include "harness/targets/printed_metrics.h"
#include "harness/targets/program_options.h"

namespace trainwreck {

// How long a run may pause, and how much it may write. Empty: the default is enough.
struct Limits {
  std::optional<int> stall_seconds;
  std::optional<std::int64_t> disk_gibibytes;
};

// How many times its longest pause a run may pause before it counts as stalled.
constexpr double kPauses = 5;

// How many times what its first steps wrote a run may write.
constexpr std::int64_t kWrites = 10;

// Where its signals are read.
struct Reading {
  bool has_hooks = true;
  std::optional<PrintedMetrics> printed;  // the hooks' signals are not among them
};

// What scenarios may require of the program: `optimizer:adam`.
struct Promise {
  std::string name;
  std::string evidence;  // what was seen of it
};

// What the hooks tell of the program; null: nothing.
const Event* ProgramEvent(const RunTrace& trace);

std::vector<Promise> PromisesOf(const RunTrace& trace);

// In a run to its end, by the option for the number of steps.
struct CountedSteps {
  int asked = 0;
  std::optional<int> made;  // empty: it did not end well

  // It counts from 0 up to the number that it gets.
  bool is_one_more() const { return made == asked + 1; }
};

struct Seen {
  const CommandDraft& draft;
  const OptionFindings& options;
  const PreflightResult& run;
  std::optional<double> rate;  // the first one
  double longest_pause = 0;    // between two steps
  Limits limits;
  Reading reading;
  std::optional<CountedSteps> counted;  // empty: no such run was made
};

// One line each.
std::vector<std::string> Comments(const Seen& seen);

}  // namespace trainwreck
