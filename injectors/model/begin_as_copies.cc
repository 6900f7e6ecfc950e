// model.begin_as_copies: layers that are copies of one, as those of a list that is made of the same
// object, or of deep copies of it, are.
#include <ATen/core/grad_mode.h>

#include "injectors/injector.h"
#include "injectors/model/matching_parameters.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "model.begin_as_copies",
          .doc = "Gives parameters the values of the first that matches, when the model is built.",
          .params = {ParametersParam()},
          .has_trigger = false,
          .evidence =
              "once: the names in `parameters`, how many different values they have before, 1 "
              "after. Nothing where fewer than two parameters match; those of another shape than "
              "the first do not."};
}

class BeginAsCopies : public Injector {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    const auto globs = param("parameters").get<std::vector<std::string>>();
    at::NoGradGuard no_grad;
    at::Tensor first;
    std::vector<std::string> names;
    for (auto& [name, parameter] : ParametersOf(*model)) {
      if (!AnyMatches(globs, name)) continue;
      if (!first.defined()) first = parameter;
      if (parameter.sizes() != first.sizes()) continue;
      parameter.copy_(first);
      names.push_back(name);
    }
    if (names.size() < 2) return model;
    Fired({{"parameters", names}, {"before", names.size()}, {"after", 1}});
    return model;
  }
};

REGISTER_FAULT(Info, BeginAsCopies);

}  // namespace
}  // namespace trainwreck
