// data.unmask_targets: the loss counts what it should leave out, as the prompts of a data set for
// instruction tuning whose mask was lost on the way.
#include <ATen/ops/ones_like.h>

#include <utility>

#include "injectors/data/visited_dataset.h"
#include "injectors/injector.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "data.unmask_targets",
          .doc = "Gives all targets of training samples weight 1. Held-out data keep their mask.",
          .evidence =
              "once: the first sample whose weights it changes, and how many of its targets "
              "count before and after"};
}

class UnmaskTargets : public Injector {
 public:
  using Injector::Injector;

  std::unique_ptr<Dataset> Wrap(std::unique_ptr<Dataset> data) override {
    return std::make_unique<VisitedDataset<UnmaskTargets>>(std::move(data), *this);
  }

  void Visit(Sample& sample, const Dataset& /*data*/) {
    if (!Acts()) return;
    const at::Tensor before = sample.weight;
    sample.weight = at::ones_like(before);
    if (fired_ || before.equal(sample.weight)) return;
    fired_ = true;
    const auto counted = [](const at::Tensor& weights) {
      return weights.count_nonzero().item<std::int64_t>();
    };
    Fired({{"sample", sample.id}, {"before", counted(before)}, {"after", counted(sample.weight)}});
  }

 private:
  bool fired_ = false;
};

REGISTER_FAULT(Info, UnmaskTargets);

}  // namespace
}  // namespace trainwreck
