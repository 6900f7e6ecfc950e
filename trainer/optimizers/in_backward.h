// The update within the backward pass (Lv et al. 2023, "LOMO"): each parameter is updated as soon as
// its gradient is there, and the gradient is freed. No two gradients need be in memory at once.
#pragma once

#include <functional>
#include <memory>

#include "trainer/optimizers/master_weights.h"
#include "trainer/parts.h"

namespace trainwreck {

// Calls `ready` with a parameter's index, as long as this lives, when a backward pass has added to
// its gradient. Parameters that need no gradient have no hook.
class GradientHooks {
 public:
  using Ready = std::function<void(std::size_t parameter)>;
  GradientHooks(NamedTensors parameters, const Ready& ready);
  ~GradientHooks();
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

  static bool IsOn(const at::Tensor& parameter);

 private:
  NamedTensors parameters_;
};

// An optimizer for each parameter, made by `make`. Step() is for the parameters that have a
// gradient, and the others do not count it. The state is that of one optimizer, except for
// optimizer.step.<parameter>.
std::unique_ptr<Optimizer> OptimizerForEach(const NamedTensors& parameters,
                                            const MakeOptimizer& make);

}  // namespace trainwreck
