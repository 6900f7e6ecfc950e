// model.move_positions: rotary positions that begin elsewhere. They are relative, so this changes
// nothing that attention sees: it makes the twin of a model.
#include <utility>

#include "injectors/injector.h"
#include "injectors/layers_of.h"
#include "trainer/models/layers.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "model.move_positions",
          .doc = "Counts rotary positions from another number than 0.",
          .params = {{.name = "by",
                      .type = ValueType::kInt,
                      .default_value = 1000,
                      .unit = "tokens",
                      .doc = "The position of the first token of each row."}},
          .has_trigger = false,
          .evidence =
              "once: the first position before and after. Nothing where positions are not rotary."};
}

class MovePositions : public Injector {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    const auto by = param("by").get<std::int64_t>();
    const auto moved = ForLayers<Rotary>(*model, [by](Rotary& rotary) {
      rotary.set_places([places = rotary.places(), by](auto length, const auto& options) {
        return places(length, options) + by;
      });
    });
    if (!moved.empty() && by != 0) Fired({{"before", 0}, {"after", by}});
    return model;
  }
};

REGISTER_FAULT(Info, MovePositions);

}  // namespace
}  // namespace trainwreck
