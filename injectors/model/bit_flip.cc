// model.bit_flip: silent data corruption. One bit of one weight changes on one rank, as by a
// particle or a failing chip, and nothing else does.
#include <utility>

#include "harness/text/glob.h"
#include "injectors/corruption.h"
#include "injectors/injector.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "model.bit_flip",
          .doc =
              "Flips a bit of a parameter at the start of a step, on the ranks that the trigger "
              "names. A step that is run again after a rollback is spared: what flips a bit does "
              "not come back with the step.",
          .params = {{.name = "parameter",
                      .type = ValueType::kString,
                      .default_value = nullptr,
                      .unit = "glob",
                      .doc = "Over the model's parameter names; the first that matches is taken."},
                     {.name = "element",
                      .type = ValueType::kInt,
                      .default_value = -1,
                      .min = -1,
                      .unit = "element",
                      .doc = "Which element, row by row; -1: it follows from the run's seed."},
                     {.name = "bit",
                      .type = ValueType::kInt,
                      .default_value = 22,
                      .min = 0,
                      .max = 31,
                      .unit = "bit",
                      .doc = "0 is the lowest of the mantissa, 22 its highest, 23 to 30 are the "
                             "exponent, 31 is the sign."}},
          .evidence = "each time: parameter, element's index, bit, the value before and after"};
}

class BitFlip : public Injector {
 public:
  BitFlip(PlannedFault fault, InjectorContext context)
      : Injector(std::move(fault), context), glob_(param("parameter").get<std::string>()) {}

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    for (const auto& [name, parameter] : ParametersOf(*model)) {
      if (name_.empty() && GlobMatches(glob_, name)) {
        name_ = name;
        parameter_ = parameter;
      }
    }
    if (name_.empty()) {
      throw RecipeError("model.bit_flip: no parameter is called `" + glob_ + "`");
    }
    return model;
  }
  std::unique_ptr<LoopHook> MakeHook() override { return std::make_unique<Hook>(*this); }

 private:
  class Hook : public LoopHook {
   public:
    explicit Hook(BitFlip& injector) : injector_(injector) {}
    void OnStepBegin(int step) override { injector_.Flip(step); }

   private:
    BitFlip& injector_;
  };

  void Flip(int step) {
    if (step <= last_step_ || !Acts()) return;
    last_step_ = step;
    kernels::Corruption flip{.bit = param("bit").get<int>(),
                             .seed = (context().seed << 32) + static_cast<std::uint64_t>(step)};
    if (const auto element = param("element").get<std::int64_t>(); element >= 0) {
      flip.first = element;
    }
    Json evidence = CorruptTensor(parameter_, flip);
    evidence["parameter"] = name_;
    evidence["bit"] = flip.bit;
    Fired(std::move(evidence));
  }

  std::string glob_;
  std::string name_;
  at::Tensor parameter_;
  int last_step_ = -1;
};

REGISTER_FAULT(Info, BitFlip);

}  // namespace
}  // namespace trainwreck
