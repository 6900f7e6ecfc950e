// Reads the signals of a program that does not write our trace, while it runs: lines of its output,
// CSV, JSON lines, TensorBoard's event files.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/targets/target_spec.h"

namespace trainwreck {

// What a source said of one step.
struct StepValues {
  int step = 0;
  std::map<std::string, double> values;
  double wall_time = 0;  // seconds since the epoch, 0: the source does not say
};

struct SignalSink {
  std::function<void(const StepValues&)> step;
  // Something that could not be read as the target's file says: where, what, why.
  std::function<void(const std::string&, const std::string&, const std::string&)> unreadable;
};

class SignalReader {
 public:
  virtual ~SignalReader() = default;
  // Takes in what is new. With `last`, also what is unfinished: the program has ended.
  virtual void Poll(bool last) = 0;
};

// Values of one step that come one by one; they are handed on when the next step begins, so that
// nothing is concluded from half of them.
class StepCollector {
 public:
  explicit StepCollector(const SignalSink& sink) : sink_(sink) {}
  // Without a step: the same as before, or the next when it has the signal already.
  void Add(std::optional<int> step, const std::string& signal, double value, double wall_time = 0);
  void Flush();

 private:
  const SignalSink& sink_;
  StepValues current_;
  int counted_ = 0;
};

// `paths` are expanded, several only of a program's output; `skip_existing`: what is there already
// was read in an earlier attempt.
std::unique_ptr<SignalReader> MakeLineReader(const SourceSpec& source,
                                             const std::vector<std::string>& paths,
                                             bool skip_existing, const SignalSink& sink);
inline std::unique_ptr<SignalReader> MakeLineReader(const SourceSpec& source,
                                                    const std::string& path, bool skip_existing,
                                                    const SignalSink& sink) {
  return MakeLineReader(source, std::vector<std::string>{path}, skip_existing, sink);
}
// Of all files that match, as they come.
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
