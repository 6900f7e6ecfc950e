// Exit statuses of trainwreck: public, changed with a version only.
#pragma once

namespace trainwreck {

// Exit codes; docs/guide/cli.md explains them, and so does `trainwreck explain exit-codes`.
enum ExitStatus {
  kExitPassed = 0,
  kExitFailed = 1,
  kExitUsage = 2,
  kExitInvalid = 3,
  kExitNothingRun = 4,
  kExitInconclusive = 5,
  kExitRequirement = 6,
  kExitInfrastructure = 7,
  kExitChanged = 8,  // of compare: something differs, and nothing is known to be worse
  kExitInternal = 70,
  kExitInterrupted = 130,
};

}  // namespace trainwreck
