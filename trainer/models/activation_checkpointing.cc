#include "trainer/models/activation_checkpointing.h"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

#include "trainer/memory_owner.h"
#include "trainer/models/precision.h"

namespace trainwreck {
namespace {

using torch::autograd::variable_list;

// Puts a generator into an earlier state, and at its end back to where it was.
class GeneratorGuard {
 public:
  GeneratorGuard(at::Generator generator, const at::Tensor& state)
      : generator_(std::move(generator)), before_(StateOf(generator_)) {
    Set(state);
  }
  ~GeneratorGuard() { Set(before_); }
  GeneratorGuard(const GeneratorGuard&) = delete;
  GeneratorGuard& operator=(const GeneratorGuard&) = delete;

  static at::Tensor StateOf(at::Generator generator) {
    std::lock_guard<std::mutex> lock(generator.mutex());
    return generator.get_state();
  }

 private:
  void Set(const at::Tensor& state) {
    std::lock_guard<std::mutex> lock(generator_.mutex());
    generator_.set_state(state);
  }

  at::Generator generator_;
  at::Tensor before_;
};

class RecomputeNode : public torch::autograd::Node {
 public:
  RecomputeNode(Forward forward, const at::Tensor& input, std::vector<at::Tensor> parameters,
                Surround surround)
      : forward_(std::move(forward)),
        input_(input, /*is_output=*/false),
        parameters_(std::move(parameters)),
        surround_(std::move(surround)) {}

  variable_list apply(variable_list&& gradients) override {
    at::AutoGradMode with_graph(true);
    std::shared_ptr<void> surroundings = surround_();
    const at::Tensor saved = input_.unpack();
    const at::Tensor input = saved.detach().set_requires_grad(saved.requires_grad());
    const at::Tensor output = Recompute(input);
    surroundings.reset();

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
  at::Tensor Recompute(const at::Tensor& input) const {
    MemoryScope memory(MemoryOwner::kActivations);
    return forward_(input);
  }

  variable_list AllSources(const at::Tensor& input) const {
    variable_list sources = {input};
    sources.insert(sources.end(), parameters_.begin(), parameters_.end());
    return sources;
  }

  Forward forward_;
  torch::autograd::SavedVariable input_;
  std::vector<at::Tensor> parameters_;
  Surround surround_;
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

Surround RememberAutocast(c10::Device device) {
  return [autocast = Autocast::Current(device.type())] {
    return std::make_shared<AutocastGuard>(autocast);
  };
}

Surround RememberGenerator(c10::Device device) {
  const at::Generator generator = at::globalContext().defaultGenerator(device);
  return [generator, state = GeneratorGuard::StateOf(generator)] {
    return std::make_shared<GeneratorGuard>(generator, state);
  };
}

Surround RememberBoth(c10::Device device) {
  return [autocast = RememberAutocast(device), generator = RememberGenerator(device)] {
    return std::make_shared<std::pair<std::shared_ptr<void>, std::shared_ptr<void>>>(autocast(),
                                                                                     generator());
  };
}

at::Tensor RecomputeInBackward(const Forward& forward, const at::Tensor& input,
                               const std::vector<at::Tensor>& parameters,
                               const Remember& remember) {
  if (!torch::autograd::compute_requires_grad(input, at::TensorList(parameters))) {
    return forward(input);
  }
  Surround surround = remember(input.device());
  at::Tensor output;
  {
    at::NoGradGuard without_graph;
    output = forward(input);
  }
  auto node = MakeNode<RecomputeNode>(forward, input, parameters, surround);
  node->set_next_edges(torch::autograd::collect_next_edges(input, at::TensorList(parameters)));
  torch::autograd::set_history(output, node);
  return output;
}

}  // namespace trainwreck
