// One file is all that a new verb takes: greet_verb.cc. The help, the check of options and the
// nearest name follow.
#include <gtest/gtest.h>

#include "harness/cli/verb.h"

namespace trainwreck {
namespace {

TEST(AddingAVerbTest, OneFileIsCalledHelpedAndChecked) {
  testing::internal::CaptureStdout();
  const ReadCommand help = ReadCommandLine({"--help"}, "trainwreck --help");
  EXPECT_NE(testing::internal::GetCapturedStdout().find("Say hello"), std::string::npos);
  EXPECT_EQ(help.status, 0);

  const ReadCommand greet = ReadCommandLine({"greet", "--name", "you"}, "trainwreck greet");
  ASSERT_EQ(greet.verb, "greet");
  testing::internal::CaptureStdout();
  EXPECT_EQ(greet.call(), 0);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "hello you\n");
}

TEST(AddingAVerbTest, AWrongWordGetsTheNearestRightOne) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(ReadCommandLine({"gret"}, "trainwreck gret").status, 2);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("greet"), std::string::npos);
  testing::internal::CaptureStderr();
  EXPECT_EQ(ReadCommandLine({"greet", "--nam", "x"}, "trainwreck greet").status, 2);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("--name"), std::string::npos);
}

}  // namespace
}  // namespace trainwreck
