// data.skew_classes: training data in which one class has nearly all samples, as with fraud, rare
// diseases and clicks.
#include <random>
#include <utility>

#include "injectors/data/visited_dataset.h"
#include "injectors/injector.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "data.skew_classes",
          .doc =
              "Draws the training samples again, so that one class gets most of them; the others "
              "share the rest as before. Held-out data stay as they are.",
          .params = {{.name = "majority",
                      .type = ValueType::kInt,
                      .default_value = 0,
                      .min = 0,
                      .unit = "label",
                      .doc = "The class that gets most."},
                     {.name = "share",
                      .type = ValueType::kNumber,
                      .default_value = 0.95,
                      .min = 0,
                      .max = 1,
                      .unit = "of the samples",
                      .doc = "What it gets."}},
          .has_trigger = false,
          .evidence = "once: the majority's share before and after"};
}

class SkewClasses : public Injector {
 public:
  using Injector::Injector;

  std::unique_ptr<Dataset> Wrap(std::unique_ptr<Dataset> data) override {
    if (data->input_limit() > 0) {
      throw RecipeError("data.skew_classes: needs features with labels, not tokens");
    }
    const auto majority = param("majority").get<std::int64_t>();
    const double share = param("share").get<double>();
    std::vector<std::int64_t> most, rest;
    for (std::int64_t id = 0; id < data->size(); ++id) {
      (data->Get(id).target.item<std::int64_t>() == majority ? most : rest).push_back(id);
    }
    if (most.empty() || rest.empty()) {
      throw RecipeError("data.skew_classes: label " + std::to_string(majority) +
                        " has none of the samples, or all");
    }
    std::mt19937_64 random(context().seed);
    std::int64_t drawn_most = 0;
    for (std::int64_t id = 0; id < data->size(); ++id) {
      const bool from_most = static_cast<double>(random() >> 11) * 0x1p-53 < share;
      const std::vector<std::int64_t>& ids = from_most ? most : rest;
      drawn_most += from_most ? 1 : 0;
      drawn_.push_back(ids[random() % ids.size()]);
    }
    const auto part = [&](std::size_t count) {
      return static_cast<double>(count) / static_cast<double>(data->size());
    };
    Fired({{"before", part(most.size())}, {"after", part(static_cast<std::size_t>(drawn_most))}});
    return std::make_unique<VisitedDataset<SkewClasses>>(std::move(data), *this);
  }

  void Visit(Sample& sample, const Dataset& data) {
    const std::int64_t id = sample.id;
    sample = data.Get(drawn_.at(id));
    sample.id = id;
  }

 private:
  std::vector<std::int64_t> drawn_;
};

REGISTER_FAULT(Info, SkewClasses);

}  // namespace
}  // namespace trainwreck
