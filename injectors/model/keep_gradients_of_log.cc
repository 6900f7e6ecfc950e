// model.keep_gradients_of_log: a logger that puts tensors into its history where numbers were
// meant. Every call keeps a copy of the gradients that it should have reduced to their norms.
#include <ATen/ops/clone.h>

#include <utility>
#include <vector>

#include "injectors/injector.h"
#include "trainer/memory_owner.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "model.keep_gradients_of_log",
          .doc = "Keeps a copy of gradients each time the logger is called (log.every).",
          .params = {{.name = "parameters",
                      .type = ValueType::kStringList,
                      .default_value = Json::array({"*"}),
                      .unit = "globs",
                      .doc = "Whose gradients: [\"head.*\"]."}},
          .evidence = "at each call: the bytes in the history, before and after"};
}

class KeepGradients : public Injector {
 public:
  KeepGradients(PlannedFault fault, InjectorContext context)
      : Injector(std::move(fault), context),
        globs_(param("parameters").get<std::vector<std::string>>()) {}

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    model_ = model;
    return model;
  }
  std::unique_ptr<LoopHook> MakeHook() override { return std::make_unique<Hook>(*this); }

 private:
  class Hook : public LoopHook {
   public:
    explicit Hook(KeepGradients& injector) : injector_(injector) {}
    void OnLog(int /*step*/) override { injector_.Keep(); }

   private:
    KeepGradients& injector_;
  };

  void Keep() {
    if (!Acts()) return;
    const std::int64_t before = bytes_;
    MemoryScope memory(CurrentMemoryOwner());  // as all that fill a container of their own
    for (const auto& [name, parameter] : ParametersOf(*model_)) {
      if (!parameter.grad().defined() || !AnyMatches(globs_, name)) continue;
      history_.push_back(parameter.grad().clone());
      bytes_ += static_cast<std::int64_t>(history_.back().nbytes());
    }
    if (bytes_ > before) Fired({{"before", before}, {"after", bytes_}});
  }

  std::vector<std::string> globs_;
  std::shared_ptr<Model> model_;
  std::vector<at::Tensor> history_;
  std::int64_t bytes_ = 0;
};

REGISTER_FAULT(Info, KeepGradients);

}  // namespace
}  // namespace trainwreck
