// data.recode_inputs: inputs and targets that are numbered by different vocabularies, as when
// special tokens were added to one tokenizer and not to the other.
#include <utility>

#include "injectors/data/first_tokens.h"
#include "injectors/data/visited_dataset.h"
#include "injectors/injector.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {
      .name = "data.recode_inputs",
      .doc =
          "Gives the inputs of training sequences other numbers than the same tokens have as "
          "targets. What the model is to go on from in inference keeps its numbers.",
      .params = {{.name = "by",
                  .type = ValueType::kInt,
                  .default_value = 1,
                  .min = 1,
                  .unit = "tokens",
                  .doc = "How much larger they are, modulo the vocabulary."},
                 {.name = "from",
                  .type = ValueType::kInt,
                  .default_value = 1,
                  .min = 0,
                  .unit = "tokens",
                  .doc = "The first position that it happens to; those before are the prompt."}},
      .evidence = "once: the first sample, and its first recoded inputs before and after"};
}

class RecodeInputs : public Injector {
 public:
  RecodeInputs(PlannedFault fault, InjectorContext context)
      : Injector(std::move(fault), context),
        by_(param("by").get<std::int64_t>()),
        from_(param("from").get<std::int64_t>()) {}

  std::unique_ptr<Dataset> Wrap(std::unique_ptr<Dataset> data) override {
    if (data->input_limit() == 0) {
      throw RecipeError("data.recode_inputs: needs sequences of tokens, not features");
    }
    return std::make_unique<VisitedDataset<RecodeInputs>>(std::move(data), *this);
  }

  void Visit(Sample& sample, const Dataset& data) {
    const std::int64_t count = sample.input.size(0) - from_;
    if (count <= 0 || !Acts()) return;
    const at::Tensor before = sample.input.narrow(0, from_, count);
    sample.input = sample.input.clone();
    at::Tensor after = sample.input.narrow(0, from_, count);
    after.add_(by_).remainder_(data.input_limit());
    if (std::exchange(fired_, true)) return;
    Fired({{"sample", sample.id}, {"before", FirstTokens(before)}, {"after", FirstTokens(after)}});
  }

 private:
  std::int64_t by_, from_;
  bool fired_ = false;
};

REGISTER_FAULT(Info, RecodeInputs);

}  // namespace
}  // namespace trainwreck
