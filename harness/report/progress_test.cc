#include "harness/report/progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <sstream>

namespace trainwreck {
namespace progress_test {

TEST(ProgressLog, SaysNothingInAShortInvocation) {
  ProgressLog log;
  for (int done = 0; done <= 100; ++done) EXPECT_FALSE(log.Line(done * 0.09, 2, done, 100));
}

TEST(ProgressLog, SaysATenthOnceTenSecondsAreGone) {
  ProgressLog log;
  EXPECT_FALSE(log.Line(9, 2, 10, 100));
  EXPECT_EQ(log.Line(12, 2, 12, 100),
            "# 12 of 100 runs done, 2 running, 1.0 runs/s, 12 s gone, about 88 s left\n");
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
            "# 1 of 4 runs done, 1 running, 1.0 runs/h, 60 min gone, about 3.0 h left\n");
}

TEST(ProgressLog, IsSilentAtTheEnd) {
  ProgressLog log;
  EXPECT_FALSE(log.Line(500, 0, 4, 4));
}

TEST(ProgressText, NeverIsAsWideAsTheWindow) {
  const auto text = [](int width) { return ProgressText(600, 2, 1234, 3507, width); };
  EXPECT_EQ(text(100),
            "# 1234 of 3507 runs done, 2 running, 2.1 runs/s, 10 min gone, about 18 min left");
  EXPECT_EQ(text(75), "# 1234 of 3507 runs done, 2 running, 2.1 runs/s, about 18 min left");
  EXPECT_EQ(text(50), "# 1234/3507 runs, 2.1 runs/s, 18 min left");
  EXPECT_EQ(text(30), "# 1234/3507, 18 min left");
  EXPECT_EQ(text(20), "# 1234/3507");
  for (int width = 1; width < 120; ++width) {
    EXPECT_LT(text(width).size(), static_cast<std::size_t>(width));
    EXPECT_LT(ProgressText(3, 2, 0, 3507, width).size(), static_cast<std::size_t>(width));
  }
}

TEST(ProgressText, RatesHaveAUnitThatPeopleRead) {
  const auto rate = [](double seconds) { return ProgressText(seconds, 1, 10, 20, 50); };
  EXPECT_EQ(rate(0.5), "# 10/20 runs, 20 runs/s, 1 s left");
  EXPECT_EQ(rate(120), "# 10/20 runs, 5.0 runs/min, 2 min left");
  EXPECT_EQ(rate(36000), "# 10/20 runs, 1.0 runs/h, 10 h left");
}

// A terminal of which the test is the window.
struct Terminal {
  int window = posix_openpt(O_RDWR | O_NOCTTY);
  int fd = -1;
  Terminal() {
    if (grantpt(window) == 0 && unlockpt(window) == 0)
      fd = open(ptsname(window), O_RDWR | O_NOCTTY);
  }
  ~Terminal() {
    close(fd);
    close(window);
  }
  void Resize(int columns) const {
    const winsize size{.ws_row = 24,
                       .ws_col = static_cast<unsigned short>(columns),
                       .ws_xpixel = 0,
                       .ws_ypixel = 0};
    ioctl(window, TIOCSWINSZ, &size);
  }
};

TEST(ProgressLine, FollowsTheWindow) {
  const Terminal terminal;
  ASSERT_GE(terminal.fd, 0);
  setenv("TERM", "xterm", 1);
  EXPECT_EQ(ProgressLine::ForStream(terminal.fd), ProgressLine::Mode::kOverwritten);
  for (const auto& [columns, text] :
       {std::pair{200, "# 0 of 3507 runs done, 2 running, 0 s gone"}, std::pair{12, "# 0/3507"}}) {
    terminal.Resize(columns);
    EXPECT_EQ(WindowWidth(terminal.fd), columns);
    std::ostringstream out;
    {
      ProgressLine line(out, ProgressLine::Mode::kOverwritten, terminal.fd);
      line.Show(2, 0, 3507);
      EXPECT_EQ(out.str(), std::string("\r\x1b[K") + text);
    }
    EXPECT_TRUE(out.str().ends_with("\r\x1b[K"));
  }
  setenv("TERM", "dumb", 1);
  EXPECT_EQ(ProgressLine::ForStream(terminal.fd), ProgressLine::Mode::kLog);
  unsetenv("TERM");
}

TEST(ProgressLine, WritesNoEscapesToAPipe) {
  EXPECT_EQ(ProgressLine::ForStream(-1), ProgressLine::Mode::kLog);
  std::ostringstream out;
  ProgressLine(out, ProgressLine::Mode::kLog, -1).Show(2, 0, 3507);
  EXPECT_EQ(out.str(), "");  // nothing to say yet
  setenv("COLUMNS", "33", 1);
  EXPECT_EQ(WindowWidth(-1), 33);
  setenv("COLUMNS", "nonsense", 1);
  EXPECT_EQ(WindowWidth(-1), 80);
  unsetenv("COLUMNS");
}

}  // namespace progress_test
}  // namespace trainwreck
