#include <ATen/ops/stack.h>

#include <cmath>

#include "trainer/models/layers.h"
#include "trainer/models/model.h"
#include "trainer/models/models.h"
#include "trainer/recipe/model_kinds.h"

namespace trainwreck {
namespace {

constexpr double kTokenStddev = 0.1;
constexpr double kHeadStddev = 0.02;

// Announces all states of a sequence at once.
class States : public Layer {
 public:
  at::Tensor Forward(const std::vector<at::Tensor>& states) const {
    return Announce(at::stack(states, 1));
  }
};

class Cell : public torch::nn::Module {
 public:
  Cell(const ModelRecipe& recipe, at::Generator& generator) {
    const double stddev = recipe.init_scale / std::sqrt(static_cast<double>(recipe.width));
    input_ = register_module(
        "input", std::make_shared<Linear>(recipe.width, recipe.width, stddev, generator));
    recurrent_ = register_module(
        "recurrent",
        std::make_shared<Linear>(recipe.width, recipe.width, stddev, generator, Bias::kNone));
    activation_ = register_module("activation", std::make_shared<Nonlinearity>(recipe.activation));
  }

  // The state after each of the inputs [batch, length, width].
  std::vector<at::Tensor> Forward(const at::Tensor& inputs) const {
    const at::Tensor driven = input_->Forward(inputs);
    std::vector<at::Tensor> states;
    for (std::int64_t t = 0; t < inputs.size(1); ++t) {
      const at::Tensor drive = driven.select(1, t);
      states.push_back(activation_->Forward(
          states.empty() ? drive : drive + recurrent_->Forward(states.back())));
    }
    return states;
  }

 private:
  std::shared_ptr<Linear> input_, recurrent_;
  std::shared_ptr<Nonlinearity> activation_;
};

class Rnn : public Model {
 public:
  Rnn(const ModelRecipe& recipe, std::int64_t vocab, std::uint64_t seed) {
    at::Generator generator = MakeGenerator(seed);
    embed_ = register_module(
        "embed", std::make_shared<Embedding>(vocab, recipe.width, kTokenStddev, generator));
    cell_ = register_module("cell", std::make_shared<Cell>(recipe, generator));
    states_ = register_module("state", std::make_shared<States>());
    head_ = register_module("head",
                            std::make_shared<Linear>(recipe.width, vocab, kHeadStddev, generator));
    loss_ = register_module("loss", std::make_shared<WeightedCrossEntropy>(recipe.loss));
  }

  at::Tensor Logits(const at::Tensor& tokens) override {
    return head_->Forward(states_->Forward(cell_->Forward(embed_->Forward(tokens))));
  }

  at::Tensor Loss(const Batch& batch) override {
    return loss_->Forward(Logits(batch.inputs), batch.targets, batch.weights);
  }

  double ForwardFlops(const Batch& batch) const override {
    const double matrices = MatrixElements(*cell_) + MatrixElements(*head_);
    return 2 * matrices * static_cast<double>(batch.inputs.numel());
  }

 private:
  std::shared_ptr<Embedding> embed_;
  std::shared_ptr<Cell> cell_;
  std::shared_ptr<States> states_;
  std::shared_ptr<Linear> head_;
  std::shared_ptr<WeightedCrossEntropy> loss_;
};

std::shared_ptr<Model> FromRecipe(const TrainingRecipe& recipe, const Dataset& data,
                                  std::uint64_t seed) {
  return MakeRnn(recipe.model, data.target_limit(), seed);
}

REGISTER_MODEL(.name = "rnn", .takes_tokens = true, .make = FromRecipe);

}  // namespace

std::shared_ptr<Model> MakeRnn(const ModelRecipe& recipe, std::int64_t vocab, std::uint64_t seed) {
  return std::make_shared<Rnn>(recipe, vocab, seed);
}

}  // namespace trainwreck
