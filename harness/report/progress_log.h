// Progress for logs, where no line can be overwritten: one line now and then, with the time left.
#pragma once

#include <optional>
#include <string>

namespace trainwreck {

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

}  // namespace trainwreck
