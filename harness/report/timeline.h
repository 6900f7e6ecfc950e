// Stored traces as a timeline in the trace event format of Chrome, which Perfetto
// (ui.perfetto.dev), chrome://tracing and TensorBoard's trace viewer open.
//
// Each rank of a run is a process of the timeline, with three threads: the stages of its steps, its
// collectives, and its events. Times are microseconds since the first start of the run.
//   - A step is a slice (`ph` X) that ends where its record was written. Inside it are its stages
//     that were measured (data_s, comm_s) and, between them, the rest.
//   - A collective is a slice of 1 us where it was called. Flows (`ph` s, t, f) join the calls with
//     the same number, phase and attempt on different ranks, if they do the same.
//   - Events and faults are instants (`ph` i) with all their fields.
//   - Memory is curves (`ph` C) with a value for each owner: of each step's peak, from the signals
//     memory_*_bytes, and of what is in use as each stage begins, from events `memory_by_stage`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/protocol/json.h"

namespace trainwreck {

// What one rank wrote, as it stands in its file.
struct RankRecords {
  std::vector<Json> records;  // objects
  int unreadable = 0;         // lines that are no records
};

struct TimelineRun {
  std::string name;
  std::map<int, RankRecords> ranks;  // -1: the launcher
};

// What the timeline has, and what it has not. Counts are over all runs.
struct TimelineCounts {
  int steps = 0;
  int collectives = 0;
  int events = 0;  // also starts and ends
  int memory = 0;  // points of its curves
  int flows = 0;   // calls that were matched over ranks
  int unreadable = 0;
  int untimed_steps = 0;        // left out: without a time
  int untimed_collectives = 0;  // drawn, in order, at the beginning of their step
  int unmatched = 0;            // calls that one rank alone made, of runs of several
  int different = 0;            // calls of one number that are not the same on all ranks
  int unaligned = 0;            // starts without the machine's clock: placed behind the one before
};

struct Timeline {
  Json json;  // the document: {"traceEvents": [...], ...}
  TimelineCounts counts;
  std::vector<std::string> left_out;  // sentences; also in the document
};

Timeline MakeTimeline(const std::vector<TimelineRun>& runs);

}  // namespace trainwreck
