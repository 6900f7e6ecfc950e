// The update rules. State entries are named after the parameters: "optimizer.exp_avg.head.weight".
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/parts.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {

// Momentum and moments (state_dtype) and parameters may have fewer than 32 bits: a step is computed
// in fp32, and its results are then rounded. With kByte, state is kept in codes of 8 bits
// (block_codes.h), and a step is made piece by piece, so that only few numbers are in fp32 at once.
// A state entry optimizer.<kind>.<parameter> then has the codes, and the entry
// optimizer.<kind>_scales.<parameter> the blocks' scales.
//
// With kDisk, momentum and moments lie in files (disk_tensor.h), on the host also where parameters
// are on a GPU, and a step is made piece by piece as well. Without codes it is, bit for bit, the
// step without files. As ZeRO-Infinity's optimizer offload (Rajbhandari et al. 2021).

// Parameters that a rule treats alike.
struct ParameterGroup {
  std::vector<std::size_t> members;  // indices of its parameters
  double weight_decay = 0;
};

// An optimizer of groups: one, or with `no_decay` (globs over the parameters' names, with commas
// between) two, of which the second has no weight decay. The rate is the same for all.
class GroupedOptimizer : public Optimizer {
 public:
  // The rate that a group uses when Step() gets `lr`.
  using Rate = std::function<double(std::size_t group, double lr)>;

  std::vector<ParameterGroup>& groups() { return groups_; }
  // Replaces the common rate.
  void set_rate(Rate rate) { rate_ = std::move(rate); }

 protected:
  double RateOf(std::size_t group, double lr) const { return rate_ ? rate_(group, lr) : lr; }

  std::vector<ParameterGroup> groups_;

 private:
  Rate rate_;
};

// v = momentum * v + (g + weight_decay * p); p -= lr * v (Sutskever et al. 2013, as in
// torch.optim.SGD without dampening). State: optimizer.momentum.<parameter>.
struct SgdOptions {
  double momentum = 0;
  double weight_decay = 0;
  std::string no_decay;
  UpdateForm form = UpdateForm::kFused;
  at::ScalarType state_dtype = at::kFloat;
  Offload offload = Offload::kNone;
};
std::unique_ptr<Optimizer> MakeSgd(NamedTensors parameters, SgdOptions options);

// Loshchilov and Hutter 2019: Adam with decoupled weight decay. State: optimizer.step and, for each
// parameter, optimizer.exp_avg.<parameter> and optimizer.exp_avg_sq.<parameter>.
struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0;
  std::string no_decay;
  UpdateForm form = UpdateForm::kFused;
  at::ScalarType state_dtype = at::kFloat;
  Offload offload = Offload::kNone;
};
std::unique_ptr<Optimizer> MakeAdamW(NamedTensors parameters, AdamWOptions options);

}  // namespace trainwreck
