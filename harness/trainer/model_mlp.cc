#include <cmath>

#include "harness/trainer/layers.h"
#include "harness/trainer/model_kinds.h"
#include "harness/trainer/models.h"

namespace trainwreck {
namespace {

double HeStddev(std::int64_t fan_in) { return std::sqrt(2.0 / static_cast<double>(fan_in)); }

class Layers : public torch::nn::Module {
 public:
  Layers(const ModelRecipe& recipe, std::int64_t features, at::Generator& generator) {
    std::int64_t in = features;
    for (std::int64_t i = 0; i < recipe.layers; ++i) {
      const double stddev = HeStddev(in) * recipe.init_scale;
      layers_.push_back(register_module(
          std::to_string(i), std::make_shared<Linear>(in, recipe.width, stddev, generator)));
      relus_.push_back(register_module("relu" + std::to_string(i), std::make_shared<Relu>()));
      in = recipe.width;
    }
  }

  at::Tensor Forward(at::Tensor x) const {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      x = relus_[i]->Forward(layers_[i]->Forward(x));
    }
    return x;
  }

 private:
  std::vector<std::shared_ptr<Linear>> layers_;
  std::vector<std::shared_ptr<Relu>> relus_;
};

class Mlp : public Model {
 public:
  Mlp(const ModelRecipe& recipe, std::int64_t features, std::int64_t classes, std::uint64_t seed) {
    at::Generator generator = MakeGenerator(seed);
    layers_ = register_module("layers", std::make_shared<Layers>(recipe, features, generator));
    // A small head: the first loss is close to log(classes), that of a guess.
    head_ = register_module(
        "head",
        std::make_shared<Linear>(recipe.width, classes, 0.1 * HeStddev(recipe.width), generator));
    loss_ = register_module("loss", std::make_shared<WeightedCrossEntropy>());
  }

  at::Tensor Loss(const Batch& batch) override {
    return loss_->Forward(head_->Forward(layers_->Forward(batch.inputs)), batch.targets,
                          batch.weights);
  }

 private:
  std::shared_ptr<Layers> layers_;
  std::shared_ptr<Linear> head_;
  std::shared_ptr<WeightedCrossEntropy> loss_;
};

std::shared_ptr<Model> FromRecipe(const TrainingRecipe& recipe, const Dataset& data,
                                  std::uint64_t seed) {
  return MakeMlp(recipe.model, recipe.data.features, recipe.data.classes, seed);
}

REGISTER_MODEL(.name = "mlp", .takes_tokens = false, .make = FromRecipe);

}  // namespace

std::shared_ptr<Model> MakeMlp(const ModelRecipe& recipe, std::int64_t features,
                               std::int64_t classes, std::uint64_t seed) {
  return std::make_shared<Mlp>(recipe, features, classes, seed);
}

}  // namespace trainwreck
