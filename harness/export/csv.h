// Stored runs as three tables (CSV, RFC 4180), of which each row says which run it belongs to:
//
//   signals.csv  run,case,arm,seed,rank,step,module,signal,value
//   events.csv   run,case,arm,seed,rank,step,time,event,fields
//   runs.csv     run,case,arm,kind,seed,ranks,steps,end,verdict,class,recipe,faults
//
// Numbers have as many digits as give the same number back; others are nan, inf and -inf. `fields`,
// `recipe` and `faults` are JSON.
#pragma once

#include <fstream>
#include <string>

#include "harness/export/stored_runs.h"

namespace trainwreck {

// A file that appears under its name when it is whole.
class GrowingTable {
 public:
  GrowingTable(std::string path, const std::string& header);  // throws std::system_error
  ~GrowingTable();
  GrowingTable(const GrowingTable&) = delete;
  GrowingTable& operator=(const GrowingTable&) = delete;

  // Where the next rows are appended.
  std::string& rows() { return rows_; }
  // Writes rows out when there are many; throws std::system_error.
  void Spill();
  void Finish();

 private:
  [[noreturn]] void Fail() const;
  std::string path_, beside_;
  std::ofstream file_;
  std::string rows_;
};

class CsvExport {
 public:
  explicit CsvExport(const std::string& folder);  // makes it; throws std::system_error

  void Add(const ExportedRun& run);
  void Finish();  // the files appear

 private:
  void AddSignals(const std::string& run, const RunTrace& trace);
  GrowingTable runs_, signals_, events_;
};

}  // namespace trainwreck
