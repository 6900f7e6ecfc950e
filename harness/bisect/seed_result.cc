#include "harness/bisect/seed_result.h"

#include <string>
#include <vector>

namespace trainwreck {
namespace {

std::vector<Failure> FailuresOf(const Verdict& verdict) {
  std::vector<Failure> failures;
  if (verdict.verdict == "pass" || verdict.verdict == "inconclusive") return failures;
  // The class of the verdict comes first: it is the one that a report names.
  for (bool leading : {true, false}) {
    for (const CheckResult& check : verdict.checks) {
      if (check.failure_class.empty() || check.failure_class == "undecided") continue;
      if ((check.failure_class == verdict.failure_class) == leading) {
        failures.push_back({check.failure_class, check.check, check.arm});
      }
    }
  }
  if (failures.empty()) failures.push_back({verdict.failure_class, "", ""});
  return failures;
}

}  // namespace

SeedResult SeedResultOf(const Verdict& verdict, int commit, int seed) {
  SeedResult result;
  result.commit = commit;
  result.seed = seed;
  if (verdict.failure_class == "infrastructure" || verdict.verdict == "skip") {
    result.error = verdict.failure_class + ": " + verdict.reason;
    return result;
  }
  result.failures = FailuresOf(verdict);
  for (const CheckResult& check : verdict.checks) {
    if (check.failure_class == "undecided") {
      result.undecided.push_back({check.failure_class, check.check, check.arm});
    }
  }
  return result;
}

}  // namespace trainwreck
