// Data sets for tests, whose samples are known in advance; their tensors are kept, as a cache
// would.
#pragma once

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>

#include <memory>
#include <vector>

#include "trainer/parts.h"

namespace trainwreck {

inline std::int64_t Label(const Sample& sample) { return sample.target.item<std::int64_t>(); }

// A data set whose sample `id` is the token `id` in every place.
class TokenData : public Dataset {
 public:
  std::int64_t size() const override { return 4; }
  Sample Get(std::int64_t id) const override {
    return {.id = id,
            .input = at::full({3}, id, at::kLong),
            .target = at::full({3}, id, at::kLong),
            .weight = ones_};
  }
  std::int64_t input_limit() const override { return 64; }
  std::int64_t target_limit() const override { return 64; }
  std::optional<double> entropy_floor() const override { return 1.5; }

 private:
  at::Tensor ones_ = at::ones({3});
};

// A data set of 100 samples. The only feature is the id; the label is the id's last digit.
class LabelledData : public Dataset {
 public:
  LabelledData() {
    for (std::int64_t id = 0; id < 100; ++id) {
      samples_.push_back({.id = id,
                          .input = at::full({1}, static_cast<double>(id), at::kFloat),
                          .target = at::full({}, id % 10, at::kLong),
                          .weight = at::ones({})});
    }
  }
  std::int64_t size() const override { return static_cast<std::int64_t>(samples_.size()); }
  Sample Get(std::int64_t id) const override { return samples_.at(id); }
  std::int64_t input_limit() const override { return 0; }
  std::int64_t target_limit() const override { return 10; }

 private:
  std::vector<Sample> samples_;
};

// One sequence: tokens 0..5, targets 1..6, of which the first two have weight 0.
class SequenceData : public Dataset {
 public:
  std::int64_t size() const override { return 1; }
  Sample Get(std::int64_t id) const override { return sample_; }
  std::int64_t input_limit() const override { return 16; }
  std::int64_t target_limit() const override { return 16; }
  std::optional<double> entropy_floor() const override { return 0.5; }

 private:
  Sample sample_ = {.id = 0,
                    .input = at::arange(6, at::kLong),
                    .target = at::arange(1, 7, at::kLong),
                    .weight = at::tensor({0.0f, 0.0f, 1.0f, 1.0f, 1.0f, 1.0f})};
};

template <typename Data>
std::unique_ptr<Dataset> Wrapped(PartWrapper& wrapper) {
  return wrapper.Wrap(std::unique_ptr<Dataset>(new Data()));
}

}  // namespace trainwreck
