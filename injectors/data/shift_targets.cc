// data.shift_targets: targets that stand a few positions off, as when both the data set and the
// model move them by one, or neither does.
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "injectors/data/first_tokens.h"
#include "injectors/data/visited_dataset.h"
#include "injectors/injector.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {
      .name = "data.shift_targets",
      .doc =
          "Gives each position of a training sequence the target of another one; positions "
          "that get none are left out of the loss.",
      .params = {{.name = "by",
                  .type = ValueType::kInt,
                  .default_value = nullptr,
                  .unit = "tokens",
                  .doc = "How many positions later that is: 1 predicts one token too far ahead, "
                         "-1 asks for the token that is the input."}},
      .evidence = "once: the first sample, and its first targets before and after"};
}

class ShiftTargets : public Injector {
 public:
  ShiftTargets(PlannedFault fault, InjectorContext context)
      : Injector(std::move(fault), context), by_(param("by").get<std::int64_t>()) {}

  std::unique_ptr<Dataset> Wrap(std::unique_ptr<Dataset> data) override {
    if (data->input_limit() == 0) {
      throw RecipeError("data.shift_targets: needs sequences of tokens, not features");
    }
    return std::make_unique<VisitedDataset<ShiftTargets>>(std::move(data), *this);
  }

  void Visit(Sample& sample, const Dataset& /*data*/) {
    if (!Acts()) return;
    const at::Tensor before = sample.target;
    sample.target = Shifted(before);
    sample.weight = Shifted(sample.weight);
    if (std::exchange(fired_, true)) return;
    Fired({{"sample", sample.id},
           {"before", FirstTokens(before)},
           {"after", FirstTokens(sample.target)}});
  }

 private:
  at::Tensor Shifted(const at::Tensor& row) const {
    at::Tensor out = at::zeros_like(row);
    const std::int64_t kept = row.size(0) - std::abs(by_);
    if (kept > 0) {
      out.narrow(0, std::max<std::int64_t>(-by_, 0), kept)
          .copy_(row.narrow(0, std::max<std::int64_t>(by_, 0), kept));
    }
    return out;
  }

  std::int64_t by_;
  bool fired_ = false;
};

REGISTER_FAULT(Info, ShiftTargets);

}  // namespace
}  // namespace trainwreck
