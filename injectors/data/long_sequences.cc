// data.long_sequences: a batch of documents that are many times longer than the others, as a corpus
// without a limit on length has now and then.
#include <ATen/ops/cat.h>

#include <set>
#include <utility>

#include "injectors/data/visited_dataset.h"
#include "injectors/injector.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "data.long_sequences",
          .doc =
              "Joins each training sample that a chosen step fetches with those after it in the "
              "data set.",
          .params = {{.name = "times",
                      .type = ValueType::kInt,
                      .default_value = 16,
                      .min = 2,
                      .max = 1024,
                      .unit = "samples",
                      .doc = "How many samples become one."}},
          .evidence = "per step: the first sample, and its length before and after"};
}

class LongSequences : public Injector {
 public:
  LongSequences(PlannedFault fault, InjectorContext context)
      : Injector(std::move(fault), context), times_(param("times").get<std::int64_t>()) {}

  std::unique_ptr<Dataset> Wrap(std::unique_ptr<Dataset> data) override {
    if (data->input_limit() == 0) {
      throw RecipeError("data.long_sequences: needs inputs that are tokens");
    }
    return std::make_unique<VisitedDataset<LongSequences>>(std::move(data), *this);
  }

  void Visit(Sample& sample, const Dataset& data) {
    if (!Acts()) return;
    std::vector<at::Tensor> inputs, targets, weights;
    for (std::int64_t i = 0; i < times_; ++i) {
      const Sample next = i == 0 ? sample : data.Get((sample.id + i) % data.size());
      inputs.push_back(next.input);
      targets.push_back(next.target);
      weights.push_back(next.weight);
    }
    const std::int64_t before = sample.input.size(0);
    sample.input = at::cat(inputs);
    sample.target = at::cat(targets);
    sample.weight = at::cat(weights);
    if (!fired_in_.insert(StepOfThread(*context().clock)).second) return;
    Fired({{"sample", sample.id}, {"before", before}, {"after", sample.input.size(0)}});
  }

 private:
  std::int64_t times_;
  std::set<int> fired_in_;  // steps
};

REGISTER_FAULT(Info, LongSequences);

}  // namespace
}  // namespace trainwreck
