// model.freeze_parameters: requires_grad=false is left on parameters that should train, as after a
// partial fine-tuning or a wrong name filter.
#include <stdexcept>
#include <utility>

#include "injectors/injector.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {
      .name = "model.freeze_parameters",
      .doc =
          "Takes parameters out of training (requires_grad=false): when the model is built, or, "
          "where the trigger excludes step 0, at the start of the first step it allows. They stay "
          "frozen until something unfreezes them.",
      .params = {{.name = "parameters",
                  .type = ValueType::kStringList,
                  .default_value = nullptr,
                  .unit = "globs",
                  .doc = "Over the model's parameter names: [\"head.*\"], [\"blocks.0.*\"]."}},
      .evidence =
          "once: the names in `parameters`, their number of elements, before and after. "
          "Nothing where no trainable parameter matches."};
}

class FreezeParameters : public Injector {
 public:
  FreezeParameters(PlannedFault fault, InjectorContext context)
      : Injector(std::move(fault), context),
        globs_(param("parameters").get<std::vector<std::string>>()) {}

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    model_ = model;
    FreezeOnce();
    return model;
  }
  std::unique_ptr<LoopHook> MakeHook() override;

  void FreezeOnce() {
    if (done_ || !Acts()) return;
    done_ = true;  // an audit may unfreeze them again, and then they train
    std::vector<std::string> frozen;
    std::int64_t elements = 0;
    for (const auto& [name, parameter] : ParametersOf(*model_)) {
      if (!parameter.requires_grad() || !AnyMatches(globs_, name)) continue;
      parameter.set_requires_grad(false);
      parameter.mutable_grad().reset();  // what is left of the last step must not move it
      frozen.push_back(name);
      elements += parameter.numel();
    }
    if (frozen.empty()) return;
    Fired({{"parameters", frozen},
           {"elements", elements},
           {"before", "trainable"},
           {"after", "frozen"}});
  }

 private:
  std::vector<std::string> globs_;
  std::shared_ptr<Model> model_;
  bool done_ = false;
};

class FreezeHook : public LoopHook {
 public:
  explicit FreezeHook(FreezeParameters& injector) : injector_(injector) {}
  void OnStepBegin(int /*step*/) override { injector_.FreezeOnce(); }

 private:
  FreezeParameters& injector_;
};

std::unique_ptr<LoopHook> FreezeParameters::MakeHook() {
  return std::make_unique<FreezeHook>(*this);
}

REGISTER_FAULT(Info, FreezeParameters);

}  // namespace
}  // namespace trainwreck
