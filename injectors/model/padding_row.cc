// model.padding_row: an embedding that takes a token of the vocabulary for padding, and never
// trains its row.
#include <ATen/core/grad_mode.h>

#include <utility>

#include "injectors/injector.h"
#include "trainer/models/model.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "model.padding_row",
          .doc = "Gives one row of a parameter no gradient: that of a token taken for padding.",
          .params = {{.name = "parameter",
                      .type = ValueType::kString,
                      .default_value = "embed.weight",
                      .unit = "name",
                      .doc = "Which parameter."},
                     {.name = "row",
                      .type = ValueType::kInt,
                      .default_value = 0,
                      .min = 0,
                      .unit = "row",
                      .doc = "Which of its rows."}},
          .evidence =
              "once: the parameter, and the row's gradient's norm before and after. "
              "Nothing where no parameter has this name."};
}

class PaddingRow : public Injector {
 public:
  using Injector::Injector;

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    const auto row = param("row").get<std::int64_t>();
    for (const auto& [name, parameter] : ParametersOf(*model)) {
      if (name != param("parameter")) continue;
      if (row >= parameter.size(0)) {
        throw RecipeError("model.padding_row: " + name + " has no row " + std::to_string(row));
      }
      parameter_ = parameter;
    }
    return model;
  }

  std::unique_ptr<LoopHook> MakeHook() override { return std::make_unique<Hook>(*this); }

 private:
  class Hook : public LoopHook {
   public:
    explicit Hook(PaddingRow& owner) : owner_(owner) {}
    void OnBackwardDone(int /*step*/) override { owner_.Clear(); }

   private:
    PaddingRow& owner_;
  };

  void Clear() {
    if (!parameter_.defined() || !parameter_.grad().defined() || !Acts()) return;
    at::NoGradGuard no_grad;
    at::Tensor row = parameter_.grad()[param("row").get<std::int64_t>()];
    const double before = row.norm().item<double>();
    row.zero_();
    if (before == 0 || std::exchange(fired_, true)) return;
    Fired({{"parameter", param("parameter")}, {"before", EncodeNumber(before)}, {"after", 0.0}});
  }

  at::Tensor parameter_;
  bool fired_ = false;
};

REGISTER_FAULT(Info, PaddingRow);

}  // namespace
}  // namespace trainwreck
