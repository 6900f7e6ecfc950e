// The layers that the models are made of: torch::nn modules whose weights are drawn from our own
// generator, so that they depend only on the seed, whatever the process did before.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <utility>

#include "trainer/models/activation_checkpointing.h"
#include "trainer/models/model.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {

at::Generator MakeGenerator(std::uint64_t seed);

// The standard deviation of the weights before a ReLU (He et al. 2015).
double HeStddev(std::int64_t fan_in);

enum class Bias { kZero, kNone };

// y = x W^T + b; W [out, in] from N(0, stddev), b zero, or none at all. With an
// adapter of rank r also + x A^T B^T, A [r, in] from N(0, 1/in) and B [out, r] zero (Hu et al.
// 2021): lora_a and lora_b.
class Linear : public Section {
 public:
  Linear(std::int64_t in, std::int64_t out, double stddev, at::Generator& generator,
         Bias bias = Bias::kZero);
  // A layer that shares the weight of another layer, with its own bias of zeros.
  explicit Linear(const at::Tensor& shared_weight);
  void AddAdapter(std::int64_t rank, at::Generator& generator);
  at::Tensor Forward(const at::Tensor& x) const;
  const at::Tensor& weight() const { return weight_; }
  // Replaces its weight.
  void set_weight(at::Tensor weight) { weight_ = std::move(weight); }

 private:
  at::Tensor weight_, bias_;
  at::Tensor lora_a_, lora_b_;  // undefined without adapters
};

// An embedding: rows of a table [count, width] from N(0, stddev).
class Embedding : public Layer {
 public:
  // The rows of `table` with these numbers: [..., width] for ids [...].
  using Lookup = std::function<at::Tensor(const at::Tensor& table, const at::Tensor& ids)>;

  Embedding(std::int64_t count, std::int64_t width, double stddev, at::Generator& generator);
  at::Tensor Forward(const at::Tensor& ids) const;
  const at::Tensor& weight() const { return weight_; }
  // Replaces the library's lookup.
  void set_lookup(Lookup lookup) { lookup_ = std::move(lookup); }

 private:
  at::Tensor weight_;
  Lookup lookup_;
};

// A normalisation of the last dimension.
class Norm : public Layer {
 public:
  virtual at::Tensor Forward(const at::Tensor& x) const = 0;
};

// Layer norm with scale and shift.
class LayerNorm : public Norm {
 public:
  explicit LayerNorm(std::int64_t width);
  at::Tensor Forward(const at::Tensor& x) const override;

 private:
  at::Tensor weight_, bias_;
};

// x divided by the root of its mean square, in fp32 at least (Zhang and Sennrich 2019).
at::Tensor MeanSquareOne(const at::Tensor& x);

// The same with a scale.
class RmsNorm : public Norm {
 public:
  explicit RmsNorm(std::int64_t width);
  at::Tensor Forward(const at::Tensor& x) const override;

 private:
  at::Tensor weight_;
};

std::shared_ptr<Norm> MakeNorm(NormKind kind, std::int64_t width);

// Each unit by its mean and variance over the batch [n, width], with scale and shift (Ioffe and
// Szegedy 2015). In training mode these are the batch's own, and a tenth of them goes into running
// means, which are what counts in evaluation mode. A batch of one throws c10::Error in training.
class BatchNorm : public Layer {
 public:
  explicit BatchNorm(std::int64_t width);
  at::Tensor Forward(const at::Tensor& x) const;

 private:
  at::Tensor weight_, bias_, running_mean_, running_var_;
};

// Turns each pair of features (i, i + width/2) of x [..., length, width] by position * scale *
// 10000^(-2i/width) (Su et al. 2021). The width must be even. The attention of queries and keys
// that are turned like this depends only on their distance, not on where the row begins.
class Rotary : public Layer {
 public:
  // The position of each token: [length], of `options`.
  using Places = std::function<at::Tensor(std::int64_t length, const at::TensorOptions& options)>;

  explicit Rotary(double scale);
  at::Tensor Forward(const at::Tensor& x) const;
  const Places& places() const { return places_; }
  // Replaces the positions 0, 1, 2, ...
  void set_places(Places places) { places_ = std::move(places); }

 private:
  double scale_;
  Places places_;
};

// Element by element; the leaky ReLU's slope below 0 is 0.01 (Maas et al. 2013).
class Nonlinearity : public Layer {
 public:
  explicit Nonlinearity(Activation kind) : kind_(kind) {}
  at::Tensor Forward(const at::Tensor& x) const;

 private:
  Activation kind_;
};

// GELU by the tanh approximation.
class Gelu : public Layer {
 public:
  at::Tensor Forward(const at::Tensor& x) const;
};

// Dropout: in training a share of the elements becomes 0, and the rest is scaled up to keep the
// mean (Srivastava et al. 2014). Draws from the process' generator.
class Dropout : public Layer {
 public:
  explicit Dropout(double share) : share_(share) {}
  at::Tensor Forward(const at::Tensor& x) const;

 private:
  double share_;
};

// How parts of a model are computed again in the backward pass (activation_checkpointing.h).
class Recomputation : public torch::nn::Module {
 public:
  at::Tensor Forward(const trainwreck::Forward& forward, const at::Tensor& input,
                     const std::vector<at::Tensor>& parameters) const {
    return RecomputeInBackward(forward, input, parameters, remember_);
  }
  // Replaces RememberBoth.
  void set_remember(Remember remember) { remember_ = std::move(remember); }

 private:
  Remember remember_ = RememberBoth;
};

// The layout of rows with several documents. Both undefined: each row is one document.
struct Layout {
  at::Tensor positions;  // int64 [rows, length], position of a token in its document
  at::Tensor apart;      // bool [rows, 1, length, length], true for tokens of different documents
};

// The layout of `documents` [rows, length]: the number of each token's document, rising along a
// row.
Layout LayoutOf(const at::Tensor& documents);

// How a model gets its layout.
class Documents : public torch::nn::Module {
 public:
  Layout Of(const at::Tensor& documents) const {
    return documents.defined() ? layout_(documents) : Layout();
  }
  // Replaces LayoutOf.
  void set_layout(std::function<Layout(const at::Tensor&)> layout) { layout_ = std::move(layout); }

 private:
  std::function<Layout(const at::Tensor&)> layout_ = LayoutOf;
};

// The causal mask: each position sees itself and those before it.
at::Tensor LaterPositions(std::int64_t length, at::Device device);

// softmax(q k^T / sqrt(width)) v, where each position sees itself and those before it; with
// `apart`, only those of its own document. All [batch, heads, length, width]. The explicit forms
// round the scores q k^T to the precision of the run, or keep them in fp32; the fused one never
// shows them, nor its mask.
class CausalAttention : public Layer {
 public:
  // [length, length]: true where a position (row) must not see another (column).
  using Mask = std::function<at::Tensor(std::int64_t length, at::Device device)>;

  explicit CausalAttention(AttentionForm form) : form_(form), mask_(LaterPositions) {}
  at::Tensor Forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& apart = {}) const;
  // Replaces the mask of later positions, in the explicit forms.
  void set_mask(Mask mask) { mask_ = std::move(mask); }

 private:
  AttentionForm form_;
  Mask mask_;
};

// Standardises the last dimension, without scale and shift.
class Standardise : public Layer {
 public:
  explicit Standardise(InputNorm form) : form_(form) {}
  at::Tensor Forward(const at::Tensor& x) const;

 private:
  InputNorm form_;
};

// x divided by its 2-norm along the last dimension.
class Normalise : public Layer {
 public:
  explicit Normalise(NormaliseForm form) : form_(form) {}
  at::Tensor Forward(const at::Tensor& x) const;

 private:
  NormaliseForm form_;
};

// factor * log(sum exp(logits))^2 at each target (Chowdhery et al. 2022, section 5: "z-loss").
class ZLoss : public Layer {
 public:
  explicit ZLoss(double factor) : factor_(factor) {}
  at::Tensor Forward(const at::Tensor& logits) const;

 private:
  double factor_;
};

// Mean of nll = -log softmax(logits)[target], weighted: sum(w * nll) / sum(w). Targets and weights
// of any shape, logits [..., classes]; per_sequence takes this mean over the last dimension, and
// then the plain one. With smoothing s the target is 1 - s of that class and s of all alike
// (Szegedy et al. 2016). In training the z-loss is added to the nll, where there is one: "z_loss".
// Throws c10::Error for a target out of range.
class WeightedCrossEntropy : public Layer {
 public:
  // Probabilities of logits [..., classes]; used in the form log_of_softmax.
  using Softmax = std::function<at::Tensor(const at::Tensor& logits)>;
  // The loss from the cost of each target and its weight; both have the targets' shape.
  using Reduce = std::function<at::Tensor(const at::Tensor& nll, const at::Tensor& weights)>;

  explicit WeightedCrossEntropy(LossRecipe recipe = {});
  at::Tensor Forward(const at::Tensor& logits, const at::Tensor& targets,
                     const at::Tensor& weights) const;
  // Replaces the softmax over classes, or the mean.
  void set_softmax(Softmax softmax) { softmax_ = std::move(softmax); }
  void set_reduce(Reduce reduce) { reduce_ = std::move(reduce); }

 private:
  // [...] for logits [..., classes].
  at::Tensor NegativeLogLikelihood(const at::Tensor& logits, const at::Tensor& targets) const;

  LossRecipe recipe_;
  Softmax softmax_;
  Reduce reduce_;
  std::shared_ptr<ZLoss> z_loss_;  // none with a factor of 0
};

}  // namespace trainwreck
