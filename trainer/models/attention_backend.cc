#include "trainer/models/attention_backend.h"

#include <ATen/Context.h>
#include <ATen/SDPBackend.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_sdp_choice.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <c10/util/Exception.h>

#include <optional>
#include <utility>

#include "trainer/models/precision.h"

namespace trainwreck {
namespace {

constexpr double kNoDropout = 0.0;
AttentionWatch* the_watch = nullptr;  // null: nobody asks

const char* NameOf(at::SDPBackend backend) {
  switch (backend) {
    case at::SDPBackend::math:
      return "math";
    case at::SDPBackend::flash_attention:
      return "flash";
    case at::SDPBackend::efficient_attention:
      return "efficient";
    case at::SDPBackend::cudnn_attention:
      return "cudnn";
    case at::SDPBackend::overrideable:
    case at::SDPBackend::error:
      break;
  }
  return "none";
}

std::optional<at::Tensor> Optional(const at::Tensor& mask) {
  return mask.defined() ? std::optional(mask) : std::nullopt;
}

}  // namespace

void AllowAttention(AttentionBackend backend, at::DeviceType device) {
  const auto allows = [backend](AttentionBackend one) {
    return backend == AttentionBackend::kAuto || backend == one;
  };
  const bool is_of_gpus =
      backend == AttentionBackend::kEfficient || backend == AttentionBackend::kCudnn;
  if (device == at::kCPU && is_of_gpus) {
    throw RecipeError(
        "bad recipe:\n  model.attention_backend: only of GPUs; the CPU has flash and math");
  }
  at::Context& context = at::globalContext();
  context.setSDPUseFlash(allows(AttentionBackend::kFlash));
  context.setSDPUseMemEfficient(allows(AttentionBackend::kEfficient));
  context.setSDPUseCuDNN(allows(AttentionBackend::kCudnn));
  context.setSDPUseMath(allows(AttentionBackend::kMath));
}

AttentionWatch::AttentionWatch(std::function<void(const AttentionChoice&)> taken)
    : taken_(std::move(taken)) {
  the_watch = this;
}

AttentionWatch::~AttentionWatch() { the_watch = nullptr; }

void AttentionWatch::See(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                         const at::Tensor& mask) {
  // Autocast acts on the attention, and not on the question which one it is.
  const at::ScalarType dtype = Autocast::Current(q.device().type()).dtype.value_or(q.scalar_type());
  const bool needs_gradient = at::GradMode::is_enabled() && q.requires_grad();
  if (!seen_.emplace(dtype, mask.defined(), needs_gradient).second) return;
  auto backend = at::SDPBackend::error;
  try {
    backend = static_cast<at::SDPBackend>(at::_fused_sdp_choice(
        q.to(dtype), k.to(dtype), v.to(dtype), Optional(mask), kNoDropout, !mask.defined()));
  } catch (const c10::Error&) {  // that there is none; the attention itself says so, too
  }
  taken_({.backend = NameOf(backend),
          .dtype = c10::toString(dtype),
          .has_mask = mask.defined(),
          .needs_gradient = needs_gradient});
}

at::Tensor FusedAttention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          const at::Tensor& mask) {
  if (the_watch != nullptr) the_watch->See(q, k, v, mask);
  return at::scaled_dot_product_attention(q, k, v, Optional(mask), kNoDropout,
                                          /*is_causal=*/!mask.defined());
}

}  // namespace trainwreck
