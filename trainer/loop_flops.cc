// Of the training loop (loop.h): how much of the device's rate the model uses.
#include "trainer/flops.h"
#include "trainer/loop.h"
#include "trainer/models/model.h"

namespace trainwreck {

void TrainingLoop::MeasurePeak() {
  const at::ScalarType weights = parameters_.at(0).second.scalar_type();
  peak_flops_ = MeasurePeakFlops(*parts_.device, RunPrecision().dtype.value_or(weights));
}

void TrainingLoop::CountFlops(const std::vector<Batch>& batches) {
  if (!peak_flops_ && !telemetry_.wants("model_flops")) return;
  now_.model_flops = ModelFlops(*parts_.model, batches);
  now_.peak_flops = peak_flops_;
}

}  // namespace trainwreck
