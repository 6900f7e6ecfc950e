// Progress of many runs, for people who wait: on a terminal one line that is overwritten and never
// wraps, elsewhere (a pipe, a log of CI) one line now and then. Both have the rate and the time
// left.
//
//   ProgressLine progress(std::cerr, ProgressLine::ForStream(STDERR_FILENO), STDERR_FILENO);
//   progress.Show(running, done, total);
//   progress.Clear();  // before other output
#pragma once

#include <chrono>
#include <optional>
#include <ostream>
#include <string>

namespace trainwreck {

// The columns of the terminal that `fd` is, now: a window may change its size. Else those of
// COLUMNS, else 80.
int WindowWidth(int fd);

// As much as fits into `width` columns, the last one left free (a character there makes some
// terminals wrap): "# 12 of 100 runs done, 2 running, 1.0 runs/s, 12 s gone, about 88 s left", and
// in a narrow window "# 12/100, 88 s left". `seconds` since the first run began.
std::string ProgressText(double seconds, int running, int done, int total, int width);

// Makes a line when another tenth is done, but not within 10 s of the last line; else after 30 s. A
// short invocation has no line.
//
//   if (const auto line = log.Line(seconds, running, done, total)) out << *line;
class ProgressLog {
 public:
  // `seconds` since the first run began; they do not go back.
  std::optional<std::string> Line(double seconds, int running, int done, int total);

 private:
  double last_seconds_ = 0;
  int last_done_ = 0;
};

class ProgressLine {
 public:
  enum class Mode { kSilent, kOverwritten, kLog };
  static Mode ForStream(int fd);  // a terminal that can overwrite, or not

  // `fd` is what `out` writes to; -1: nothing with a width.
  ProgressLine(std::ostream& out, Mode mode, int fd) : out_(out), mode_(mode), fd_(fd) {}
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // On a terminal at most every 100 ms.
  void Show(int running, int done, int total);
  void Clear();

 private:
  std::ostream& out_;
  Mode mode_;
  int fd_;
  bool is_shown_ = false;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_{};
  ProgressLog log_;
};

}  // namespace trainwreck
