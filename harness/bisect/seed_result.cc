#include "harness/bisect/seed_result.h"

#include <optional>
#include <string>
#include <vector>

namespace trainwreck {
namespace {

// A margin above 0 belongs to a claim that held, though by too little.
std::optional<FailureSize> SizeOf(const CheckResult& check) {
  if (!check.worst_margin || !(*check.worst_margin < 0)) return std::nullopt;
  return FailureSize{-*check.worst_margin, formula::NameOf(check.unit)};
}

std::vector<Failure> FailuresOf(const Verdict& verdict) {
  std::vector<Failure> failures;
  if (verdict.verdict == VerdictKind::kPass || verdict.verdict == VerdictKind::kInconclusive)
    return failures;
  // The class of the verdict comes first: it is the one that a report names.
  for (bool leading : {true, false}) {
    for (const CheckResult& check : verdict.checks) {
      if (check.failure_class.empty() || check.failure_class == FailureClass::kUndecided) continue;
      if ((check.failure_class == verdict.failure_class) == leading) {
        failures.push_back({check.failure_class.text(), check.check, check.arm, SizeOf(check)});
      }
    }
  }
  if (failures.empty()) failures.push_back({verdict.failure_class.text(), "", ""});
  return failures;
}

}  // namespace

SeedResult SeedResultOf(const Verdict& verdict, int commit, int seed) {
  SeedResult result;
  result.commit = commit;
  result.seed = seed;
  if (verdict.failure_class == FailureClass::kInfrastructure ||
      verdict.verdict == VerdictKind::kSkip) {
    result.error = verdict.failure_class.text() + ": " + verdict.reason;
    return result;
  }
  result.failures = FailuresOf(verdict);
  for (const CheckResult& check : verdict.checks) {
    if (check.failure_class == FailureClass::kUndecided) {
      result.undecided.push_back({check.failure_class.text(), check.check, check.arm});
    }
  }
  return result;
}

}  // namespace trainwreck
