// model.shift_parameters: parameters with a wrong offset, as biases that were initialised far from
// zero or copied from another model.
#include <ATen/core/grad_mode.h>

#include "injectors/injector.h"
#include "injectors/model/matching_parameters.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "model.shift_parameters",
          .doc = "Adds a number to parameters when the model is built.",
          .params = {ParametersParam(),
                     {.name = "by",
                      .type = ValueType::kNumber,
                      .default_value = nullptr,
                      .unit = "as the parameter",
                      .doc = "What is added to each element."},
                     RowsParam()},
          .has_trigger = false,
          .evidence =
              "once: the names in `parameters`, their number of elements, and their mean "
              "before and after. Nothing where no parameter matches."};
}

class ShiftParameters : public Injector {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    const auto globs = param("parameters").get<std::vector<std::string>>();
    const auto rows = param("rows").get<std::vector<std::int64_t>>();
    const double by = param("by").get<double>();
    const auto matches = [&](const std::string& name) { return AnyMatches(globs, name); };
    at::NoGradGuard no_grad;
    double before = 0, after = 0;  // sums
    const Matched shifted =
        ForMatchingParameters(*model, matches, rows, [&](const at::Tensor& part) {
          before += part.sum().item<double>();
          part.add_(by);
          after += part.sum().item<double>();
        });
    if (shifted.elements == 0) return model;
    const auto count = static_cast<double>(shifted.elements);
    Fired({{"parameters", shifted.names},
           {"elements", shifted.elements},
           {"before", EncodeNumber(before / count)},
           {"after", EncodeNumber(after / count)}});
    return model;
  }
};

REGISTER_FAULT(Info, ShiftParameters);

}  // namespace
}  // namespace trainwreck
