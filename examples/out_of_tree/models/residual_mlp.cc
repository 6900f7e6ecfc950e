// residual_mlp: `layers` times x + W2 relu(W1 x), between a linear layer and a linear head (He et
// al. 2016, without convolutions). Names: in, blocks.<i>.{up, relu, down}, head, loss.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "trainer/models/layers.h"
#include "trainer/parts.h"
#include "trainer/recipe/model_kinds.h"

namespace {

using namespace trainwreck;

double Stddev(std::int64_t fan_in) { return std::sqrt(2.0 / static_cast<double>(fan_in)); }

class Block : public torch::nn::Module {
 public:
  Block(std::int64_t width, double down_stddev, at::Generator& generator) {
    up_ = register_module("up", std::make_shared<Linear>(width, width, Stddev(width), generator));
    relu_ = register_module("relu", std::make_shared<Nonlinearity>(Activation::kRelu));
    down_ = register_module("down", std::make_shared<Linear>(width, width, down_stddev, generator));
  }

  at::Tensor Forward(const at::Tensor& x) const {
    return x + down_->Forward(relu_->Forward(up_->Forward(x)));
  }

 private:
  std::shared_ptr<Linear> up_, down_;
  std::shared_ptr<Nonlinearity> relu_;
};

class ResidualMlp : public Model {
 public:
  ResidualMlp(const TrainingRecipe& recipe, std::uint64_t seed) {
    at::Generator generator = MakeGenerator(seed);
    const std::int64_t width = recipe.model.width, features = recipe.data.features;
    in_ = register_module("in",
                          std::make_shared<Linear>(features, width, Stddev(features), generator));
    // So that the sum over all blocks stays of the size of its first term.
    const double down_stddev = recipe.model.init_scale * Stddev(width) /
                               std::sqrt(static_cast<double>(recipe.model.layers));
    auto blocks = register_module("blocks", std::make_shared<torch::nn::Module>());
    for (std::int64_t i = 0; i < recipe.model.layers; ++i) {
      blocks_.push_back(blocks->register_module(
          std::to_string(i), std::make_shared<Block>(width, down_stddev, generator)));
    }
    head_ = register_module("head", std::make_shared<Linear>(width, recipe.data.classes,
                                                             0.1 * Stddev(width), generator));
    loss_ = register_module("loss", std::make_shared<WeightedCrossEntropy>());
  }

  at::Tensor Loss(const Batch& batch) override {
    at::Tensor x = in_->Forward(batch.inputs);
    for (const auto& block : blocks_) x = block->Forward(x);
    return loss_->Forward(head_->Forward(x), batch.targets, batch.weights);
  }

 private:
  std::shared_ptr<Linear> in_, head_;
  std::vector<std::shared_ptr<Block>> blocks_;
  std::shared_ptr<WeightedCrossEntropy> loss_;
};

std::shared_ptr<Model> Make(const TrainingRecipe& recipe, const Dataset& data, std::uint64_t seed) {
  return std::make_shared<ResidualMlp>(recipe, seed);
}

REGISTER_MODEL(.name = "residual_mlp", .takes_tokens = false, .make = Make);

}  // namespace
