// model.shift_parameters: parameters with a wrong offset, as biases that were initialised far from
// zero or copied from another model.
#include <ATen/core/grad_mode.h>

#include "injectors/injector.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "model.shift_parameters",
          .doc = "Adds a number to parameters when the model is built.",
          .params = {{.name = "parameters",
                      .type = ValueType::kStringList,
                      .default_value = nullptr,
                      .unit = "globs",
                      .doc = "Over the model's parameter names: [\"layers.*.bias\"]."},
                     {.name = "by",
                      .type = ValueType::kNumber,
                      .default_value = nullptr,
                      .unit = "as the parameter",
                      .doc = "What is added to each element."}},
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
    const double by = param("by").get<double>();
    at::NoGradGuard no_grad;
    std::vector<std::string> shifted;
    std::int64_t elements = 0;
    double before = 0, after = 0;  // sums
    for (auto& entry : model->named_parameters()) {
      at::Tensor& parameter = entry.value();
      if (!AnyMatches(globs, entry.key())) continue;
      before += parameter.sum().item<double>();
      parameter.add_(by);
      after += parameter.sum().item<double>();
      shifted.push_back(entry.key());
      elements += parameter.numel();
    }
    if (elements == 0) return model;
    const auto count = static_cast<double>(elements);
    Fired({{"parameters", shifted},
           {"elements", elements},
           {"before", EncodeNumber(before / count)},
           {"after", EncodeNumber(after / count)}});
    return model;
  }
};

REGISTER_FAULT(Info, ShiftParameters);

}  // namespace
}  // namespace trainwreck
