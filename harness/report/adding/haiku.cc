// haiku: what a new report takes, which is this file. adding_a_report_test links it.
#include "harness/report/report.h"

namespace trainwreck {
namespace {

std::string HaikuReport(const std::vector<Verdict>& verdicts, const RunInfo& /*info*/) {
  return std::to_string(verdicts.size()) + " verdicts";
}

const ReportRegistration registration(100, {.name = "haiku", .text = HaikuReport});

}  // namespace
}  // namespace trainwreck
