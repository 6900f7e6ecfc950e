// How many cores a run needs now. Times are seconds since the run began; nothing here reads a
// clock.
#pragma once

#include <optional>

namespace trainwreck {

class CoreUse {
 public:
  // Processes have been started, of which nothing is known yet.
  void Begin() { *this = CoreUse(); }

  // Whether it is time for the next sample. Many processes are sampled less often.
  bool IsDue(double now_s, int processes) const;

  // `demand_s`: the processor time that the processes have had or waited for until now, see
  // ReadProcessorDemand; empty: not known.
  void Sample(double now_s, std::optional<double> demand_s);

  // `most` where nothing is known. It rises at once and falls by half with each sample, so a short
  // pause lends few cores.
  double cores(double most) const;

 private:
  double sampled_s_ = 0;
  std::optional<double> demand_s_;  // at the last sample
  std::optional<double> cores_;
};

}  // namespace trainwreck
