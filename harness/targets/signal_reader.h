// Reads the signals of a running program that does not write our trace: from lines of its output,
// CSV, JSON lines, TensorBoard's event files.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/targets/target_spec.h"

namespace trainwreck {

// The values of one step from a source.
struct StepValues {
  int step = 0;
  std::map<std::string, double> values;
  double wall_time = 0;  // seconds since the epoch, 0: the source does not say
};

struct SignalSink {
  std::function<void(const StepValues&)> step;
  // Called for text that could not be read as the target's file says: where, what, why.
  std::function<void(const std::string&, const std::string&, const std::string&)> unreadable;
};

class SignalReader {
 public:
  virtual ~SignalReader() = default;
  // Reads what is new. With `last`, the program has ended, so unfinished lines are read too.
  virtual void Poll(bool last) = 0;
};

// Collects the values of a step, which come one by one. They are passed on when the next step
// begins, so that no conclusion is drawn from an incomplete step.
class StepCollector {
 public:
  explicit StepCollector(const SignalSink& sink) : sink_(sink) {}
  // Adds a value. Without a step, it belongs to the current step, or to the next one if the current
  // step already has this signal.
  void Add(std::optional<int> step, const std::string& signal, double value, double wall_time = 0);
  void Flush();

 private:
  const SignalSink& sink_;
  StepValues current_;
  int counted_ = 0;
};

// Makes a reader.
// `paths` are expanded; there are several only for a program's output. `skip_existing`: existing
// content was read in an earlier attempt.
std::unique_ptr<SignalReader> MakeLineReader(const SourceSpec& source,
                                             const std::vector<std::string>& paths,
                                             bool skip_existing, const SignalSink& sink);
inline std::unique_ptr<SignalReader> MakeLineReader(const SourceSpec& source,
                                                    const std::string& path, bool skip_existing,
                                                    const SignalSink& sink) {
  return MakeLineReader(source, std::vector<std::string>{path}, skip_existing, sink);
}
// Makes a reader of all files that match, also of those that appear later.
std::unique_ptr<SignalReader> MakeGlobReader(const SourceSpec& source, const std::string& pattern,
                                             bool skip_existing, const SignalSink& sink);
std::unique_ptr<SignalReader> MakeEventFileReader(const SourceSpec& source,
                                                  const std::string& folder, bool skip_existing,
                                                  const SignalSink& sink);

// "0.5", "nan", "-inf", "Infinity"; empty when the text is no number.
std::optional<double> NumberFromText(std::string text);

// The bare NaN, Infinity and -Infinity that Python's json writes, as strings; the rest unchanged.
std::string QuoteNonFinite(const std::string& json);

}  // namespace trainwreck
