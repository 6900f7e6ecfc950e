// recipe.mask_hides_itself: a causal mask that is off by one, the other way.
#include "injectors/injector.h"
#include "injectors/model/shifted_mask.h"
#include "trainer/models/layers.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "recipe.mask_hides_itself",
          .doc =
              "Shifts the causal mask, so that each position sees only those before its own, "
              "and the first none at all. Only the explicit forms of model.attention have a "
              "mask that can be wrong.",
          .has_trigger = false,
          .evidence =
              "once: the attention in `modules`, and how many positions ahead it sees, 0 "
              "before and -1 after. Nothing where the model has none."};
}

class MaskHidesItself : public Injector {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    const auto names = ShiftMasks<CausalAttention>(*model, /*ahead=*/-1);
    if (names.empty()) return model;
    Fired({{"modules", names}, {"before", 0}, {"after", -1}});
    return model;
  }
};

REGISTER_FAULT(Info, MaskHidesItself);

}  // namespace
}  // namespace trainwreck
