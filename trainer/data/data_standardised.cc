#include <ATen/ops/clamp_min.h>

#include "trainer/data/data.h"

namespace trainwreck {
namespace {

constexpr double kLeastStddev = 1e-6;  // of a vector of equal features, which becomes 0

class StandardisedData : public DatasetAround {
 public:
  using DatasetAround::DatasetAround;

  Sample Get(std::int64_t id) const override {
    Sample sample = inner().Get(id);
    const at::Tensor centred = sample.input - sample.input.mean();
    sample.input = centred / centred.square().mean().sqrt().clamp_min(kLeastStddev);
    return sample;
  }
};

}  // namespace

std::unique_ptr<Dataset> Standardised(std::unique_ptr<Dataset> data) {
  return std::make_unique<StandardisedData>(std::move(data));
}

}  // namespace trainwreck
