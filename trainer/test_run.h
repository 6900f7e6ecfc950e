// For tests: runs one rank in this process, in a folder of its own, and reads its trace.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/protocol/plan.h"
#include "harness/protocol/run_trace.h"
#include "trainer/parts.h"

namespace trainwreck {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInf = std::numeric_limits<float>::infinity();

struct Outcome {
  int code = -1;
  RunTrace trace;
  std::map<std::string, std::string> checkpoints;  // name of the file -> its bytes, at the end

  std::vector<double> Values(const std::string& signal) const;
  double Last(const std::string& signal) const { return Values(signal).back(); }
  std::vector<Json> EventsOf(const std::string& name) const;
};

using MakeWrapper = std::function<std::unique_ptr<PartWrapper>()>;

Outcome RunOnce(const Recipe& recipe, const std::vector<std::string>& record = {},
                const MakeWrapper& make_wrapper = nullptr);

// Small recipes to start from.
Recipe Mlp();
Recipe Gpt();
Recipe With(Recipe recipe, const Recipe& changes);

// The trace without durations.
std::map<std::string, std::vector<double>> BitsOf(const Outcome& outcome);
// The same, and without memory, for runs that use it in another way.
std::map<std::string, std::vector<double>> BitsWithoutMemory(const Outcome& outcome);

}  // namespace trainwreck
