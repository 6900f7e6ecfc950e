// optimizer.miss_parameters: parameters that the optimizer was never told of, as a head that was
// replaced or adapters that were added after it was made.
#include <utility>

#include "injectors/injector.h"
#include "injectors/optimizer/optimizer_around.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "optimizer.miss_parameters",
          .doc =
              "The optimizer neither updates nor clears the gradients of some parameters, until "
              "a new one takes its place.",
          .params = {{.name = "parameters",
                      .type = ValueType::kStringList,
                      .default_value = nullptr,
                      .unit = "globs",
                      .doc = "Over the model's parameter names: [\"head.*\"], [\"*.lora_*\"]."}},
          .has_trigger = false,
          .evidence =
              "once: the names in `parameters`, their number of elements, known before and "
              "unknown after. Nothing where no parameter matches."};
}

using NamedTensor = std::pair<std::string, at::Tensor>;

class MissParameters : public Injector {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    model_ = model;
    return model;
  }
  std::unique_ptr<Optimizer> Wrap(std::unique_ptr<Optimizer> optimizer) override;

 private:
  std::shared_ptr<Model> model_;
};

class MissingOptimizer : public OptimizerAround {
 public:
  MissingOptimizer(std::unique_ptr<Optimizer> inner, std::vector<at::Tensor> missed)
      : OptimizerAround(std::move(inner)), missed_(std::move(missed)) {}

  void ZeroGrad() override {
    WithoutMissed([this] { inner().ZeroGrad(); });
  }
  void Step(double lr) override {
    WithoutMissed([this, lr] { inner().Step(lr); });
  }

 private:
  // To an optimizer, a parameter without a gradient is one that it does not have.
  template <typename Call>
  void WithoutMissed(const Call& call) {
    std::vector<at::Tensor> gradients;
    for (at::Tensor& parameter : missed_) {
      gradients.push_back(std::exchange(parameter.mutable_grad(), at::Tensor()));
    }
    call();
    for (std::size_t i = 0; i < missed_.size(); ++i) missed_[i].mutable_grad() = gradients[i];
  }

  std::vector<at::Tensor> missed_;
};

std::unique_ptr<Optimizer> MissParameters::Wrap(std::unique_ptr<Optimizer> optimizer) {
  const auto globs = param("parameters").get<std::vector<std::string>>();
  std::vector<at::Tensor> missed;
  std::vector<std::string> names;
  std::int64_t elements = 0;
  for (const auto& [name, parameter] : ParametersOf(*model_)) {
    if (!AnyMatches(globs, name)) continue;
    missed.push_back(parameter);
    names.push_back(name);
    elements += parameter.numel();
  }
  if (missed.empty()) return optimizer;
  Fired({{"parameters", names}, {"elements", elements}, {"before", "known"}, {"after", "unknown"}});
  return std::make_unique<MissingOptimizer>(std::move(optimizer), std::move(missed));
}

REGISTER_FAULT(Info, MissParameters);

}  // namespace
}  // namespace trainwreck
