// trainwreck report: more reports of an invocation that is over, from its verdicts.json; and pages
// of the JSON reports of other verbs.
#include "harness/report/report.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>

#include "harness/cli/verb.h"
#include "harness/pages/pages.h"
#include "harness/picture/files.h"
#include "harness/session/session.h"
#include "harness/session/storage.h"
#include "harness/targets/event_file.h"

namespace trainwreck {
namespace {

struct ReportOptions {
  CommonOptions common;
  std::string run;
  std::vector<ReportRequest> reports;
};

StoredReport ReadVerdicts(const std::string& run) {
  const bool is_file = std::filesystem::is_regular_file(run);
  const std::string path = is_file ? run : FindOutputFolder(run) + "/verdicts.json";
  if (!std::filesystem::is_regular_file(path)) {
    throw UsageError("'" + run + "' is no finished invocation: there is no " + path);
  }
  try {
    StoredReport stored = ReadJsonReport(path);
    // Without the file, pages have the losses that verdicts.json has.
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    ReadPictures((folder / kPicturesFile).string(), stored.verdicts);
    return stored;
  } catch (const std::exception& error) {
    throw ConfigurationError(error.what());
  }
}

// The signals of one stored run as TensorBoard reads them; of the first rank by their names, of
// others with the rank behind.
std::string EventFileOf(const std::string& folder) {
  const StoredRun stored = LoadStoredRun(folder);
  const RunTrace trace = LoadTrace(folder, stored.run.ranks, stored.run.steps);
  std::vector<ScalarEvent> events;
  for (const auto& [key, series] : trace.series) {
    const auto& [signal, rank] = key;
    const auto times = trace.time_s.find(rank);
    for (int step = 0; step < static_cast<int>(series.values.size()); ++step) {
      if (!series.Has(step)) continue;
      const bool has_time = times != trace.time_s.end() && times->second.Has(step);
      events.push_back({rank == 0 ? signal : signal + "@" + std::to_string(rank), step,
                        has_time ? times->second.values[step] : 0, series.values[step]});
    }
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const ScalarEvent& a, const ScalarEvent& b) { return a.step < b.step; });
  return EncodeEventFile(events);
}

// One folder for each run that was kept.
void WriteEventFiles(const std::string& run, const std::filesystem::path& into) {
  const std::filesystem::path output = FindOutputFolder(run);
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(output)) {
    if (entry.path().filename() != "run.json") continue;
    const std::filesystem::path folder = entry.path().parent_path();
    WriteWholeFile(
        (into / folder.lexically_relative(output) / "events.out.tfevents.0.trainwreck").string(),
        EventFileOf(folder.string()));
    ++count;
  }
  if (count == 0) {
    throw UsageError("'" + run + "' holds no runs ('trainwreck run --keep all' keeps them)");
  }
}

// The report of another verb, if the file is one.
std::optional<Json> OtherReport(const std::string& path) {
  if (!std::filesystem::is_regular_file(path)) return std::nullopt;
  try {
    Json report = ReadReport(path);
    const auto schema = report.is_object() ? report.find("schema") : report.end();
    if (schema == report.end() || !schema->is_string() || !HasPage(*schema)) return std::nullopt;
    return report;
  } catch (const PageError&) {
    return std::nullopt;  // no JSON: said where verdicts are read
  }
}

void WritePages(const Json& report, const std::vector<ReportRequest>& requests) {
  for (const ReportRequest& request : requests) {
    if (request.kind != "html") {
      throw UsageError("--report: a report of this kind has a page (html) and no " + request.kind);
    }
    try {
      WriteWholeFile(request.path, PageOf(report, kVersion));
    } catch (const PageError& error) {
      throw ConfigurationError(error.what());
    }
    std::cout << "wrote " << request.path << "\n";
  }
}

int ReportVerb(const ReportOptions& options) {
  if (const std::optional<Json> other = OtherReport(options.run)) {
    WritePages(*other, options.reports);
    return kExitPassed;
  }
  const StoredReport stored = ReadVerdicts(options.run);
  for (const ReportRequest& request : options.reports) {
    if (request.kind == kTensorBoard) {
      WriteEventFiles(options.run, request.path);
      std::cout << "wrote " << request.path << "\n";
      continue;
    }
    WriteReport(*FindReportFormat(request.kind), request.path, stored.verdicts, stored.info);
    std::cout << "wrote " << request.path << "\n";
  }
  return kExitPassed;
}

void Declare(VerbArguments& arguments, ReportOptions& options) {
  arguments.Positional("RUN", options.run, "Folder of the invocation, latest, or a JSON report")
      .Required();
  arguments.Reports(options.reports, /*of_stored=*/true);
  arguments.Common(options.common);
}

const VerbRegistration registration("report", "Write reports of a finished invocation", kStored,
                                    Declare, ReportVerb);

}  // namespace
}  // namespace trainwreck
