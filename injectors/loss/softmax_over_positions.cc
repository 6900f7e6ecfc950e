// recipe.softmax_over_positions: a softmax over the wrong dimension, that of a sequence.
#include <ATen/ops/softmax.h>

#include "injectors/injector.h"
#include "injectors/layers_of.h"
#include "trainer/models/layers.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "recipe.softmax_over_positions",
          .doc =
              "Takes the softmax over the positions of a sequence, where it belongs over the "
              "classes. Only loss.form log_of_softmax has a softmax that can be wrong.",
          .has_trigger = false,
          .evidence =
              "once: the losses in `modules`, and what their softmax is over, classes before "
              "and positions after"};
}

at::Tensor OverPositions(const at::Tensor& logits) {
  if (logits.dim() < 3) throw RecipeError("recipe.softmax_over_positions: only of tokens");
  return at::softmax(logits, -2);
}

class SoftmaxOverPositions : public Injector {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    const auto names = ForLayers<WeightedCrossEntropy>(
        *model, [](WeightedCrossEntropy& loss) { loss.set_softmax(OverPositions); });
    if (names.empty()) return model;
    Fired({{"modules", names}, {"before", "classes"}, {"after", "positions"}});
    return model;
  }
};

REGISTER_FAULT(Info, SoftmaxOverPositions);

}  // namespace
}  // namespace trainwreck
