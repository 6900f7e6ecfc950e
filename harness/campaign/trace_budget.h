// The traces of a case stay in memory until the case is judged. This bounds them: what a hostile
// target writes must not end the harness, with all that it has judged.
#pragma once

#include <cstdint>

#include "harness/launch/launcher.h"

namespace trainwreck {

class TraceBudget {
 public:
  TraceBudget() = default;
  explicit TraceBudget(std::int64_t bytes) : left_bytes_(bytes) {}

  // Takes a run that came to its end. One whose trace is too large for what is left loses its trace
  // and ends as garbage, which no claim excuses.
  void Admit(RunResult& result);

 private:
  std::int64_t left_bytes_ = std::int64_t{2} << 30;
};

}  // namespace trainwreck
