// The trace: all that a run leaves. One file per rank, rank<k>.jsonl, and the launcher's
// launcher.jsonl; a record a line, a write(2) a record, so that a SIGKILL loses at most the last
// one. Files are appended to by later phases and attempts.
//
//   {"t":"start","rank":0,"phase":"train","attempt":0,"pid":7,"recipe_digest":"..","version":".."}
//   {"t":"step","step":0,"time":0.01,"loss":4.1,"grad_norm":1.6,"update_norm{head.weight}":0.2}
//   {"t":"collective","step":0,"call":3,"op":"all_reduce","shape":"[108224]","dtype":"float32"}
//   {"t":"event","event":"fired","step":5,"time":0.2,"fault":"bad_sample","before":3,"after":"nan"}
//   {"t":"end","why":"completed","step":120}
//
// A step's record is written when its optimizer step is done; steps count from 0. When a step was
// run twice (after a restart, from an older checkpoint), the later record counts. The bare NaN,
// Infinity and -Infinity of Python's json are read as the numbers that they are.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/protocol/json.h"

namespace trainwreck {

// Appends records to one file; each Write is one write(2) of a whole line.
class TraceWriter {
 public:
  explicit TraceWriter(const std::string& path);  // throws std::system_error
  ~TraceWriter();
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  void Write(const Json& record);    // throws std::system_error (a full disk, say)
  void WriteLine(std::string line);  // `line` without its newline
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

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

// One signal of one rank, dense by step.
struct Series {
  std::vector<double> values;
  std::vector<std::uint8_t> present;
  void Set(int step, double value);
  bool Has(int step) const {
    return step >= 0 && step < static_cast<int>(present.size()) && present[step] != 0;
  }
};

// A run in memory, as formulas read it.
struct RunTrace {
  int planned_steps = 0;
  int world_size = 1;
  bool finished = false;                                 // nothing will be added any more
  std::map<std::pair<std::string, int>, Series> series;  // (signal or "signal{module}", rank)
  std::map<int, Series> time_s;                          // rank -> seconds since start, per step
  std::vector<Event> events;
  std::map<int, std::vector<Collective>> collectives;  // rank -> of its current attempt and phase
  std::map<int, std::string> end_why;                  // rank -> of its last `end` record, if any
  std::map<int, Json> starts;                          // rank -> its last `start` record
  // Ranks (-1: the launcher) of whose records some could not be read: what of them is not here may
  // have been there.
  std::set<int> lost;

  const Series* Find(const std::string& signal, int rank) const;
  int last_step(int rank) const;  // -1: none
};

struct TraceLimits {
  std::int64_t line_bytes = 1 << 20;
  std::int64_t file_bytes = 256LL << 20;
  std::int64_t events = 100'000;  // of the run; what a target writes must not fill our memory
  std::int64_t collectives = 4'000'000;
  std::int64_t values = 50'000'000;  // of all series together, gaps included
};

// Reads a growing folder of trace files; never throws on what it finds there.
class TraceReader {
 public:
  TraceReader(std::string folder, int world_size, int planned_steps, TraceLimits limits = {});
  ~TraceReader();
  TraceReader(TraceReader&&) noexcept;
  TraceReader& operator=(TraceReader&&) noexcept;

  // Takes in whole new lines, some MiB of a file at most; true when there were any. With `last`,
  // all is read, the trace is marked finished, and a last line without its newline counts when it
  // is a whole record; half of one is lost.
  bool Poll(bool last = false);

  // Before a next attempt appends to the files: cuts off what a killed process left of its last
  // line.
  void CutTornTails();

  const RunTrace& trace() const { return trace_; }
  RunTrace& mutable_trace() { return trace_; }
  // What was wrong with the files, at most a few entries: "rank0.jsonl:3: not JSON". A torn last
  // line is no problem: it is what a SIGKILL leaves.
  const std::vector<std::string>& problems() const { return problems_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  struct File;
  void Take(File& file, const std::string& line);
  void Complain(const File& file, const std::string& what);
  void GiveUp(File& file, const std::string& what);
  void TakeTail(File& file);
  // False when the value would go over a limit.
  bool Add(Series& series, int step, double value);
  RunTrace trace_;
  std::string folder_;
  TraceLimits limits_;
  std::vector<File> files_;
  std::vector<std::string> problems_;
  std::int64_t bytes_ = 0;
  std::int64_t values_ = 0;
  std::int64_t collectives_ = 0;
};

}  // namespace trainwreck
