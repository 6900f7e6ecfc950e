// data.rename_tokens: a vocabulary whose tokens have other numbers, all through. No bug of anybody:
// a model whose rows are numbered alike is the same model.
#include <ATen/core/grad_mode.h>

#include <utility>

#include "injectors/data/first_tokens.h"
#include "injectors/data/visited_dataset.h"
#include "injectors/injector.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "data.rename_tokens",
          .doc =
              "Numbers the vocabulary from its other end, in the inputs and targets of training "
              "data and in the rows of the model's parameters that belong to tokens. Held-out "
              "data keep their numbers.",
          .params = {{.name = "parameters",
                      .type = ValueType::kStringList,
                      .default_value = {"embed.*", "head.*"},
                      .unit = "globs",
                      .doc = "Which parameters have a row for each token."}},
          .has_trigger = false,
          .evidence =
              "once: the names in `parameters`, and the first inputs of the first sample "
              "before and after"};
}

class RenameTokens : public Injector {
 public:
  using Injector::Injector;

  std::unique_ptr<Dataset> Wrap(std::unique_ptr<Dataset> data) override {
    vocabulary_ = data->input_limit();
    if (vocabulary_ == 0 || data->target_limit() != vocabulary_) {
      throw RecipeError("data.rename_tokens: needs sequences of tokens, not features");
    }
    return std::make_unique<VisitedDataset<RenameTokens>>(std::move(data), *this);
  }

  std::shared_ptr<Model> Wrap(std::shared_ptr<Model> model) override {
    at::NoGradGuard no_grad;
    const auto globs = param("parameters").get<std::vector<std::string>>();
    for (auto& [name, parameter] : ParametersOf(*model)) {
      if (!AnyMatches(globs, name)) continue;
      if (parameter.size(0) != vocabulary_) {
        throw RecipeError("data.rename_tokens: " + name + " has no row for each token");
      }
      at::Tensor rows = parameter;
      rows.copy_(parameter.flip(0));
      names_.push_back(name);
    }
    return model;
  }

  void Visit(Sample& sample, const Dataset& /*data*/) {
    const at::Tensor before = sample.input;
    sample.input = before.neg().add(vocabulary_ - 1);
    sample.target = sample.target.neg().add(vocabulary_ - 1);
    if (names_.empty() || std::exchange(fired_, true)) return;
    Fired({{"parameters", names_},
           {"sample", sample.id},
           {"before", FirstTokens(before)},
           {"after", FirstTokens(sample.input)}});
  }

 private:
  std::int64_t vocabulary_ = 0;
  std::vector<std::string> names_;
  bool fired_ = false;
};

REGISTER_FAULT(Info, RenameTokens);

}  // namespace
}  // namespace trainwreck
