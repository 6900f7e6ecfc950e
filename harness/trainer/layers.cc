#include "harness/trainer/layers.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>

#include <stdexcept>

namespace trainwreck {
namespace {

constexpr double kLeakySlope = 0.01;

at::Tensor DrawNormal(at::IntArrayRef shape, double stddev, at::Generator& generator) {
  at::Tensor tensor = at::empty(shape);
  return tensor.normal_(0.0, stddev, generator);
}

}  // namespace

at::Generator MakeGenerator(std::uint64_t seed) {
  return at::make_generator<at::CPUGeneratorImpl>(seed);
}

Linear::Linear(std::int64_t in, std::int64_t out, double stddev, at::Generator& generator)
    : weight_(register_parameter("weight", DrawNormal({out, in}, stddev, generator))),
      bias_(register_parameter("bias", at::zeros({out}))) {}

at::Tensor Linear::Forward(const at::Tensor& x) const {
  return Announce(at::linear(x, weight_, bias_));
}

Embedding::Embedding(std::int64_t count, std::int64_t width, double stddev,
                     at::Generator& generator)
    : weight_(register_parameter("weight", DrawNormal({count, width}, stddev, generator))) {}

at::Tensor Embedding::Forward(const at::Tensor& ids) const {
  return Announce(at::embedding(weight_, ids));
}

LayerNorm::LayerNorm(std::int64_t width)
    : weight_(register_parameter("weight", at::ones({width}))),
      bias_(register_parameter("bias", at::zeros({width}))) {}

at::Tensor LayerNorm::Forward(const at::Tensor& x) const {
  return Announce(at::layer_norm(x, {weight_.size(0)}, weight_, bias_));
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

at::Tensor CausalAttention::Forward(const at::Tensor& q, const at::Tensor& k,
                                    const at::Tensor& v) const {
  return Announce(at::scaled_dot_product_attention(q, k, v, /*attn_mask=*/{}, /*dropout_p=*/0.0,
                                                   /*is_causal=*/true));
}

at::Tensor WeightedCrossEntropy::Forward(const at::Tensor& logits, const at::Tensor& targets,
                                         const at::Tensor& weights) const {
  at::Tensor nll = at::cross_entropy_loss(logits, targets, {}, at::Reduction::None,
                                          /*ignore_index=*/-100, label_smoothing_);
  return Announce(nll.mul(weights).sum().div(weights.sum()));
}

}  // namespace trainwreck
