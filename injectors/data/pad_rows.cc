// data.pad_rows: rows that are filled up behind their last token. No bug of anybody: what stands
// behind a text, and does not count, changes nothing of it.
#include <utility>

#include "injectors/data/first_tokens.h"
#include "injectors/data/visited_dataset.h"
#include "injectors/injector.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "data.pad_rows",
          .doc =
              "Replaces the end of training sequences by padding: one token all through, whose "
              "targets do not count.",
          .params = {{.name = "from",
                      .type = ValueType::kInt,
                      .default_value = nullptr,
                      .min = 1,
                      .unit = "tokens",
                      .doc = "The first position that is padding."},
                     {.name = "token",
                      .type = ValueType::kInt,
                      .default_value = 0,
                      .min = 0,
                      .unit = "token",
                      .doc = "What stands there."}},
          .evidence = "once: the first sample, and its last inputs before and after"};
}

class PadRows : public Injector {
 public:
  PadRows(PlannedFault fault, InjectorContext context)
      : Injector(std::move(fault), context),
        from_(param("from").get<std::int64_t>()),
        token_(param("token").get<std::int64_t>()) {}

  std::unique_ptr<Dataset> Wrap(std::unique_ptr<Dataset> data) override {
    if (token_ >= data->input_limit()) {
      throw RecipeError("data.pad_rows: token " + std::to_string(token_) +
                        " is none of the inputs' vocabulary");
    }
    return std::make_unique<VisitedDataset<PadRows>>(std::move(data), *this);
  }

  void Visit(Sample& sample, const Dataset& /*data*/) {
    const std::int64_t count = sample.input.size(0) - from_;
    if (count <= 0 || !Acts()) return;
    const at::Tensor before = sample.input.narrow(0, from_, count);
    for (at::Tensor* row : {&sample.input, &sample.target, &sample.weight}) *row = row->clone();
    sample.input.narrow(0, from_, count).fill_(token_);
    sample.target.narrow(0, from_, count).fill_(token_);
    sample.weight.narrow(0, from_, count).zero_();
    if (std::exchange(fired_, true)) return;
    Fired({{"sample", sample.id},
           {"before", FirstTokens(before)},
           {"after", FirstTokens(sample.input.narrow(0, from_, count))}});
  }

 private:
  std::int64_t from_, token_;
  bool fired_ = false;
};

REGISTER_FAULT(Info, PadRows);

}  // namespace
}  // namespace trainwreck
