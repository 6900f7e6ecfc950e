// data.scale_inputs: features in other units than the model was made for, as raw sensor counts,
// pixels from 0 to 255 or timestamps; with a factor of 0, a sensor that is dead.
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <utility>

#include "injectors/data/visited_dataset.h"
#include "injectors/injector.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "data.scale_inputs",
          .doc =
              "Makes x into factor * x + offset in the features of training samples, as they are "
              "fetched.",
          .params = {{.name = "factor",
                      .type = ValueType::kNumber,
                      .default_value = 1.0,
                      .unit = "times",
                      .doc = "What each feature is multiplied by."},
                     {.name = "offset",
                      .type = ValueType::kNumber,
                      .default_value = 0.0,
                      .unit = "of a feature",
                      .doc = "What is added to each feature then."},
                     {.name = "samples",
                      .type = ValueType::kIntList,
                      .default_value = Json::array(),
                      .min = 0,
                      .unit = "sample ids",
                      .doc = "Of which samples of the training set; empty: of all."}},
          .evidence = "once: the first sample, and its largest magnitude before and after"};
}

class ScaleInputs : public Injector {
 public:
  ScaleInputs(PlannedFault fault, InjectorContext context)
      : Injector(std::move(fault), context),
        factor_(param("factor").get<double>()),
        offset_(param("offset").get<double>()),
        samples_(param("samples").get<std::vector<std::int64_t>>()) {}

  std::unique_ptr<Dataset> Wrap(std::unique_ptr<Dataset> data) override;

  void Visit(Sample& sample, const Dataset& /*data*/) {
    if (!Acts() || !Chooses(sample.id)) return;
    const at::Tensor before = sample.input;
    sample.input = before * factor_ + offset_;
    if (std::exchange(fired_, true)) return;
    const auto most = [](const at::Tensor& x) {
      return EncodeNumber(x.abs().max().item<double>());
    };
    Fired({{"sample", sample.id}, {"before", most(before)}, {"after", most(sample.input)}});
  }

 private:
  bool Chooses(std::int64_t id) const {
    return samples_.empty() || std::find(samples_.begin(), samples_.end(), id) != samples_.end();
  }

  double factor_, offset_;
  std::vector<std::int64_t> samples_;
  bool fired_ = false;
};

std::unique_ptr<Dataset> ScaleInputs::Wrap(std::unique_ptr<Dataset> data) {
  if (data->input_limit() > 0) {
    throw RecipeError("data.scale_inputs: needs inputs that are features, not tokens");
  }
  return std::make_unique<VisitedDataset<ScaleInputs>>(std::move(data), *this);
}

REGISTER_FAULT(Info, ScaleInputs);

}  // namespace
}  // namespace trainwreck
