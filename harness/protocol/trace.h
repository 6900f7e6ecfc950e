// The trace of a run: one file per rank, rank<k>.jsonl, and the launcher's launcher.jsonl. Each
// line is one record, written by one write(2), so a SIGKILL loses at most the last record. Later
// phases and attempts append to the files.
//
//   {"t":"start","rank":0,"phase":"train","attempt":0,"pid":7,"recipe_digest":"..","version":".."}
//   {"t":"step","step":0,"time":0.01,"loss":4.1,"grad_norm":1.6,"update_norm{head.weight}":0.2}
//   {"t":"collective","step":0,"call":3,"op":"all_reduce","shape":"[108224]","dtype":"float32"}
//   {"t":"event","event":"fired","step":5,"time":0.2,"fault":"bad_sample","before":3,"after":"nan"}
//   {"t":"end","why":"completed","step":120}
//   {"t":"roles","signals":{"train_loss":"loss"}}
//
// A step's record is written when its optimizer step is done; steps count from 0. When a step was
// run twice (after a restart, from an older checkpoint), the later record counts. The bare NaN,
// Infinity and -Infinity of Python's json are read as these numbers. trace_reader.h reads the files
// into run_trace.h.
#pragma once

#include <string>

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

}  // namespace trainwreck
