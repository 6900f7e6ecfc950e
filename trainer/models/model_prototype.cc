#include <ATen/ops/linear.h>

#include <stdexcept>

#include "trainer/models/layers.h"
#include "trainer/models/model.h"
#include "trainer/models/models.h"
#include "trainer/recipe/model_kinds.h"

namespace trainwreck {
namespace {

std::shared_ptr<Linear> WithoutBias(std::int64_t in, std::int64_t out, at::Generator& generator) {
  return std::make_shared<Linear>(in, out, HeStddev(in), generator, Bias::kNone);
}

class Layers : public torch::nn::Module {
 public:
  Layers(const ModelRecipe& recipe, std::int64_t features, at::Generator& generator) {
    for (std::int64_t i = 0; i < recipe.layers; ++i) {
      const std::string number = std::to_string(i);
      linear_.push_back(register_module(
          number, WithoutBias(i == 0 ? features : recipe.width, recipe.width, generator)));
      relu_.push_back(
          register_module("relu" + number, std::make_shared<Nonlinearity>(Activation::kRelu)));
    }
  }

  at::Tensor Forward(at::Tensor x) const {
    for (std::size_t i = 0; i < linear_.size(); ++i) {
      x = relu_[i]->Forward(linear_[i]->Forward(x));
    }
    return x;
  }

 private:
  std::vector<std::shared_ptr<Linear>> linear_;
  std::vector<std::shared_ptr<Nonlinearity>> relu_;
};

// The prototypes are its rows.
class Similarity : public Layer {
 public:
  explicit Similarity(const ModelRecipe& recipe)
      : kind_(recipe.similarity),
        scale_(recipe.logit_scale),
        normalise_(register_module("normalise", std::make_shared<Normalise>(recipe.normalise))) {}

  // [n, classes] for embeddings [n, width] and prototypes [classes, width].
  at::Tensor Forward(const at::Tensor& x, const at::Tensor& prototypes) const {
    switch (kind_) {
      case SimilarityKind::kCosine:
        return Announce(
            at::linear(normalise_->Forward(x), normalise_->Forward(prototypes)).mul(scale_));
      case SimilarityKind::kDistance:
        return Announce((x.unsqueeze(1) - prototypes).square().sum(-1).mul(-scale_));
    }
    throw std::logic_error("no such similarity");
  }

 private:
  SimilarityKind kind_;
  double scale_;
  std::shared_ptr<Normalise> normalise_;
};

class Prototype : public Model {
 public:
  Prototype(const ModelRecipe& recipe, std::int64_t features, std::int64_t classes,
            std::uint64_t seed) {
    at::Generator generator = MakeGenerator(seed);
    if (recipe.input_norm != InputNorm::kNone) {
      input_norm_ = register_module("input_norm", std::make_shared<Standardise>(recipe.input_norm));
    }
    layers_ = register_module("layers", std::make_shared<Layers>(recipe, features, generator));
    embed_ = register_module("embed", WithoutBias(recipe.layers == 0 ? features : recipe.width,
                                                  recipe.width, generator));
    prototypes_ = register_module(
        "prototypes", std::make_shared<Embedding>(classes, recipe.width, 1.0, generator));
    similarity_ = register_module("similarity", std::make_shared<Similarity>(recipe));
    loss_ = register_module("loss", std::make_shared<WeightedCrossEntropy>(recipe.loss));
  }

  at::Tensor Loss(const Batch& batch) override {
    const at::Tensor x = input_norm_ ? input_norm_->Forward(batch.inputs) : batch.inputs;
    const at::Tensor embedding = embed_->Forward(layers_->Forward(x));
    return loss_->Forward(similarity_->Forward(embedding, prototypes_->weight()), batch.targets,
                          batch.weights);
  }

 private:
  std::shared_ptr<Standardise> input_norm_;  // null: inputs are taken as they are
  std::shared_ptr<Layers> layers_;
  std::shared_ptr<Linear> embed_;
  std::shared_ptr<Embedding> prototypes_;
  std::shared_ptr<Similarity> similarity_;
  std::shared_ptr<WeightedCrossEntropy> loss_;
};

std::shared_ptr<Model> FromRecipe(const TrainingRecipe& recipe, const Dataset&,
                                  std::uint64_t seed) {
  return MakePrototype(recipe.model, recipe.data.features, recipe.data.classes, seed);
}

REGISTER_MODEL(.name = "prototype", .takes_tokens = false, .make = FromRecipe);

}  // namespace

std::shared_ptr<Model> MakePrototype(const ModelRecipe& recipe, std::int64_t features,
                                     std::int64_t classes, std::uint64_t seed) {
  return std::make_shared<Prototype>(recipe, features, classes, seed);
}

}  // namespace trainwreck
