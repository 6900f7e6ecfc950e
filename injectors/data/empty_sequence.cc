// data.empty_sequence: samples of whose targets none counts, as a prompt that fills the whole
// window, or a document of nothing but padding, leaves them.
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <utility>

#include "injectors/data/visited_dataset.h"
#include "injectors/injector.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "data.empty_sequence",
          .doc = "Masks all targets of the chosen training samples.",
          .params = {{.name = "samples",
                      .type = ValueType::kIntList,
                      .default_value = nullptr,
                      .min = 0,
                      .unit = "sample ids",
                      .doc = "Which samples of the training set."}},
          .evidence = "per fetch: sample, and the sum of its targets' weights before and after"};
}

class EmptySequence : public Injector {
 public:
  EmptySequence(PlannedFault fault, InjectorContext context)
      : Injector(std::move(fault), context),
        samples_(param("samples").get<std::vector<std::int64_t>>()) {}

  std::unique_ptr<Dataset> Wrap(std::unique_ptr<Dataset> data) override {
    for (const std::int64_t id : samples_) {
      if (id < data->size()) continue;
      throw RecipeError("data.empty_sequence: there is no sample " + std::to_string(id) +
                        ", the training set has " + std::to_string(data->size()));
    }
    return std::make_unique<VisitedDataset<EmptySequence>>(std::move(data), *this);
  }

  void Visit(Sample& sample, const Dataset& /*data*/) {
    if (!Acts() || std::find(samples_.begin(), samples_.end(), sample.id) == samples_.end()) return;
    const double before = sample.weight.sum().item<double>();
    sample.weight = at::zeros_like(sample.weight);
    Fired({{"sample", sample.id}, {"before", before}, {"after", 0.0}});
  }

 private:
  std::vector<std::int64_t> samples_;
};

REGISTER_FAULT(Info, EmptySequence);

}  // namespace
}  // namespace trainwreck
