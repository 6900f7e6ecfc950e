// trainwreck doctor: is this machine, and is the target, fit to run scenarios? Every line that is
// not ok says what to do.
#include "harness/session/doctor.h"

#include <unistd.h>

#include <iostream>

#include "harness/cli/verb.h"
#include "harness/session/session.h"
#include "harness/text/clean_text.h"

namespace trainwreck {
namespace {

struct DoctorOptions {
  CommonOptions common;
};

class Findings {
 public:
  explicit Findings(bool color) : color_(color) {}

  void Print(const Finding& finding) {
    static const char* const words[] = {"ok  ", "warn", "fail"};
    static const char* const colors[] = {"\033[32m", "\033[33m", "\033[31m"};
    const int index = static_cast<int>(finding.health);
    const std::string& what = finding.what;
    std::cout << (color_ ? colors[index] : "") << words[index] << (color_ ? "\033[0m" : "") << "  "
              << what << std::string(what.size() < 14 ? 14 - what.size() : 1, ' ')
              << CleanText(finding.seen) << "\n";
    if (finding.health != Health::kOk && !finding.fix.empty()) {
      std::cout << "      fix: " << CleanText(finding.fix) << "\n";
    }
    std::cout << std::flush;
    if (finding.health == Health::kFail) has_failed_ = true;
  }
  void Print(const Checked& checked) {
    Print(checked.finding);
    for (const PreflightFinding& detail : checked.details) std::cout << Format(detail, color_);
  }
  bool has_failed() const { return has_failed_; }

 private:
  bool color_;
  bool has_failed_ = false;
};

int DoctorVerb(const DoctorOptions& options) {
  Findings findings(WantsColor(options.common.color, STDOUT_FILENO));
  findings.Print(
      Finding{Health::kOk, "trainwreck", std::string(kVersion) + " in " + ProgramFolder(), ""});
  for (const Finding& finding : CheckMachine(ThisMachine())) findings.Print(finding);
  findings.Print(CheckScenarios(options.common));
  CheckTarget(options.common, [&](const Checked& checked) { findings.Print(checked); });
  return findings.has_failed() ? kExitInvalid : kExitPassed;
}

void Declare(VerbArguments& arguments, DoctorOptions& options) { arguments.Common(options.common); }

const VerbRegistration registration("doctor", "Check this machine and the target", kLooking + 2,
                                    Declare, DoctorVerb, /*prints_colors=*/true);

}  // namespace
}  // namespace trainwreck
