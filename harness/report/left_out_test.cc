// What a target lacks is said: the arms that it cannot have, and the roles for which cases are
// skipped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "harness/report/console.h"
#include "harness/report/report.h"

namespace trainwreck {
namespace left_out_test {

using ::testing::HasSubstr;

// Loudly: a verdict without an arm claims less.
TEST(LeftOut, AnArmIsShownAlwaysAndSoIsTheRoleThatSkipsCases) {
  Verdict verdict{.case_name = "a/b"};
  verdict.notes = {{.arm = "clip",
                    .kind = ArmKind::kDecoy,
                    .seeds = 0,
                    .text = "decoy left out: no key of the target has the role 'clip_norm'"}};
  Verdict skipped{.case_name = "a/c"};
  skipped.verdict = VerdictKind::kSkip;
  skipped.failure_class = FailureClass::Requires("role:clip_norm");
  std::ostringstream out;
  ConsoleReport report(out, {});
  report.Finished(verdict);
  report.End({verdict, skipped}, {}, {});
  EXPECT_THAT(out.str(), HasSubstr("    note: clip: decoy left out: no key"));
  EXPECT_THAT(out.str(), HasSubstr("# 1 case needs a recipe key with the role 'clip_norm': add"));
  EXPECT_THAT(MarkdownReport({verdict}, {}), HasSubstr("Not run, because the target lacks"));
}

}  // namespace left_out_test
}  // namespace trainwreck
