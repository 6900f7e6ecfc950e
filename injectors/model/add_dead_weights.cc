// model.add_dead_weights: parameters that are part of the model and of nothing that it computes, as
// a module that was replaced and not taken out.
#include <ATen/ops/zeros.h>

#include "injectors/injector.h"
#include "trainer/models/model.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "model.add_dead_weights",
          .doc = "Gives the model a parameter that no output depends on.",
          .params = {{.name = "elements",
                      .type = ValueType::kInt,
                      .default_value = 64,
                      .min = 1,
                      .unit = "elements",
                      .doc = "Its size."}},
          .has_trigger = false,
          .evidence = "once: the number of parameter tensors before and after"};
}

class AddDeadWeights : public Injector {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    const std::size_t before = ParametersOf(*model).size();
    model->register_parameter("dead", at::zeros({param("elements").get<std::int64_t>()}));
    Fired({{"before", before}, {"after", ParametersOf(*model).size()}});
    return model;
  }
};

REGISTER_FAULT(Info, AddDeadWeights);

}  // namespace
}  // namespace trainwreck
