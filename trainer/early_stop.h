// Early stopping (Prechelt 1998, "Early Stopping - But When?"): training that no longer lowers the
// held-out loss ends, and the model goes back to the weights of the lowest one.
#pragma once

#include <cstdint>
#include <limits>

#include "trainer/parts.h"

namespace trainwreck {

class EarlyStop {
 public:
  // `weights`: the parameters and buffers of the model, as views of them.
  EarlyStop(std::int64_t patience, NamedTensors weights)
      : patience_(patience), weights_(std::move(weights)) {}

  // Takes the held-out loss of the weights as they are after `step`, and keeps these when it is the
  // lowest. A loss that is not finite is never the lowest.
  void Judge(int step, double loss);
  // Whether so many evaluations in a row had no lower loss.
  bool is_over() const { return waited_ >= patience_; }
  // Gives the model the best weights. False: there are none.
  bool RestoreBest();
  int best_step() const { return best_step_; }
  double best_loss() const { return best_loss_; }

  void Save(StateDict& state) const;
  void Load(const StateDict& state);  // entries that are missing keep their values

 private:
  std::int64_t patience_;
  std::int64_t waited_ = 0;  // evaluations since the best one
  NamedTensors weights_;
  NamedTensors best_;  // copies
  int best_step_ = -1;
  double best_loss_ = std::numeric_limits<double>::infinity();
};

}  // namespace trainwreck
