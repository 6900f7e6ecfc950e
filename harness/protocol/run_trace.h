// The traces of a run (trace.h) in memory, as formulas read them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/protocol/json.h"

namespace trainwreck {

struct Event {
  std::string name;
  int step = -1;      // -1: no step yet
  int rank = -1;      // -1: the launcher
  double time_s = 0;  // since the run began
  Json fields;        // the whole record
};

struct Collective {
  int step = 0;
  int call = 0;  // index of the call on its rank, from 0, per attempt and phase
  std::string op;
  std::string shape;
  std::string dtype;
  bool operator==(const Collective&) const = default;
};

// `why` of an `end` record: the program cannot carry out its plan.
inline constexpr char kBadPlan[] = "bad_plan";

// One signal of one rank, dense by step.
struct Series {
  std::vector<double> values;
  std::vector<std::uint8_t> present;
  void Set(int step, double value);
  bool Has(int step) const {
    return step >= 0 && step < static_cast<int>(present.size()) && present[step] != 0;
  }
};

struct RunTrace {
  int planned_steps = 0;
  int world_size = 1;
  bool finished = false;                                 // nothing will be added any more
  std::map<std::pair<std::string, int>, Series> series;  // (signal or "signal{module}", rank)
  std::map<int, Series> time_s;                          // rank -> seconds since start, per step
  std::vector<Event> events;
  std::map<int, std::vector<Collective>> collectives;  // rank -> in its current attempt and phase
  std::map<int, std::string> end_why;  // rank -> `why` of its last `end` record, if any
  std::map<int, Json> starts;          // rank -> its last `start` record
  // Step -> the ranks that there were from it on, where `start` records of rank 0 say so: a run may
  // be resumed by another number of ranks.
  std::map<int, int> worlds;
  // Ranks (-1: the launcher) with unreadable records: a value that is missing here may have been in
  // them.
  std::set<int> lost;

  const Series* Find(const std::string& signal, int rank) const;
  int last_step(int rank) const;  // -1: none
  // The number of ranks at a step; world_size where nobody says so.
  int world_at(int step) const;
};

}  // namespace trainwreck
