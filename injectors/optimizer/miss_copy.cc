// optimizer.miss_copy: masters that are updated and not copied into the model, as those of a group
// that was added after the list of copies was made.
#include <ATen/core/grad_mode.h>

#include <string>
#include <utility>
#include <vector>

#include "injectors/injector.h"
#include "injectors/optimizer/optimizer_around.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "optimizer.miss_copy",
          .doc = "Updates the masters of some parameters and leaves the parameters as they are.",
          .params = {{.name = "parameters",
                      .type = ValueType::kStringList,
                      .default_value = nullptr,
                      .unit = "globs",
                      .doc = "Over the model's parameter names: [\"head.*\"]."}},
          .evidence =
              "at each step: how many parameters are written, before and after. Nothing where "
              "none of them has a master."};
}

class MissCopy : public Injector {
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

class Missing : public OptimizerAround {
 public:
  Missing(std::unique_ptr<Optimizer> inner, MissCopy& owner, std::vector<at::Tensor> missed)
      : OptimizerAround(std::move(inner)), owner_(owner), missed_(std::move(missed)) {}

  void Step(double lr) override {
    if (!owner_.Acts()) return inner().Step(lr);
    at::NoGradGuard no_grad;
    std::vector<at::Tensor> before;
    for (const at::Tensor& parameter : missed_) before.push_back(parameter.clone());
    inner().Step(lr);
    for (std::size_t i = 0; i < missed_.size(); ++i) missed_[i].copy_(before[i]);
    owner_.Fired({{"before", missed_.size()}, {"after", 0}});
  }

 private:
  MissCopy& owner_;
  std::vector<at::Tensor> missed_;
};

std::unique_ptr<Optimizer> MissCopy::Wrap(std::unique_ptr<Optimizer> optimizer) {
  const auto globs = param("parameters").get<std::vector<std::string>>();
  StateDict state;
  optimizer->Save(state);
  std::vector<at::Tensor> missed;
  for (const auto& [name, parameter] : ParametersOf(*model_)) {
    if (AnyMatches(globs, name) && state.contains("optimizer.master." + name)) {
      missed.push_back(parameter);
    }
  }
  if (missed.empty()) return optimizer;
  return std::make_unique<Missing>(std::move(optimizer), *this, std::move(missed));
}

REGISTER_FAULT(Info, MissCopy);

}  // namespace
}  // namespace trainwreck
