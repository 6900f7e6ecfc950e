#include "harness/report/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <vector>

namespace trainwreck {
namespace {

constexpr double kSoonestSeconds = 10;
constexpr double kLatestSeconds = 30;
constexpr int kParts = 10;
constexpr std::chrono::milliseconds kInterval{100};
constexpr int kUsualWidth = 80;

// With one digit behind the point below ten: nobody plans by more.
std::string Rough(double value) {
  const long tenths = std::lround(value * 10);
  if (tenths >= 100) return std::to_string(std::lround(value));
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
}

// "40 s", "12 min", "3.5 h"
std::string RoughTime(double seconds) {
  if (seconds < 90) return std::to_string(std::lround(seconds)) + " s";
  if (seconds < 5400) return std::to_string(std::lround(seconds / 60)) + " min";
  return Rough(seconds / 3600) + " h";
}

// "12 runs/s", "4.5 runs/min"
std::string RoughRate(double per_second) {
  if (per_second >= 1) return Rough(per_second) + " runs/s";
  if (per_second * 60 >= 1) return Rough(per_second * 60) + " runs/min";
  return Rough(per_second * 3600) + " runs/h";
}

}  // namespace

int WindowWidth(int fd) {
  winsize window{};
  if (ioctl(fd, TIOCGWINSZ, &window) == 0 && window.ws_col > 0) return window.ws_col;
  const char* columns = std::getenv("COLUMNS");
  const int said = columns == nullptr ? 0 : std::atoi(columns);
  return said > 0 ? said : kUsualWidth;
}

std::string ProgressText(double seconds, int running, int done, int total, int width) {
  const std::string parts = std::to_string(done) + "/" + std::to_string(total);
  const std::string words = std::to_string(done) + " of " + std::to_string(total) + " runs done, " +
                            std::to_string(running) + " running";
  std::vector<std::string> texts;  // the longest first
  if (done > 0 && seconds > 0) {
    const std::string left = RoughTime(seconds / done * (total - done)) + " left";
    const std::string rate = RoughRate(done / seconds);
    texts = {words + ", " + rate + ", " + RoughTime(seconds) + " gone, about " + left,
             words + ", " + rate + ", about " + left, parts + " runs, " + rate + ", " + left,
             parts + ", " + left};
  } else {
    texts = {words + ", " + RoughTime(seconds) + " gone", words};
  }
  texts.push_back(parts);
  for (const std::string& text : texts) {
    if (static_cast<int>(text.size()) + 2 < width) return "# " + text;
  }
  return "";
}

std::optional<std::string> ProgressLog::Line(double seconds, int running, int done, int total) {
  const double since = seconds - last_seconds_;
  const bool has_part = (done - last_done_) * kParts >= total && done > last_done_;
  if (done >= total || since < (has_part ? kSoonestSeconds : kLatestSeconds)) return std::nullopt;
  last_seconds_ = seconds;
  last_done_ = done;
  return ProgressText(seconds, running, done, total, std::numeric_limits<int>::max()) + "\n";
}

ProgressLine::Mode ProgressLine::ForStream(int fd) {
  const char* kind = std::getenv("TERM");
  const bool is_dumb = kind != nullptr && std::string_view(kind) == "dumb";
  return isatty(fd) == 1 && !is_dumb ? Mode::kOverwritten : Mode::kLog;
}

void ProgressLine::Show(int running, int done, int total) {
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  if (mode_ == Mode::kLog) {
    if (const auto line = log_.Line(seconds, running, done, total)) out_ << *line << std::flush;
  }
  if (mode_ != Mode::kOverwritten || (is_shown_ && now - last_ < kInterval)) return;
  last_ = now;
  is_shown_ = true;
  out_ << "\r\x1b[K" << ProgressText(seconds, running, done, total, WindowWidth(fd_)) << std::flush;
}

void ProgressLine::Clear() {
  if (!is_shown_) return;
  out_ << "\r\x1b[K" << std::flush;
  is_shown_ = false;
}

}  // namespace trainwreck
