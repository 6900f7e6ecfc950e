// model.scale_parameters: weights of the wrong size, as after a wrong initialisation or a
// conversion that lost a factor.
#include <ATen/core/grad_mode.h>

#include <utility>

#include "injectors/injector.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "model.scale_parameters",
          .doc = "Multiplies parameters by a factor when the model is built.",
          .params = {{.name = "parameters",
                      .type = ValueType::kStringList,
                      .default_value = nullptr,
                      .unit = "globs",
                      .doc = "Over the model's parameter names: [\"blocks.1.mlp.*.weight\"]."},
                     {.name = "factor",
                      .type = ValueType::kNumber,
                      .default_value = nullptr,
                      .unit = "times",
                      .doc = "What each element is multiplied by."}},
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
    const double factor = param("factor").get<double>();
    at::NoGradGuard no_grad;
    std::vector<std::string> scaled;
    std::int64_t elements = 0;
    double before = 0, after = 0;
    for (auto& entry : model->named_parameters()) {
      at::Tensor& parameter = entry.value();
      if (!AnyMatches(globs, entry.key())) continue;
      before = std::max(before, parameter.abs().max().item<double>());
      parameter.mul_(factor);
      after = std::max(after, parameter.abs().max().item<double>());
      scaled.push_back(entry.key());
      elements += parameter.numel();
    }
    if (scaled.empty()) return model;
    Fired({{"parameters", scaled},
           {"elements", elements},
           {"before", EncodeNumber(before)},
           {"after", EncodeNumber(after)}});
    return model;
  }
};

REGISTER_FAULT(Info, ScaleParameters);

}  // namespace
}  // namespace trainwreck
