// model.scale_parameters: weights of the wrong size, as after a wrong initialisation or a
// conversion that lost a factor.
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "injectors/injector.h"
#include "injectors/model/matching_parameters.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "model.scale_parameters",
          .doc = "Multiplies parameters by a factor when the model is built.",
          .params = {ParametersParam(),
                     {.name = "factor",
                      .type = ValueType::kNumber,
                      .default_value = nullptr,
                      .unit = "times",
                      .doc = "What each element is multiplied by."},
                     RowsParam()},
          .has_trigger = false,
          .evidence =
              "once: the names in `parameters`, their number of elements, and their largest "
              "magnitude before and after. Nothing where no parameter matches."};
}

class ScaleParameters : public Injector {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    const auto globs = param("parameters").get<std::vector<std::string>>();
    const auto rows = param("rows").get<std::vector<std::int64_t>>();
    const double factor = param("factor").get<double>();
    const auto matches = [&](const std::string& name) { return AnyMatches(globs, name); };
    at::NoGradGuard no_grad;
    double before = 0, after = 0;
    const Matched scaled =
        ForMatchingParameters(*model, matches, rows, [&](const at::Tensor& part) {
          before = std::max(before, part.abs().max().item<double>());
          part.mul_(factor);
          after = std::max(after, part.abs().max().item<double>());
        });
    if (scaled.names.empty()) return model;
    Fired({{"parameters", scaled.names},
           {"elements", scaled.elements},
           {"before", EncodeNumber(before)},
           {"after", EncodeNumber(after)}});
    return model;
  }
};

REGISTER_FAULT(Info, ScaleParameters);

}  // namespace
}  // namespace trainwreck
