// Reports of a whole invocation, from its verdicts: JSON for programs (its schema is described in
// json_report.cc), JUnit XML for CI servers, Markdown for people who read a pull request. A format
// is one file that registers itself; --report, its help and its checks follow:
//
//   const ReportRegistration registration(2, {.name = "junit", .text = JunitReport});
//
//   WriteReport(*FindReportFormat("junit"), "junit.xml", verdicts, info);
//
// A file appears whole or not at all (written beside its place, then renamed).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/judge/verdict.h"

namespace trainwreck {

// Facts about the invocation, not about one case.
struct RunInfo {
  std::string version;        // of trainwreck
  std::string command_line;   // as typed
  std::string target;         // "trainwreck-trainer 0.1.0"
  std::string target_note;    // how it was found if nobody named it; for the console only
  std::string target_digest;  // see DigestOfTarget
  std::string commit;         // of the repository around the working directory; empty: none
  bool is_dirty = false;      // the repository has uncommitted changes
  std::map<std::string, std::string> environment;  // of the machine: "cpu", "driver"
  std::string devices;      // of the runs: "cuda (NVIDIA H200), cpu"; may be empty
  std::string isolation;    // "fork" or "exec"
  std::string started_utc;  // "2026-01-31T12:00:00Z"
  std::string host;
  std::string output_dir;
  std::string report_file;       // the one being written, for links from it; set by WriteReport
  std::string selection_digest;  // of all selected cases, those of other shards too; empty: unknown
  std::vector<std::string> selected_cases;  // their names; stored where some have no verdict
  int cores = 0;
  int runs = 0;  // trainings executed
  double wall_seconds = 0;
  double cpu_seconds = 0;  // of the trainings
  int selected = 0;        // cases, those of other shards too; 0: unknown
  int unjudged = 0;        // cases that were cut off: by an interruption, or by --fail-fast
};

struct ReportFormat {
  std::string name;
  std::string (*text)(const std::vector<Verdict>& verdicts, const RunInfo& info) = nullptr;
};

class ReportRegistration {
 public:
  ReportRegistration(int place, ReportFormat format);  // `place` in the list, each taken once
};

// All formats, in the order of their places.
std::vector<ReportFormat> ReportFormats();
std::optional<ReportFormat> FindReportFormat(const std::string& name);

// Throws std::system_error that names `path`. Missing folders are made.
void WriteReport(const ReportFormat& format, const std::string& path,
                 const std::vector<Verdict>& verdicts, const RunInfo& info);

// Appends the Markdown summary to the file that GITHUB_STEP_SUMMARY names; false when it is not
// set.
bool AppendStepSummary(const std::vector<Verdict>& verdicts, const RunInfo& info);

// The texts that WriteReport writes.
std::string JunitReport(const std::vector<Verdict>& verdicts, const RunInfo& info);
std::string MarkdownReport(const std::vector<Verdict>& verdicts, const RunInfo& info);
// One case: verdict, reason, arms, failed checks.
std::string CaseMarkdown(const Verdict& verdict);
std::string JsonReport(const std::vector<Verdict>& verdicts, const RunInfo& info);

struct StoredReport {
  std::vector<Verdict> verdicts;
  RunInfo info;
};

// Reads back what JsonReport wrote, so that other kinds can be made from a stored invocation.
// Throws std::runtime_error with the file and what is wrong with it.
StoredReport ReadJsonReport(const std::string& path);

}  // namespace trainwreck
