// Silent data corruption found by computing twice: the passes of a step are made again, from the
// same batches, weights and random numbers. On a sound machine loss and gradients have the same
// bits (with `deterministic: true` on a GPU). Where they do not, a third time decides, if asked to.
//
//   repetition.Begin();
//   double loss = passes();
//   if (auto difference = repetition.Compare(loss, passes, /*vote=*/true)) ...
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/parts.h"
#include "trainer/telemetry/pass_state.h"

namespace trainwreck {

class Repetition {
 public:
  // The references must outlive it.
  Repetition(const Model& model, Device& device, const NamedTensors& parameters);

  // Right before the passes.
  void Begin();

  struct Difference {
    std::vector<std::string> parameters;  // whose gradients differ
    double first_loss = 0, second_loss = 0;
    bool is_decided = false;  // a third time agreed with one of the two
  };
  using Passes = std::function<double()>;  // returns the loss
  // Right after the passes, whose loss is `loss`: makes them again. Empty: they agree. Else, with
  // `vote`, loss and gradients are those that two of three agree on; without it, or where no two
  // agree, the first ones.
  std::optional<Difference> Compare(double& loss, const Passes& passes, bool vote);

 private:
  struct Result {
    double loss = 0;
    std::vector<at::Tensor> gradients;  // as parameters_; undefined: none was made
    std::vector<std::uint64_t> digests;
  };
  Result Take(double loss);  // the gradients are the parameters' no more
  Result Again(const Passes& passes);
  void Give(const Result& result) const;

  const Model& model_;
  Device& device_;
  const NamedTensors& parameters_;
  std::optional<PassState> before_;  // before the passes
};

}  // namespace trainwreck
