// What the history keeps of one invocation of `trainwreck run`, and what comparisons read: enough
// to say where it was made, how each case came out, and how far each check was from flipping in
// each seed. Made from verdicts, whether just judged or read from verdicts.json.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/judge/verdict.h"
#include "harness/report/report.h"

namespace trainwreck {

// One check in one arm. It has only margins that are a number: a run that was stopped early leaves
// an interval, and a NaN in the trace leaves none.
struct MarginRecord {
  std::string arm;
  std::string check;
  std::string formula;
  bool expected = true;
  std::string unit;               // "octaves", "steps", "s", "plain"
  std::map<int, double> by_seed;  // positive agrees with what is expected; may be infinite
  int agree = 0;
  int seeds = 0;  // with or without a margin
};

// One training.
struct TrainingRecord {
  std::string arm;
  int seed = 0;
  std::string end;               // "completed", "decided", ...
  double step_seconds = 0;       // median; 0: not known
  double peak_memory_bytes = 0;  // 0: not known
  std::map<std::string, double> final_signals;
  TraceBits bits;  // no steps: not recorded
};

struct CaseRecord {
  std::string name;  // "nan/lr-too-high[sgd]"
  std::string scenario;
  std::string scenario_digest;                     // empty: not recorded
  std::map<std::string, std::string> environment;  // with the machine's
  VerdictKind verdict = VerdictKind::kPass;
  FailureClass failure_class;
  std::string reason;
  double wall_seconds = 0;  // with what its runs waited for; 0: nothing ran, or not recorded
  double cpu_seconds = 0;
  std::vector<MarginRecord> margins;
  std::vector<TrainingRecord> trainings;
  int seeds() const;
};

struct Record {
  std::int64_t id = 0;  // in the history; 0: not in it
  std::string started_utc;
  std::string version;  // of trainwreck
  std::string command_line;
  std::string commit;  // empty: not known
  bool is_dirty = false;
  std::string target;
  std::string target_digest;  // empty: not recorded
  std::string isolation;
  std::string host;
  int cores = 0;
  std::string output_dir;
  double wall_seconds = 0;
  double cpu_seconds = 0;
  std::vector<CaseRecord> cases;  // a case that was repeated occurs more than once
};

Record MakeRecord(const std::vector<Verdict>& verdicts, const RunInfo& info);

// Eight digits of an environment; equal environments have equal digits.
std::string Fingerprint(const std::map<std::string, std::string>& environment);

}  // namespace trainwreck
