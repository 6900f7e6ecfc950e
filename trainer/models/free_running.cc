#include "trainer/models/free_running.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

namespace trainwreck {

at::Tensor BehindTargets(const Batch& batch) {
  at::Tensor behind = at::zeros_like(batch.weights, at::kBool);
  const std::int64_t count = behind.size(1) - 1;
  behind.narrow(1, 1, count).copy_(batch.weights.narrow(1, 0, count).ne(0));
  return behind;
}

at::Tensor WithOwnInputs(Model& model, const Batch& batch, const at::Tensor& own) {
  at::NoGradGuard no_grad;
  at::Tensor inputs = batch.inputs.clone();
  for (std::int64_t t = 1; t < inputs.size(1); ++t) {
    const at::Tensor predicted = model.Logits(inputs.narrow(1, 0, t)).select(1, t - 1).argmax(-1);
    inputs.select(1, t).copy_(at::where(own.select(1, t), predicted, inputs.select(1, t)));
  }
  return inputs;
}

double FreeRunningAccuracy(Model& model, const Batch& batch) {
  at::NoGradGuard no_grad;
  const at::Tensor inputs = WithOwnInputs(model, batch, BehindTargets(batch));
  const at::Tensor counts = batch.weights.ne(0);
  const at::Tensor right = model.Logits(inputs).argmax(-1).eq(batch.targets).logical_and(counts);
  return right.sum().item<double>() / counts.sum().item<double>();
}

}  // namespace trainwreck
