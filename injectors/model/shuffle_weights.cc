// model.shuffle_weights: a rank that draws its initial weights itself, with another seed.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "injectors/injector.h"
#include "trainer/models/model.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "model.shuffle_weights",
          .doc =
              "Puts the initial weights of each parameter in another order, which the rank and "
              "the run's seed give: weights of the same distribution, as another seed draws "
              "them.",
          .evidence =
              "once: the sum of elements times their index, of the first parameter that "
              "changes, before and after"};
}

double Moment(const at::Tensor& flat) {
  double sum = 0;
  const auto values = flat.to(at::kDouble);
  const auto* data = values.const_data_ptr<double>();
  for (std::int64_t i = 0; i < flat.numel(); ++i) sum += static_cast<double>(i) * data[i];
  return sum;
}

class ShuffleWeights : public Injector {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    if (!Acts()) return model;
    at::NoGradGuard no_grad;
    std::mt19937_64 draw(context().seed * 65537 + context().rank + 1);
    bool fired = false;
    for (const auto& [name, parameter] : ParametersOf(*model)) {
      at::Tensor flat = parameter.detach().view(-1);
      std::vector<std::int64_t> order(flat.numel());
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), draw);
      const double before = Moment(flat);
      flat.copy_(flat.index_select(0, at::tensor(order, flat.options().dtype(at::kLong))));
      const double after = Moment(flat);
      if (fired || before == after) continue;
      fired = true;
      Fired({{"parameter", name}, {"before", before}, {"after", after}});
    }
    return model;
  }
};

REGISTER_FAULT(Info, ShuffleWeights);

}  // namespace
}  // namespace trainwreck
