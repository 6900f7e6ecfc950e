// The last collective calls of a rank in a small file of the run's folder: when each began, and
// whether it ended. The file is mapped memory, so that a call costs no system call, and what is in
// it stays when the process is killed or stopped. harness/launch/last_calls.h reads it.
//
// One line of JSON for each call, padded with spaces to kLineBytes; call n is in line n % kCalls:
//   {"call":80,"step":11,"op":"all_reduce","shape":"[4]","dtype":"float64","began":0.31,"ended":0.32}
// `began` and `ended` are seconds since the trace began. `ended` is null until the call has ended,
// and "failed" where it threw.
#pragma once

#include <functional>
#include <string>

namespace trainwreck {

class CallLog {
 public:
  static constexpr int kCalls = 16;
  static constexpr int kLineBytes = 256;

  // Makes the file anew. Throws std::runtime_error when there is no room for it. `clock` gives
  // seconds.
  CallLog(const std::string& path, std::function<double()> clock);
  ~CallLog();
  CallLog(const CallLog&) = delete;
  CallLog& operator=(const CallLog&) = delete;

  void Begin(int call, int step, const std::string& op, const std::string& shape,
             const std::string& dtype);
  void End(int call, bool failed);

 private:
  void WriteLine(int call, const std::string& text);

  std::function<double()> clock_;
  char* lines_ = nullptr;  // kCalls * kLineBytes bytes
  std::string current_;    // the line of the call in progress, up to its `ended`
};

}  // namespace trainwreck
