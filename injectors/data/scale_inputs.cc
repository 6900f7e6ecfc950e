// data.scale_inputs: features in other units than the model was made for, as raw sensor counts or
// pixels from 0 to 255.
#include <utility>

#include "injectors/injector.h"

namespace trainwreck {
namespace {

FaultInfo Info() {
  return {.name = "data.scale_inputs",
          .doc = "Multiplies the features of training samples by a factor as they are fetched.",
          .params = {{.name = "factor",
                      .type = ValueType::kNumber,
                      .default_value = nullptr,
                      .unit = "times",
                      .doc = "What each feature is multiplied by."}},
          .evidence = "once: the first sample, and its largest magnitude before and after"};
}

class ScaleInputs : public Injector {
 public:
  ScaleInputs(PlannedFault fault, InjectorContext context)
      : Injector(std::move(fault), context), factor_(param("factor").get<double>()) {}

  std::unique_ptr<Dataset> Wrap(std::unique_ptr<Dataset> data) override;

  void Visit(Sample& sample) {
    if (!Acts()) return;
    const at::Tensor before = sample.input;
    sample.input = before * factor_;
    if (std::exchange(fired_, true)) return;
    const auto most = [](const at::Tensor& x) {
      return EncodeNumber(x.abs().max().item<double>());
    };
    Fired({{"sample", sample.id}, {"before", most(before)}, {"after", most(sample.input)}});
  }

 private:
  double factor_;
  bool fired_ = false;
};

class ScaledDataset : public Dataset {
 public:
  ScaledDataset(std::unique_ptr<Dataset> inner, ScaleInputs& injector)
      : inner_(std::move(inner)), injector_(injector) {}

  std::int64_t size() const override { return inner_->size(); }
  Sample Get(std::int64_t id) const override {
    Sample sample = inner_->Get(id);
    injector_.Visit(sample);
    return sample;
  }
  std::int64_t input_limit() const override { return inner_->input_limit(); }
  std::int64_t target_limit() const override { return inner_->target_limit(); }
  std::optional<double> entropy_floor() const override { return inner_->entropy_floor(); }

 private:
  std::unique_ptr<Dataset> inner_;
  ScaleInputs& injector_;
};

std::unique_ptr<Dataset> ScaleInputs::Wrap(std::unique_ptr<Dataset> data) {
  if (data->input_limit() > 0) {
    throw std::runtime_error("data.scale_inputs: needs inputs that are features, not tokens");
  }
  return std::make_unique<ScaledDataset>(std::move(data), *this);
}

REGISTER_FAULT(Info, ScaleInputs);

}  // namespace
}  // namespace trainwreck
