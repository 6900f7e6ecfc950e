// Of the training loop (loop.h): what is told of a step that is not finite.
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/loop.h"

namespace trainwreck {

void TrainingLoop::ReportNonfinite(const std::vector<Batch>& batches) {
  nonfinite_seen_ = true;
  Json samples = Json::array();
  std::string field;
  for (const Batch& batch : batches) {
    for (int i = 0; i < batch.size(); ++i) {
      const Sample sample{batch.ids[i], batch.inputs[i], batch.targets[i], batch.weights[i]};
      const std::optional<SampleDefect> defect = FindDefect(sample, *parts_.train_data);
      if (!defect) continue;
      samples.push_back(sample.id);
      if (field.empty()) field = defect->field;
    }
  }
  events_.Report(events::kNonfiniteBatch, {{"batch_step", clock_.step},
                                           {"loss", EncodeNumber(now_.loss)},
                                           {"samples", std::move(samples)},
                                           {"field", field}});
}

void TrainingLoop::KeepBeginning() {
  if (!evidence_.is_open()) return;
  beginning_ = CapturePosition();
  for (const auto& [name, buffer] : buffers_) beginning_["model." + name] = buffer.clone();
}

void TrainingLoop::DiagnoseNonfinite(const std::vector<Batch>& batches,
                                     const std::vector<double>& counts) {
  const bool forward_is_finite = std::isfinite(now_.loss) && !telemetry_.saw_nonfinite_activation();
  if (forward_is_finite && std::isfinite(now_.grad_norm)) return;
  const auto finding = diagnosis_.Explain(forward_is_finite, batches, [&] {
    ForwardBackward(batches, counts, /*hook=*/nullptr, nullptr, /*may_replay=*/false);
  });
  // An overflow that the scaler answers is no failure, and a healthy run has some.
  if (!finding || (now_.overflow && forward_is_finite)) return;
  // As before the step: nothing was updated yet.
  StateDict state = std::exchange(beginning_, {});
  state.merge(StateDict(diagnosis_.rng_before_forward()));
  state.merge(Capture());  // which replaces nothing that is there
  evidence_.Save({.step = clock_.step,
                  .finding = *finding,
                  .loss = now_.loss,
                  .grad_norm = now_.grad_norm,
                  .lr = now_.lr,
                  .loss_scale = now_.loss_scale,
                  .batches = batches,
                  .parameters = parameters_,
                  .gradients = gradients_,
                  .rng = diagnosis_.rng_before_forward(),
                  .state = state});
}

}  // namespace trainwreck
