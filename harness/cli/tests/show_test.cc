// `show`: the failing case in a pipe, and through the pager on a terminal.
#include <gtest/gtest.h>

#include "harness/cli/tests/cli_testing.h"

namespace trainwreck {
namespace {

class ShowTest : public testing::Test {
 protected:
  ShowTest() {
    files.WritePassing("ok");
    files.WritePassing("weak", "quality: at_end loss < 0.0001\n");
    const Called called = files.Call("run --keep all --history none --output out");
    EXPECT_EQ(called.status, 1) << called.output();
  }
  // On a terminal of its own.
  Called OnTerminal(const std::string& arguments, const std::string& environment) const {
    return files.Shell("python3 -c 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)' '" +
                           files.program() + "' " + arguments,
                       environment);
  }
  CliFolder files;
};

TEST_F(ShowTest, WhatDidNotPassIsShown) {
  const Called called = files.Call("show out", "LC_ALL=C.UTF-8");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "FAIL remedy_costly  fake/weak\n")) << called.out;
  EXPECT_FALSE(Contains(called.out, "fake/ok")) << called.out;
  EXPECT_TRUE(Contains(called.out, "\n  >>   quality in faster")) << called.out;
  EXPECT_TRUE(Contains(called.out, "█")) << called.out;
  EXPECT_TRUE(Contains(called.out, "fired")) << called.out;
  EXPECT_TRUE(Contains(called.out, "\nrepeat\n  trainwreck run fake/weak --keep all\n"));
  EXPECT_FALSE(Contains(called.out, "\x1b")) << called.out;
}

TEST_F(ShowTest, CasesAreChosenByName) {
  EXPECT_TRUE(Contains(files.Call("show out fake/ok").out, "PASS  fake/ok\n"));
  const std::string both = files.Call("show out 'fake/*'").out;
  EXPECT_TRUE(Contains(both, "PASS  fake/ok\n") && Contains(both, "fake/weak\n")) << both;
  const Called wrong = files.Call("show out fake/okk");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_TRUE(Contains(wrong.err, "did you mean 'fake/ok'?")) << wrong.err;
  EXPECT_EQ(files.Call("show scenarios").status, 2);
}

TEST_F(ShowTest, ATerminalGetsThePager) {
  const std::string pager = "LC_ALL=C.UTF-8 TERM=xterm PAGER='sed s/^/paged:/'";
  const Called paged = OnTerminal("show out", pager);
  EXPECT_TRUE(Contains(paged.out, "paged:\x1b[1;31mFAIL remedy_costly  fake/weak\x1b[0m"))
      << paged.output();
  const Called plain = OnTerminal("show out --no-pager", pager);
  EXPECT_FALSE(Contains(plain.out, "paged:")) << plain.output();
  EXPECT_TRUE(Contains(plain.out, "FAIL remedy_costly  fake/weak")) << plain.output();
}

}  // namespace
}  // namespace trainwreck
