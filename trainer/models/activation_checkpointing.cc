#include "trainer/models/activation_checkpointing.h"

#include <ATen/core/grad_mode.h>
#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <memory>
#include <type_traits>
#include <utility>

#include "trainer/models/precision.h"

namespace trainwreck {
namespace {

using torch::autograd::variable_list;

class RecomputeNode : public torch::autograd::Node {
 public:
  RecomputeNode(Forward forward, const at::Tensor& input, std::vector<at::Tensor> parameters)
      : forward_(std::move(forward)),
        input_(input, /*is_output=*/false),
        parameters_(std::move(parameters)),
        autocast_(Autocast::Current(input.device().type())) {}

  variable_list apply(variable_list&& gradients) override {
    at::AutoGradMode with_graph(true);
    AutocastGuard autocast(autocast_);
    const at::Tensor saved = input_.unpack();
    const at::Tensor input = saved.detach().set_requires_grad(saved.requires_grad());
    const at::Tensor output = forward_(input);

    variable_list sources;
    for (const at::Tensor& tensor : AllSources(input)) {
      if (tensor.requires_grad()) sources.push_back(tensor);
    }
    const variable_list found =
        torch::autograd::grad({output}, sources, {gradients.at(0)},
                              /*retain_graph=*/std::nullopt,
                              /*create_graph=*/false, /*allow_unused=*/true);
    variable_list result;
    auto next = found.begin();
    for (const at::Tensor& tensor : AllSources(input)) {
      result.push_back(tensor.requires_grad() ? *next++ : at::Tensor());
    }
    return result;
  }

  void release_variables() override { input_.reset_data(); }
  std::string name() const override { return "RecomputeBackward"; }

 private:
  variable_list AllSources(const at::Tensor& input) const {
    variable_list sources = {input};
    sources.insert(sources.end(), parameters_.begin(), parameters_.end());
    return sources;
  }

  Forward forward_;
  torch::autograd::SavedVariable input_;
  std::vector<at::Tensor> parameters_;
  Autocast autocast_;
};

// LibTorch 2.11 holds the nodes of its graph by std::shared_ptr, 2.15 by c10::intrusive_ptr.
template <typename Node, typename... Arguments>
auto MakeNode(const Arguments&... arguments) {
  using Held = decltype(torch::autograd::Edge::function);
  if constexpr (std::is_same_v<Held, std::shared_ptr<torch::autograd::Node>>) {
    return std::make_shared<Node>(arguments...);
  } else {
    return c10::make_intrusive<Node>(arguments...);
  }
}

}  // namespace

at::Tensor RecomputeInBackward(const Forward& forward, const at::Tensor& input,
                               const std::vector<at::Tensor>& parameters) {
  if (!torch::autograd::compute_requires_grad(input, at::TensorList(parameters))) {
    return forward(input);
  }
  at::Tensor output;
  {
    at::NoGradGuard without_graph;
    output = forward(input);
  }
  auto node = MakeNode<RecomputeNode>(forward, input, parameters);
  node->set_next_edges(torch::autograd::collect_next_edges(input, at::TensorList(parameters)));
  torch::autograd::set_history(output, node);
  return output;
}

}  // namespace trainwreck
