#include "harness/report/progress_log.h"

#include <cmath>

namespace trainwreck {
namespace {

constexpr double kSoonestSeconds = 10;
constexpr double kLatestSeconds = 30;
constexpr int kParts = 10;

// "40 s", "12 min", "3.5 h": nobody plans by more digits.
std::string RoughTime(double seconds) {
  if (seconds < 90) return std::to_string(std::lround(seconds)) + " s";
  if (seconds < 5400) return std::to_string(std::lround(seconds / 60)) + " min";
  const long tenths = std::lround(seconds / 360);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " h";
}

}  // namespace

std::optional<std::string> ProgressLog::Line(double seconds, int running, int done, int total) {
  const double since = seconds - last_seconds_;
  const bool has_part = (done - last_done_) * kParts >= total && done > last_done_;
  if (done >= total || since < (has_part ? kSoonestSeconds : kLatestSeconds)) return std::nullopt;
  last_seconds_ = seconds;
  last_done_ = done;
  std::string line = "# " + std::to_string(done) + " of " + std::to_string(total) + " runs done, " +
                     std::to_string(running) + " running, " + RoughTime(seconds) + " gone";
  if (done > 0) line += ", about " + RoughTime(seconds / done * (total - done)) + " left";
  return line + "\n";
}

}  // namespace trainwreck
