#include "harness/report/progress_log.h"

#include <gtest/gtest.h>

namespace trainwreck {
namespace progress_log_test {

TEST(ProgressLog, SaysNothingInAShortInvocation) {
  ProgressLog log;
  for (int done = 0; done <= 100; ++done) EXPECT_FALSE(log.Line(done * 0.09, 2, done, 100));
}

TEST(ProgressLog, SaysATenthOnceTenSecondsAreGone) {
  ProgressLog log;
  EXPECT_FALSE(log.Line(9, 2, 10, 100));
  EXPECT_EQ(log.Line(12, 2, 12, 100),
            "# 12 of 100 runs done, 2 running, 12 s gone, about 88 s left\n");
  EXPECT_FALSE(log.Line(13, 2, 30, 100));  // a tenth, but at once
  EXPECT_FALSE(log.Line(25, 2, 21, 100));  // later, but not a tenth
  EXPECT_TRUE(log.Line(25, 2, 22, 100));
}

TEST(ProgressLog, SaysThatItGoesOnWhereNothingEnds) {
  ProgressLog log;
  EXPECT_FALSE(log.Line(29, 2, 0, 4));
  EXPECT_EQ(log.Line(31, 2, 0, 4), "# 0 of 4 runs done, 2 running, 31 s gone\n");
  EXPECT_FALSE(log.Line(60, 2, 0, 4));
  EXPECT_EQ(log.Line(3600, 1, 1, 4),
            "# 1 of 4 runs done, 1 running, 60 min gone, about 3.0 h left\n");
}

TEST(ProgressLog, IsSilentAtTheEnd) {
  ProgressLog log;
  EXPECT_FALSE(log.Line(500, 0, 4, 4));
}

}  // namespace progress_log_test
}  // namespace trainwreck
