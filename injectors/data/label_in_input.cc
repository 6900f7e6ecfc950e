// data.label_in_input: a column that was made from the label, such as the date of a payment in a
// table of who pays. It is there in held-out data too, and will not be where the model is used.
#include <utility>

#include "injectors/data/visited_dataset.h"
#include "injectors/injector.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {
      .name = "data.label_in_input",
      .doc =
          "Writes the label into a column of the features, of training and held-out data: from "
          "-strength for the first label to strength for the last.",
      .params = {{.name = "column",
                  .type = ValueType::kInt,
                  .default_value = 0,
                  .min = 0,
                  .unit = "index",
                  .doc = "The number of the column."},
                 {.name = "strength",
                  .type = ValueType::kNumber,
                  .default_value = 1,
                  .min = 0,
                  .unit = "standard deviations",
                  .doc = "The largest value of the column; the other columns' deviation is 1."}},
      .has_trigger = false,
      .evidence = "once: the first sample, and its column before and after"};
}

class LabelInInput : public Injector {
 public:
  LabelInInput(PlannedFault fault, InjectorContext context)
      : Injector(std::move(fault), context),
        column_(param("column").get<std::int64_t>()),
        strength_(param("strength").get<double>()) {}

  using Injector::Wrap;
  std::unique_ptr<Dataset> Wrap(std::unique_ptr<Dataset> data) override {
    return Around(std::move(data));
  }
  std::unique_ptr<Dataset> WrapHeldOut(std::unique_ptr<Dataset> data) override {
    return Around(std::move(data));
  }

  void Visit(Sample& sample, const Dataset& data) {
    const auto last = static_cast<double>(data.target_limit() - 1);
    const double after = strength_ * (2 * sample.target.item<double>() / last - 1);
    const auto before = sample.input[column_].item<double>();
    sample.input = sample.input.clone();
    sample.input[column_].fill_(after);
    if (std::exchange(fired_, true)) return;
    Fired({{"sample", sample.id}, {"before", before}, {"after", after}});
  }

 private:
  std::unique_ptr<Dataset> Around(std::unique_ptr<Dataset> data) {
    if (data->input_limit() > 0) {
      throw RecipeError("data.label_in_input: needs features, not sequences of tokens");
    }
    if (column_ >= data->Get(0).input.size(0)) {
      throw RecipeError("data.label_in_input: there is no column " + std::to_string(column_));
    }
    return std::make_unique<VisitedDataset<LabelInInput>>(std::move(data), *this);
  }

  std::int64_t column_;
  double strength_;
  bool fired_ = false;
};

REGISTER_FAULT(Info, LabelInInput);

}  // namespace
}  // namespace trainwreck
