// Stored runs as lines of JSON, for python/trainwreck/export.py and programs of the user. Each run
// is a line about it, then its signals and events; the last line says how many runs there are.
//
//   {"run": "nan/mine/fault/0", "case": "nan/mine", "arm": "fault", "kind": "fault", "seed": 0,
//    "recipe": {"optimizer.lr": 1.5}, "verdict": "pass", "report": "## trainwreck: ...", ...}
//   {"signal": "loss", "module": "", "rank": 0, "steps": [0, 1], "values": [2.1, "nan"]}
//   {"event": "fired", "rank": 0, "step": 5, "time": 0.2, "fields": {"id": "hot_lr", ...}}
//   {"end": 1}
#pragma once

#include <functional>
#include <string>

#include "harness/export/stored_runs.h"
#include "harness/protocol/json.h"

namespace trainwreck {

class JsonLinesExport {
 public:
  // `write` gets whole lines.
  explicit JsonLinesExport(std::function<void(const std::string&)> write)
      : write_(std::move(write)) {}

  void Add(const ExportedRun& run);
  void Finish();

 private:
  void Write(const Json& line);
  std::function<void(const std::string&)> write_;
  int runs_ = 0;
};

}  // namespace trainwreck
