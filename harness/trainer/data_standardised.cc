#include <ATen/ops/clamp_min.h>

#include "harness/trainer/data.h"

namespace trainwreck {
namespace {

constexpr double kLeastStddev = 1e-6;  // of a vector of equal features, which becomes 0

class StandardisedData : public Dataset {
 public:
  explicit StandardisedData(std::unique_ptr<Dataset> inner) : inner_(std::move(inner)) {}

  std::int64_t size() const override { return inner_->size(); }
  std::int64_t input_limit() const override { return inner_->input_limit(); }
  std::int64_t target_limit() const override { return inner_->target_limit(); }
  std::optional<double> entropy_floor() const override { return inner_->entropy_floor(); }

  Sample Get(std::int64_t id) const override {
    Sample sample = inner_->Get(id);
    const at::Tensor centred = sample.input - sample.input.mean();
    sample.input = centred / centred.square().mean().sqrt().clamp_min(kLeastStddev);
    return sample;
  }

 private:
  std::unique_ptr<Dataset> inner_;
};

}  // namespace

std::unique_ptr<Dataset> Standardised(std::unique_ptr<Dataset> data) {
  return std::make_unique<StandardisedData>(std::move(data));
}

}  // namespace trainwreck
