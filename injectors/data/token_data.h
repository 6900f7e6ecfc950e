// Sample `id` is the token `id` in every place; the tensors are kept, as a cache would. For tests.
#pragma once

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>

#include "harness/trainer/parts.h"

namespace trainwreck {

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

}  // namespace trainwreck
