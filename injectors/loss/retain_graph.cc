// loss.retain_graph: losses that are kept as they are, to be summed up or plotted later, and a
// backward pass with retain_graph=true, as it stands in code that once got "backward through the
// graph a second time". Each kept loss holds the graph of its step, and the graph every activation
// that the backward pass needed.
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>
#include <vector>

#include "injectors/injector.h"
#include "injectors/loss/scaler_around.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {
      .name = "loss.retain_graph",
      .doc = "Keeps the loss of each micro-batch with its graph.",
      .params = {{.name = "retain",
                  .type = ValueType::kBool,
                  .default_value = true,
                  .doc = "Whether the backward pass leaves in the graph what it needed. Else it "
                         "frees that, and a kept loss holds the nodes alone."}},
      .evidence = "at each micro-batch: how many losses are kept, before and after"};
}

// No variable to autograd, which so draws no edge to it.
struct Hidden {
  at::Tensor loss;
};

// A scalar with the loss's value, whose backward pass is the loss's own and keeps the graph.
class BackwardThatRetains : public torch::autograd::Function<BackwardThatRetains> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& /*root*/,
                            const Hidden& hidden) {
    context->saved_data["loss"] = hidden.loss;
    return hidden.loss.detach().clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    torch::autograd::backward({context->saved_data["loss"].toTensor()}, {gradients[0]},
                              /*retain_graph=*/true);
    return {at::Tensor(), at::Tensor()};
  }
};

class RetainGraph : public Injector {
 public:
  using Injector::Injector;

  std::unique_ptr<LossScaler> Wrap(std::unique_ptr<LossScaler> scaler) override;

  at::Tensor Keep(const at::Tensor& loss) {
    if (!Acts() || !loss.requires_grad()) return loss;
    kept_.push_back(loss);
    Fired({{"before", kept_.size() - 1}, {"after", kept_.size()}});
    if (!param("retain").get<bool>()) return loss;
    const at::Tensor root = at::zeros({}, loss.options()).set_requires_grad(true);
    return BackwardThatRetains::apply(root, Hidden{loss});
  }

 private:
  std::vector<at::Tensor> kept_;
};

class RetainingScaler : public ScalerAround {
 public:
  RetainingScaler(std::unique_ptr<LossScaler> inner, RetainGraph& injector)
      : ScalerAround(std::move(inner)), injector_(injector) {}
  at::Tensor Scale(const at::Tensor& loss, double share) const override {
    return injector_.Keep(inner().Scale(loss, share));
  }

 private:
  RetainGraph& injector_;
};

std::unique_ptr<LossScaler> RetainGraph::Wrap(std::unique_ptr<LossScaler> scaler) {
  return std::make_unique<RetainingScaler>(std::move(scaler), *this);
}

REGISTER_FAULT(Info, RetainGraph);

}  // namespace
}  // namespace trainwreck
