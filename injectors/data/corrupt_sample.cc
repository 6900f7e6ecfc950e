// data.corrupt_sample: a damaged row of the training set, as a broken decoder or a faulty export
// leaves it.
#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "injectors/data/visited_dataset.h"
#include "injectors/injector.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {
namespace {

// Far enough outside the valid range that no padding index of a model hides it.
constexpr std::int64_t kBeyondLimit = 3;

FaultInfo Info() {
  return {
      .name = "data.corrupt_sample",
      .doc =
          "Puts a NaN, an Inf, or an index out of range into training samples as they are fetched.",
      .params = {{.name = "value",
                  .type = ValueType::kString,
                  .default_value = "nan",
                  .choices = {"nan", "inf", "bad_token", "bad_label"},
                  .unit = "",
                  .doc =
                      "What is put in. nan and inf go into the input, or where inputs are tokens "
                      "into the weight of a target; bad_token is an input token, bad_label a "
                      "target, 3 above the largest allowed number of them."},
                 {.name = "samples",
                  .type = ValueType::kIntList,
                  .default_value = Json::array(),
                  .min = 0,
                  .unit = "sample ids",
                  .doc = "The damaged samples of the training set. Empty: the first sample fetched "
                         "in each step at which the trigger acts."},
                 {.name = "position",
                  .type = ValueType::kInt,
                  .default_value = 0,
                  .min = 0,
                  .unit = "index",
                  .doc = "Where in the sample: a token or feature, from 0. A label of features has "
                         "only one."}},
      .evidence = "per fetch: sample, field, position, the number before and after"};
}

class CorruptSample : public Injector {
 public:
  CorruptSample(PlannedFault fault, InjectorContext context)
      : Injector(std::move(fault), context),
        value_(param("value").get<std::string>()),
        samples_(param("samples").get<std::vector<std::int64_t>>()),
        position_(param("position").get<std::int64_t>()) {}

  std::unique_ptr<Dataset> Wrap(std::unique_ptr<Dataset> data) override;

  // Damages `sample`, fetched from `data`, when it is one of the chosen.
  void Visit(Sample& sample, const Dataset& data);

 private:
  bool Chooses(std::int64_t id);
  void Damage(Sample& sample, const char* field, at::Tensor& tensor, const at::Scalar& value);

  std::string value_;
  std::vector<std::int64_t> samples_;
  std::int64_t position_;
  std::set<int> damaged_in_;  // steps in which a first sample was already damaged
};

std::unique_ptr<Dataset> CorruptSample::Wrap(std::unique_ptr<Dataset> data) {
  for (const std::int64_t id : samples_) {
    if (id >= data->size()) {
      throw RecipeError("data.corrupt_sample: there is no sample " + std::to_string(id) +
                        ", the training set has " + std::to_string(data->size()));
    }
  }
  if (value_ == "bad_token" && data->input_limit() == 0) {
    throw RecipeError("data.corrupt_sample: bad_token needs inputs that are tokens");
  }
  return std::make_unique<VisitedDataset<CorruptSample>>(std::move(data), *this);
}

bool CorruptSample::Chooses(std::int64_t id) {
  if (!Acts()) return false;
  if (!samples_.empty()) return std::find(samples_.begin(), samples_.end(), id) != samples_.end();
  // A guard that skips the batch draws another in the same step; that one is whole.
  return damaged_in_.insert(StepOfThread(*context().clock)).second;
}

void CorruptSample::Visit(Sample& sample, const Dataset& data) {
  if (!Chooses(sample.id)) return;
  if (value_ == "bad_token") {
    Damage(sample, "input", sample.input, data.input_limit() + kBeyondLimit);
  } else if (value_ == "bad_label") {
    Damage(sample, "target", sample.target, data.target_limit() + kBeyondLimit);
  } else {
    const double number = value_ == "nan" ? std::numeric_limits<double>::quiet_NaN()
                                          : std::numeric_limits<double>::infinity();
    if (sample.input.is_floating_point()) {
      Damage(sample, "input", sample.input, number);
    } else {
      Damage(sample, "weight", sample.weight, number);
    }
  }
}

void CorruptSample::Damage(Sample& sample, const char* field, at::Tensor& tensor,
                           const at::Scalar& value) {
  const std::int64_t position = tensor.dim() == 0 ? 0 : position_;
  if (position >= tensor.numel()) {
    throw RecipeError("data.corrupt_sample: position " + std::to_string(position) +
                      " is past the end of sample " + std::to_string(sample.id) + "'s " + field +
                      ", which has " + std::to_string(tensor.numel()));
  }
  tensor = tensor.clone();  // the data set may hand out views of what it keeps
  at::Tensor element = tensor.view({-1})[position];
  const auto number = [&] {
    return element.is_floating_point() ? EncodeNumber(element.item<double>())
                                       : Json(element.item<std::int64_t>());
  };
  const Json before = number();
  element.fill_(value);
  Fired({{"sample", sample.id},
         {"field", field},
         {"position", position},
         {"before", before},
         {"after", number()}});
}

REGISTER_FAULT(Info, CorruptSample);

}  // namespace
}  // namespace trainwreck
