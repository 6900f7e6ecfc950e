#include "trainer/repetition.h"

#include <bit>
#include <utility>

#include "trainer/tensor_views.h"

namespace trainwreck {

Repetition::Repetition(const Model& model, Device& device, const NamedTensors& parameters)
    : model_(model), device_(device), parameters_(parameters) {}

void Repetition::Begin() { before_.emplace(model_, device_); }

std::optional<Repetition::Difference> Repetition::Compare(double& loss, const Passes& passes,
                                                          bool vote) {
  const Result first = Take(loss);
  const Result second = Again(passes);
  const auto agree = [](const Result& a, const Result& b) {
    return a.digests == b.digests &&
           std::bit_cast<std::uint64_t>(a.loss) == std::bit_cast<std::uint64_t>(b.loss);
  };
  Give(first);
  if (agree(first, second)) return std::nullopt;
  Difference difference{.first_loss = first.loss, .second_loss = second.loss};
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (first.digests[i] != second.digests[i]) {
      difference.parameters.push_back(parameters_[i].first);
    }
  }
  if (!vote) return difference;
  const Result third = Again(passes);
  difference.is_decided = agree(third, first) || agree(third, second);
  const Result& kept = difference.is_decided ? third : first;
  Give(kept);
  loss = kept.loss;
  return difference;
}

Repetition::Result Repetition::Take(double loss) {
  Result result{.loss = loss};
  std::vector<at::Tensor> made;
  for (const auto& [name, parameter] : parameters_) {
    result.gradients.push_back(std::exchange(parameter.mutable_grad(), at::Tensor()));
    if (result.gradients.back().defined()) made.push_back(result.gradients.back());
  }
  const std::vector<std::uint64_t> digests = DigestsOf(made);
  auto next = digests.begin();
  for (const at::Tensor& gradient : result.gradients) {
    result.digests.push_back(gradient.defined() ? *next++ : 0);
  }
  return result;
}

Repetition::Result Repetition::Again(const Passes& passes) {
  before_->Restore();
  for (const auto& [name, parameter] : parameters_) parameter.mutable_grad().reset();
  return Take(passes());
}

void Repetition::Give(const Result& result) const {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i].second.mutable_grad() = result.gradients[i];
  }
}

}  // namespace trainwreck
