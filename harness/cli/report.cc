// trainwreck report: more reports of an invocation that is over, from its verdicts.json.
#include "harness/report/report.h"

#include <filesystem>
#include <iostream>

#include "harness/cli/session.h"
#include "harness/cli/storage.h"
#include "harness/cli/verbs.h"

namespace trainwreck {
namespace {

StoredReport ReadVerdicts(const std::string& run) {
  const bool is_file = std::filesystem::is_regular_file(run);
  const std::string path = is_file ? run : FindOutputFolder(run) + "/verdicts.json";
  if (!std::filesystem::is_regular_file(path)) {
    throw UsageError("'" + run + "' is no finished invocation: there is no " + path);
  }
  try {
    return ReadJsonReport(path);
  } catch (const std::exception& error) {
    throw ConfigurationError(error.what());
  }
}

}  // namespace

int ReportVerb(const Options& options) {
  const StoredReport stored = ReadVerdicts(options.report.run);
  for (const ReportRequest& request : options.report.reports) {
    WriteReport(*ParseReportKind(request.kind), request.path, stored.verdicts, stored.info);
    std::cout << "wrote " << request.path << "\n";
  }
  return kExitPassed;
}

}  // namespace trainwreck
