// Reads a folder of trace files (trace.h), also while they grow, and bounds the memory that it
// takes.
//
//   TraceReader reader(folder, ranks, steps);
//   while (reader.Poll()) ...
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/protocol/run_trace.h"

namespace trainwreck {

// The memory that the traces of a case share, both of unfinished runs and of runs that wait to be
// judged. A hostile target must not be able to end the harness, because its verdicts would be lost.
class TraceRoom {
 public:
  explicit TraceRoom(std::int64_t bytes = std::int64_t{2} << 30) : bytes_(bytes), left_(bytes) {}
  // Takes memory; false, and nothing is taken, when there is not enough left. A negative amount
  // gives memory back.
  bool Take(std::int64_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }
  std::int64_t bytes() const { return bytes_; }
  std::int64_t left() const { return left_; }

 private:
  std::int64_t bytes_;
  std::int64_t left_;
};

struct TraceLimits {
  std::int64_t line_bytes = 1 << 20;
  std::int64_t file_bytes = 256LL << 20;
  std::int64_t events = 100'000;  // of the run; a target must not fill our memory
  std::int64_t collectives = 4'000'000;
  std::int64_t values = 50'000'000;  // of all series together, gaps included
  std::shared_ptr<TraceRoom> room;   // null: the trace is bounded by `values` alone
};

// Reads the files. Never throws, whatever is in them.
class TraceReader {
 public:
  TraceReader(std::string folder, int world_size, int planned_steps, TraceLimits limits = {});
  ~TraceReader();
  TraceReader(TraceReader&&) noexcept;
  TraceReader& operator=(TraceReader&&) noexcept;

  // Reads whole new lines, some MiB of each file at most; true when ranks had any. With `last`,
  // reads everything and marks the trace finished. A last line without its newline then counts if
  // it is a whole record; a partial one is lost.
  //
  // A network file system may show a file's new length before its new bytes, with zeros in their
  // place; zeros are therefore not read until the end, and then waited for, for 2 s.
  bool Poll(bool last = false);

  // Cuts off the partial last line of a killed process, before the next attempt appends to the
  // files.
  void CutTornTails();

  const RunTrace& trace() const { return trace_; }
  // The trace. Do not change its series while there is more to read.
  RunTrace& mutable_trace() { return trace_; }
  // The problems of the files, at most a few entries: "rank0.jsonl:3: not JSON". A partial last
  // line is no problem: a SIGKILL leaves one.
  const std::vector<std::string>& problems() const { return problems_; }
  std::int64_t bytes() const { return bytes_; }
  // Whether the case exceeded its memory with this trace. The trace was then freed: all of it is
  // lost.
  bool is_over_room() const { return is_over_room_; }

 private:
  struct File;
  struct Scratch;
  bool Open(File& file);
  void OpenAgain(File& file);
  bool ReadNew(File& file, bool last, bool takes_zeros);
  void TakeChunk(File& file, std::size_t size);
  void Take(File& file, std::string_view line);
  bool TakeFlat(File& file, std::string_view line);
  bool TakeFlatStep(File& file);
  void TakeFlatCollective(File& file, std::string_view line);
  void TakeAny(File& file, const std::string& line);
  void TakeRoles(const Json& record);
  // The name that a signal of a step record has from then on: "grad_norm{layers.0}" of
  // "gnorm{layers.0}".
  std::string NameOf(std::string_view key) const;
  void TakeStep(File& file, const Json& record);
  void TakeEvent(File& file, const Json& record, bool is_end);
  void NoteStep(File& file, int step);
  void BeginWorld(File& file, int step);
  void AddCollective(File& file, Collective collective, std::size_t bytes);
  void Complain(const File& file, const std::string& what);
  void GiveUp(File& file, const std::string& what);
  void LoseTail(const File& file);
  void TakeTail(File& file);
  // False when it would exceed a limit.
  bool Charge(std::int64_t bytes);
  bool ChargeRoom(std::int64_t bytes);
  bool Add(Series& series, int step, double value);
  void LetGo();
  RunTrace trace_;
  std::string folder_;
  TraceLimits limits_;
  std::vector<File> files_;
  std::map<std::string, std::string> own_names_;  // of signals, by role
  std::unique_ptr<Scratch> scratch_;
  std::vector<std::string> problems_;
  std::int64_t bytes_ = 0;
  std::int64_t values_ = 0;
  std::int64_t collectives_ = 0;
  std::int64_t room_taken_ = 0;
  bool is_over_room_ = false;
};

}  // namespace trainwreck
