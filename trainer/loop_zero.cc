// Of the training loop (loop.h): what is divided among the ranks (ZeRO, Rajbhandari et al. 2020).
#include <memory>
#include <vector>

#include "trainer/loop.h"
#include "trainer/optimizers/clipping.h"

namespace trainwreck {

void TrainingLoop::PrepareDividedParameters() {
  DividedParameters* const divided = parts_.divided_parameters.get();
  if (divided == nullptr) return;
  telemetry_.set_gathering(
      {.whole = [divided] { return std::make_shared<DividedParameters::Whole>(divided); },
       .digests = [divided] { return divided->Digests(); }});
}

void TrainingLoop::CountGathering(double* pass_s) {
  if (!parts_.divided_parameters) return;
  const double seconds = parts_.divided_parameters->TakeSeconds();
  now_.comm_s += seconds;
  if (pass_s != nullptr) *pass_s -= seconds;
}

const NamedTensors& TrainingLoop::GradientOwners() const {
  return divided_gradients_ ? parts_.division->own() : parameters_;
}

std::vector<kernels::TensorStats> TrainingLoop::ReadGradients() {
  std::vector<kernels::TensorStats> stats = GradientStats(GradientOwners());
  if (!divided_gradients_) return stats;
  return StatsOverRanks(*parts_.communicator, *parts_.division, stats);
}

}  // namespace trainwreck
