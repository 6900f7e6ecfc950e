// optimizer.miss_hook: parameters that the hooks of the backward pass were not told of, as those
// that were unfrozen after the hooks had been set.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "injectors/injector.h"
#include "trainer/optimizers/in_backward.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "optimizer.miss_hook",
          .doc =
              "Frees the gradients of some parameters in the backward pass and does not update "
              "them, where parameters are updated in it.",
          .params = {{.name = "parameters",
                      .type = ValueType::kStringList,
                      .default_value = nullptr,
                      .unit = "globs",
                      .doc = "Over the model's parameter names: [\"head.*\"], [\"*.lora_*\"]."}},
          .has_trigger = false,
          .evidence =
              "once: the names in `parameters`, and how many have a hook that updates them, "
              "before and after. Nothing where no parameter has one."};
}

class MissHook : public Injector {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    model_ = model;
    return model;
  }
  std::unique_ptr<LoopHook> MakeHook() override { return std::make_unique<Hook>(*this); }

 private:
  class Hook : public LoopHook {
   public:
    explicit Hook(MissHook& injector) : injector_(injector) {}
    void OnStart() override { injector_.TakeHooks(); }

   private:
    MissHook& injector_;
  };

  void TakeHooks() {
    const auto globs = param("parameters").get<std::vector<std::string>>();
    NamedTensors missed;
    std::vector<std::string> names;
    for (const auto& [name, parameter] : ParametersOf(*model_)) {
      if (!AnyMatches(globs, name) || !GradientHooks::IsOn(parameter)) continue;
      missed.emplace_back(name, parameter);
      names.push_back(name);
    }
    if (missed.empty()) return;
    instead_.emplace(missed, [missed](std::size_t i) {
      at::Tensor parameter = missed[i].second;
      parameter.mutable_grad().reset();
    });
    Fired({{"parameters", names}, {"before", names.size()}, {"after", 0}});
  }

  std::shared_ptr<Model> model_;
  std::optional<GradientHooks> instead_;
};

REGISTER_FAULT(Info, MissHook);

}  // namespace
}  // namespace trainwreck
