#include <ATen/core/grad_mode.h>

#include <cmath>
#include <stdexcept>

#include "trainer/models/layers.h"
#include "trainer/models/model.h"
#include "trainer/models/models.h"
#include "trainer/recipe/model_kinds.h"

namespace trainwreck {
namespace {

double WeightStddev(const ModelRecipe& recipe, std::int64_t fan_in, std::int64_t fan_out) {
  switch (recipe.init) {
    case InitKind::kKaiming:
      return HeStddev(fan_in);
    case InitKind::kXavier:
      return std::sqrt(2.0 / static_cast<double>(fan_in + fan_out));
    case InitKind::kNormal:
    case InitKind::kConstant:
      return recipe.init_std;
  }
  throw std::logic_error("no such init");
}

std::string NameOf(Activation kind) {
  switch (kind) {
    case Activation::kRelu:
      return "relu";
    case Activation::kLeakyRelu:
      return "leaky_relu";
    case Activation::kTanh:
      return "tanh";
    case Activation::kSigmoid:
      return "sigmoid";
  }
  throw std::logic_error("no such activation");
}

// Linear, layer norm or batch norm where asked for, activation.
class Hidden {
 public:
  // Its modules are registered in `parent`, under names with the layer's number.
  Hidden(const ModelRecipe& recipe, std::int64_t in, const std::string& number,
         torch::nn::Module& parent, at::Generator& generator)
      : adds_input_(recipe.residual && in == recipe.width) {
    const double stddev = WeightStddev(recipe, in, recipe.width) * recipe.init_scale;
    linear_ = parent.register_module(number,
                                     std::make_shared<Linear>(in, recipe.width, stddev, generator));
    if (recipe.lora_rank > 0) linear_->AddAdapter(recipe.lora_rank, generator);
    if (recipe.init == InitKind::kConstant) {
      at::NoGradGuard no_grad;
      linear_->named_parameters()["weight"].fill_(stddev);
    }
    if (recipe.layer_norm) {
      norm_ = parent.register_module("norm" + number, std::make_shared<LayerNorm>(recipe.width));
    }
    if (recipe.batch_norm) {
      batch_norm_ =
          parent.register_module("norm" + number, std::make_shared<BatchNorm>(recipe.width));
    }
    activation_ = parent.register_module(NameOf(recipe.activation) + number,
                                         std::make_shared<Nonlinearity>(recipe.activation));
  }

  at::Tensor Forward(const at::Tensor& x) const {
    at::Tensor hidden = linear_->Forward(x);
    if (norm_) hidden = norm_->Forward(hidden);
    if (batch_norm_) hidden = batch_norm_->Forward(hidden);
    hidden = activation_->Forward(hidden);
    return adds_input_ ? x + hidden : hidden;
  }

 private:
  bool adds_input_;
  std::shared_ptr<Linear> linear_;
  std::shared_ptr<LayerNorm> norm_;
  std::shared_ptr<BatchNorm> batch_norm_;
  std::shared_ptr<Nonlinearity> activation_;
};

class Layers : public torch::nn::Module {
 public:
  Layers(const ModelRecipe& recipe, std::int64_t features, at::Generator& generator) {
    for (std::int64_t i = 0; i < recipe.layers; ++i) {
      layers_.emplace_back(recipe, i == 0 ? features : recipe.width, std::to_string(i), *this,
                           generator);
    }
  }

  at::Tensor Forward(at::Tensor x) const {
    for (const Hidden& layer : layers_) x = layer.Forward(x);
    return x;
  }

 private:
  std::vector<Hidden> layers_;
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
    loss_ = register_module("loss", std::make_shared<WeightedCrossEntropy>(recipe.loss));
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

std::shared_ptr<Model> FromRecipe(const TrainingRecipe& recipe, const Dataset& /*data*/,
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
