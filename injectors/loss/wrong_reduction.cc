// recipe.wrong_reduction: a loss that is summed over an axis that it should be averaged over.
#include "injectors/injector.h"
#include "injectors/layers_of.h"
#include "trainer/models/layers.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "recipe.wrong_reduction",
          .doc = "Sums the loss over the batch, or over the positions of each sample.",
          .params = {{.name = "kind",
                      .type = ValueType::kString,
                      .default_value = "sum",
                      .choices = {"sum", "sum_over_positions"},
                      .doc = "Over all targets; or over those of a sequence, and then the mean "
                             "over sequences."}},
          .has_trigger = false,
          .evidence =
              "once: the losses in `modules`, and how they are reduced, mean before and `kind` "
              "after"};
}

at::Tensor Sum(const at::Tensor& nll, const at::Tensor& weights) { return (nll * weights).sum(); }

at::Tensor SumOverPositions(const at::Tensor& nll, const at::Tensor& weights) {
  return Sum(nll, weights) / nll.size(0);
}

class WrongReduction : public Injector {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    const bool over_all = param("kind") == "sum";
    const auto names =
        ForLayers<WeightedCrossEntropy>(*model, [over_all](WeightedCrossEntropy& loss) {
          loss.set_reduce(over_all ? Sum : SumOverPositions);
        });
    if (names.empty()) return model;
    Fired({{"modules", names}, {"before", "mean"}, {"after", param("kind")}});
    return model;
  }
};

REGISTER_FAULT(Info, WrongReduction);

}  // namespace
}  // namespace trainwreck
