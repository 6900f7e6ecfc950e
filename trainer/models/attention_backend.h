// Which of LibTorch's fused attentions a run may take, and which it takes: at CUDA it chooses among
// four by the GPU, the shapes and the types, and says so nowhere. Not run on a GPU yet.
//
//   AllowAttention(recipe.model.attention_backend, at::kCUDA);
//   AttentionWatch watch([&](const AttentionChoice& choice) { ... });
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <set>
#include <string>
#include <tuple>

#include "trainer/recipe/recipe.h"

namespace trainwreck {

// Settings of LibTorch for the whole process, from here on. A backend that is named is the only one
// allowed; an attention that it cannot compute then throws. Throws RecipeError for one that this
// kind of device does not have. kAuto: LibTorch chooses.
void AllowAttention(AttentionBackend backend, at::DeviceType device);

// What LibTorch takes for one kind of attention of a model.
struct AttentionChoice {
  std::string backend;          // "math", "flash", "efficient", "cudnn"; "none": it will throw
  std::string dtype;            // of queries, keys and values there: "Float", "BFloat16"
  bool has_mask = false;        // besides the causal one: that of documents
  bool needs_gradient = false;  // in evaluations: no
};

// While it lives, calls `taken` from within the first attention of each kind (by type, mask and
// gradient), before it is computed. One watch at a time, and no two attentions at once.
class AttentionWatch {
 public:
  explicit AttentionWatch(std::function<void(const AttentionChoice&)> taken);
  ~AttentionWatch();
  AttentionWatch(const AttentionWatch&) = delete;
  AttentionWatch& operator=(const AttentionWatch&) = delete;

  void See(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& mask);

 private:
  std::function<void(const AttentionChoice&)> taken_;
  std::set<std::tuple<at::ScalarType, bool, bool>> seen_;
};

// at::scaled_dot_product_attention, seen by the watch. `mask`: true where a position sees another;
// undefined: the causal one.
at::Tensor FusedAttention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          const at::Tensor& mask = {});

}  // namespace trainwreck
