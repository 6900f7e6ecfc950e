#include "trainer/models/layers.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "trainer/models/attention_backend.h"
#include "trainer/models/precision.h"

namespace trainwreck {
namespace {

constexpr double kLeakySlope = 0.01;
constexpr double kRotaryBase = 10000;
constexpr double kVarianceEps = 1e-5;
constexpr double kMeanSquareEps = 1e-6;
constexpr double kNormEps = 1e-8;
// Never a target: LibTorch's own -100 would leave one out of the sum and not out of the count.
constexpr std::int64_t kNoIgnoredTarget = std::numeric_limits<std::int64_t>::min();
constexpr double kNewStatistics = 0.1;  // share of a batch in batch norm's running means

at::Tensor DrawNormal(at::IntArrayRef shape, double stddev, at::Generator& generator) {
  at::Tensor tensor = at::empty(shape);
  return tensor.normal_(0.0, stddev, generator);
}

at::Tensor MeanLoss(const at::Tensor& nll, const at::Tensor& weights, const LossRecipe& recipe) {
  const auto mean = [&recipe](const at::Tensor& sum, at::Tensor count) {
    // Weights that are all 0 leave a sum of 0: over anything.
    if (recipe.guard_denominator) count = count.masked_fill(count.eq(0), 1.0);
    return sum / count;
  };
  const at::Tensor weighted = nll * weights;
  return recipe.per_sequence ? mean(weighted.sum(-1), weights.sum(-1)).mean()
                             : mean(weighted.sum(), weights.sum());
}

}  // namespace

at::Generator MakeGenerator(std::uint64_t seed) {
  return at::make_generator<at::CPUGeneratorImpl>(seed);
}

double HeStddev(std::int64_t fan_in) { return std::sqrt(2.0 / static_cast<double>(fan_in)); }

Linear::Linear(std::int64_t in, std::int64_t out, double stddev, at::Generator& generator,
               Bias bias)
    : weight_(register_parameter("weight", DrawNormal({out, in}, stddev, generator))) {
  if (bias == Bias::kZero) bias_ = register_parameter("bias", at::zeros({out}));
}

Linear::Linear(const at::Tensor& shared_weight)
    : weight_(register_parameter("weight", shared_weight)),
      bias_(register_parameter("bias", at::zeros({shared_weight.size(0)}))) {}

void Linear::AddAdapter(std::int64_t rank, at::Generator& generator) {
  const auto in = weight_.size(1), out = weight_.size(0);
  const double stddev = 1.0 / std::sqrt(static_cast<double>(in));
  lora_a_ = register_parameter("lora_a", DrawNormal({rank, in}, stddev, generator));
  lora_b_ = register_parameter("lora_b", at::zeros({out, rank}));
}

at::Tensor Linear::Forward(const at::Tensor& x) const {
  Begin();
  at::Tensor y = at::linear(x, weight_, bias_);
  if (lora_a_.defined()) y = y + at::linear(at::linear(x, lora_a_), lora_b_);
  return Announce(y);
}

Embedding::Embedding(std::int64_t count, std::int64_t width, double stddev,
                     at::Generator& generator)
    : weight_(register_parameter("weight", DrawNormal({count, width}, stddev, generator))),
      lookup_([](const at::Tensor& table, const at::Tensor& ids) {
        return at::embedding(table, ids);
      }) {}

at::Tensor Embedding::Forward(const at::Tensor& ids) const {
  return Announce(lookup_(weight_, ids));
}

LayerNorm::LayerNorm(std::int64_t width)
    : weight_(register_parameter("weight", at::ones({width}))),
      bias_(register_parameter("bias", at::zeros({width}))) {}

at::Tensor LayerNorm::Forward(const at::Tensor& x) const {
  return Announce(at::layer_norm(x, {weight_.size(0)}, weight_, bias_));
}

at::Tensor MeanSquareOne(const at::Tensor& x) {
  const at::Tensor wide = x.to(at::promote_types(x.scalar_type(), at::kFloat));
  return (wide * (wide.square().mean(-1, /*keepdim=*/true) + kMeanSquareEps).rsqrt())
      .to(x.scalar_type());
}

RmsNorm::RmsNorm(std::int64_t width) : weight_(register_parameter("weight", at::ones({width}))) {}

at::Tensor RmsNorm::Forward(const at::Tensor& x) const {
  return Announce(MeanSquareOne(x) * weight_);
}

std::shared_ptr<Norm> MakeNorm(NormKind kind, std::int64_t width) {
  if (kind == NormKind::kRms) return std::make_shared<RmsNorm>(width);
  return std::make_shared<LayerNorm>(width);
}

BatchNorm::BatchNorm(std::int64_t width)
    : weight_(register_parameter("weight", at::ones({width}))),
      bias_(register_parameter("bias", at::zeros({width}))),
      running_mean_(register_buffer("running_mean", at::zeros({width}))),
      running_var_(register_buffer("running_var", at::ones({width}))) {}

at::Tensor BatchNorm::Forward(const at::Tensor& x) const {
  return Announce(at::batch_norm(x, weight_, bias_, running_mean_, running_var_, is_training(),
                                 kNewStatistics, kVarianceEps, /*cudnn_enabled=*/false));
}

Rotary::Rotary(double scale)
    : scale_(scale), places_([](std::int64_t length, const at::TensorOptions& options) {
        return at::arange(length, options);
      }) {}

at::Tensor Rotary::Forward(const at::Tensor& x) const {
  const std::int64_t length = x.size(-2), half = x.size(-1) / 2;
  const at::TensorOptions options = x.options().dtype(at::kFloat);
  const at::Tensor exponents = at::arange(half, options).div(static_cast<double>(half));
  const at::Tensor positions = places_(length, options).mul(scale_).unsqueeze(-1);
  const at::Tensor angles = positions * at::pow(kRotaryBase, exponents.neg());
  const at::Tensor cosines = angles.cos().to(x.scalar_type());
  const at::Tensor sines = angles.sin().to(x.scalar_type());
  const at::Tensor a = x.narrow(-1, 0, half), b = x.narrow(-1, half, half);
  return Announce(at::cat({a * cosines - b * sines, a * sines + b * cosines}, -1));
}

at::Tensor Nonlinearity::Forward(const at::Tensor& x) const {
  switch (kind_) {
    case Activation::kRelu:
      return Announce(at::relu(x));
    case Activation::kLeakyRelu:
      return Announce(at::leaky_relu(x, kLeakySlope));
    case Activation::kTanh:
      return Announce(at::tanh(x));
    case Activation::kSigmoid:
      return Announce(at::sigmoid(x));
  }
  throw std::logic_error("no such activation");
}

at::Tensor Gelu::Forward(const at::Tensor& x) const { return Announce(at::gelu(x, "tanh")); }

at::Tensor Dropout::Forward(const at::Tensor& x) const {
  return Announce(at::dropout(x, share_, is_training()));
}

at::Tensor LaterPositions(std::int64_t length, at::Device device) {
  return at::ones({length, length}, at::TensorOptions(at::kBool).device(device)).triu(1);
}

Layout LayoutOf(const at::Tensor& documents) {
  const std::int64_t length = documents.size(1);
  const at::Tensor places = at::arange(length, documents.options()).expand_as(documents);
  at::Tensor begins = places.clone();  // 0 where no document begins
  begins.narrow(1, 1, length - 1)
      .mul_(documents.narrow(1, 1, length - 1).ne(documents.narrow(1, 0, length - 1)));
  return {.positions = places - std::get<0>(begins.cummax(1)),
          .apart = documents.unsqueeze(1).ne(documents.unsqueeze(2)).unsqueeze(1)};
}

at::Tensor CausalAttention::Forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                    const at::Tensor& apart) const {
  const std::int64_t length = q.size(-2);
  if (form_ == AttentionForm::kFused && apart.defined()) {
    const at::Tensor seen = mask_(length, q.device()).logical_or(apart).logical_not();
    return Announce(FusedAttention(q, k, v, seen));
  }
  if (form_ == AttentionForm::kFused) return Announce(FusedAttention(q, k, v));
  const bool in_fp32 = form_ == AttentionForm::kExplicitFp32;
  AutocastGuard autocast(in_fp32 ? Autocast{q.device().type(), std::nullopt}
                                 : Autocast::Current(q.device().type()));
  const at::ScalarType type = in_fp32 ? at::kFloat : q.scalar_type();
  const double scale = 1.0 / std::sqrt(static_cast<double>(q.size(-1)));
  at::Tensor scores = at::matmul(q.to(type), k.to(type).transpose(-2, -1)).mul(scale);
  at::Tensor hidden = mask_(length, q.device());
  if (apart.defined()) hidden = hidden.logical_or(apart);
  scores = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
  return Announce(at::matmul(at::softmax(scores, -1), v.to(type))).to(v.scalar_type());
}

at::Tensor Standardise::Forward(const at::Tensor& x) const {
  const at::Tensor mean = x.mean(-1, /*keepdim=*/true);
  const auto mean_of_square = [](const at::Tensor& y) { return y.square().mean(-1, true); };
  switch (form_) {
    case InputNorm::kNone:
      return x;
    case InputNorm::kTwoPass:
      return Announce((x - mean) / (mean_of_square(x - mean) + kVarianceEps).sqrt());
    case InputNorm::kOnePass:
      return Announce((x - mean) / (mean_of_square(x) - mean.square()).sqrt());
    case InputNorm::kOnePassClamped:
      return Announce((x - mean) /
                      ((mean_of_square(x) - mean.square()).clamp_min(0) + kVarianceEps).sqrt());
  }
  throw std::logic_error("no such input norm");
}

at::Tensor Normalise::Forward(const at::Tensor& x) const {
  const at::Tensor sum = x.square().sum(-1, /*keepdim=*/true);
  switch (form_) {
    case NormaliseForm::kClamped:
      return Announce(x / sum.clamp_min(kNormEps * kNormEps).sqrt());
    case NormaliseForm::kEpsInside:
      return Announce(x / (sum + kNormEps).sqrt());
    case NormaliseForm::kEpsOutside:
      return Announce(x / (sum.sqrt() + kNormEps));
    case NormaliseForm::kPlain:
      return Announce(x / sum.sqrt());
  }
  throw std::logic_error("no such form");
}

at::Tensor ZLoss::Forward(const at::Tensor& logits) const {
  const at::Tensor wide = logits.to(at::promote_types(logits.scalar_type(), at::kFloat));
  return Announce(at::logsumexp(wide, -1).square().mul(factor_));
}

WeightedCrossEntropy::WeightedCrossEntropy(LossRecipe recipe)
    : recipe_(recipe),
      softmax_([](const at::Tensor& logits) { return at::softmax(logits, -1); }),
      reduce_([recipe](const at::Tensor& nll, const at::Tensor& weights) {
        return MeanLoss(nll, weights, recipe);
      }) {
  if (recipe.z_loss > 0)
    z_loss_ = register_module("z_loss", std::make_shared<ZLoss>(recipe.z_loss));
}

at::Tensor WeightedCrossEntropy::NegativeLogLikelihood(const at::Tensor& logits,
                                                       const at::Tensor& targets) const {
  if (recipe_.form == LossForm::kFused) {
    const at::Tensor wide = logits.to(at::promote_types(logits.scalar_type(), at::kFloat));
    return at::cross_entropy_loss(wide.flatten(0, -2), targets.flatten(), {}, at::Reduction::None,
                                  kNoIgnoredTarget, recipe_.label_smoothing)
        .view(targets.sizes());
  }
  const at::Tensor z = logits.to(at::kFloat);
  const auto of_target = [&](const at::Tensor& values) {
    return values.gather(-1, targets.unsqueeze(-1)).squeeze(-1);
  };
  switch (recipe_.form) {
    case LossForm::kLogOfSoftmax:
      return -(of_target(softmax_(z)) + recipe_.eps).log();
    case LossForm::kPlainSoftmax: {
      const at::Tensor exponentials = z.exp();
      return -(of_target(exponentials / exponentials.sum(-1, /*keepdim=*/true)) + recipe_.eps)
                  .log();
    }
    case LossForm::kPlainLogSumExp:
      return (z.exp().sum(-1) + recipe_.eps).log() - of_target(z);
    default:
      throw std::logic_error("no such form");
  }
}

at::Tensor WeightedCrossEntropy::Forward(const at::Tensor& logits, const at::Tensor& targets,
                                         const at::Tensor& weights) const {
  at::Tensor cost = NegativeLogLikelihood(logits, targets);
  if (z_loss_ && is_training()) cost = cost + z_loss_->Forward(logits);
  const at::Tensor loss = reduce_(cost, weights);
  return Announce(recipe_.weight == 1.0 ? loss : loss * recipe_.weight);
}

}  // namespace trainwreck
