// optimizer.flip_state_bit: silent damage of memory that no gradient and no loss shows at once: a
// moment of the optimizer.

#include "injectors/corruption.h"
#include "injectors/optimizer/update_fault.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "optimizer.flip_state_bit",
          .doc =
              "Flips a bit of the optimizer's state before an update, on the ranks that the "
              "trigger names. A step that is run again after a rollback is spared.",
          .params = {{.name = "entry",
                      .type = ValueType::kString,
                      .default_value = "optimizer.*",
                      .unit = "glob",
                      .doc = "The first entry of a checkpoint that matches: "
                             "\"optimizer.exp_avg.head.weight\"."},
                     {.name = "bit",
                      .type = ValueType::kInt,
                      .default_value = 30,
                      .min = 0,
                      .max = 31,
                      .unit = "bit",
                      .doc = "0 is the lowest of the mantissa, 22 its highest, 23 to 30 are the "
                             "exponent, 31 is the sign."}},
          .evidence = "each time: entry, element's index, bit, the value before and after"};
}

class FlipStateBit : public UpdateFault {
 public:
  using UpdateFault::UpdateFault;

 private:
  void Update(Optimizer& optimizer, double lr) override {
    if (Acts() && context().clock->step > last_step_) Flip(optimizer);
    optimizer.Step(lr);
  }

  void Flip(Optimizer& optimizer) {
    last_step_ = context().clock->step;
    StateDict state;
    optimizer.Save(state);
    for (auto& [name, tensor] : state) {
      if (!AnyMatches({param("entry").get<std::string>()}, name)) continue;
      const kernels::Corruption flip{
          .bit = param("bit").get<int>(),
          .seed = (context().seed << 32) + static_cast<std::uint64_t>(context().clock->step)};
      Json evidence = CorruptTensor(tensor, flip);
      optimizer.Load(state);
      evidence["entry"] = name;
      evidence["bit"] = flip.bit;
      return Fired(std::move(evidence));
    }
    throw RecipeError("optimizer.flip_state_bit: no entry of the optimizer is called `" +
                      param("entry").get<std::string>() + "`");
  }

  int last_step_ = -1;
};

REGISTER_FAULT(Info, FlipStateBit);

}  // namespace
}  // namespace trainwreck
