// model.untie_weights: a weight that two layers shared, and of which one has a copy from some step
// on, as after load_state_dict(assign=True) without tie_weights(). The optimizer knows the other.
#include <algorithm>
#include <utility>

#include "injectors/injector.h"
#include "trainer/models/layers.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "model.untie_weights",
          .doc =
              "Gives the head that shares its weight with the token embeddings a copy of it, "
              "which gets gradients and no update. Once in each process, at its first step that "
              "the trigger matches.",
          .evidence =
              "the head's parameter, shared before and a copy after. Nothing where no weight is "
              "shared."};
}

class UntieWeights : public Injector {
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
    explicit Hook(UntieWeights& injector) : injector_(injector) {}
    void OnStepBegin(int) override { injector_.Untie(); }

   private:
    UntieWeights& injector_;
  };

  void Untie() {
    if (done_ || !Acts()) return;
    done_ = true;
    const NamedTensors parameters = ParametersOf(*model_);
    for (const auto& item : model_->named_modules("", /*include_self=*/false)) {
      auto* layer = item.value()->as<Linear>();
      if (layer == nullptr) continue;
      const std::string name = item.key() + ".weight";
      // A parameter that is listed by the name of another module.
      const bool listed = std::any_of(parameters.begin(), parameters.end(),
                                      [&](const auto& one) { return one.first == name; });
      if (listed) continue;
      const at::Tensor& weight = layer->weight();
      layer->set_weight(weight.detach().clone().set_requires_grad(weight.requires_grad()));
      Fired({{"parameter", name}, {"before", "shared"}, {"after", "a copy"}});
    }
  }

  std::shared_ptr<Model> model_;
  bool done_ = false;
};

REGISTER_FAULT(Info, UntieWeights);

}  // namespace
}  // namespace trainwreck
