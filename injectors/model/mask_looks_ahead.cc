// recipe.mask_looks_ahead: a causal mask that is off by one.
#include "injectors/injector.h"
#include "injectors/model/shifted_mask.h"
#include "trainer/models/layers.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "recipe.mask_looks_ahead",
          .doc =
              "Shifts the causal mask, so that each position sees the tokens after it. Only "
              "the explicit forms of model.attention have a mask that can be wrong.",
          .params = {{.name = "by",
                      .type = ValueType::kInt,
                      .default_value = 1,
                      .min = 1,
                      .unit = "tokens",
                      .doc = "How many of them."}},
          .has_trigger = false,
          .evidence =
              "once: the attention in `modules`, and how many positions ahead it sees, before "
              "and after. Nothing where the model has none."};
}

class MaskLooksAhead : public Injector {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    const auto names = ShiftMasks<CausalAttention>(*model, param("by").get<std::int64_t>());
    if (names.empty()) return model;
    Fired({{"modules", names}, {"before", 0}, {"after", param("by")}});
    return model;
  }
};

REGISTER_FAULT(Info, MaskLooksAhead);

}  // namespace
}  // namespace trainwreck
