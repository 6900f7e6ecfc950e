// The update rules. State entries are named after the parameters: "optimizer.exp_avg.head.weight".
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/parts.h"

namespace trainwreck {

// Momentum and moments may be kept in fewer bits (state_dtype): a step is computed in fp32 and its
// state then rounded.
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// All parameters, in the order in which the model registered them.
NamedTensors ParametersOf(const Model& model);

// v = momentum * v + (g + weight_decay * p); p -= lr * v (Sutskever et al. 2013, as in
// torch.optim.SGD without dampening). State: optimizer.momentum.<parameter>.
struct SgdOptions {
  double momentum = 0;
  double weight_decay = 0;
  at::ScalarType state_dtype = at::kFloat;
};
std::unique_ptr<Optimizer> MakeSgd(NamedTensors parameters, SgdOptions options);

// Loshchilov and Hutter 2019: Adam with decoupled weight decay. State: optimizer.step and, for each
// parameter, optimizer.exp_avg.<parameter> and optimizer.exp_avg_sq.<parameter>.
struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0;
  at::ScalarType state_dtype = at::kFloat;
};
std::unique_ptr<Optimizer> MakeAdamW(NamedTensors parameters, AdamWOptions options);

}  // namespace trainwreck
