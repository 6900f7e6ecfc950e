#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "injectors/testing.h"

namespace trainwreck {
namespace {

constexpr std::int64_t kSamples = 100;

// The one feature is the id, the label the id's last digit; tensors are kept, as a cache would.
class Labelled : public Dataset {
 public:
  Labelled() {
    for (std::int64_t id = 0; id < kSamples; ++id) {
      samples_.push_back({.id = id,
                          .input = at::full({1}, static_cast<double>(id), at::kFloat),
                          .target = at::full({}, id % 10, at::kLong),
                          .weight = at::ones({})});
    }
  }
  std::int64_t size() const override { return kSamples; }
  Sample Get(std::int64_t id) const override { return samples_.at(id); }
  std::int64_t input_limit() const override { return 0; }
  std::int64_t target_limit() const override { return 10; }

 private:
  std::vector<Sample> samples_;
};

// Tokens 0..5, targets 1..6, of which the first two have weight 0.
class Sequence : public Dataset {
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
std::unique_ptr<Dataset> Wrapped(Injector& injector) {
  return static_cast<PartWrapper&>(injector).Wrap(std::unique_ptr<Dataset>(new Data()));
}

TEST(ShiftTargets, TakesTargetAndWeightOfAnotherPosition) {
  FaultBench bench;
  const auto ahead = bench.Make("data.shift_targets", {{"by", 1}});
  const auto data = Wrapped<Sequence>(*ahead);
  EXPECT_EQ(data->entropy_floor(), 0.5);
  for (int twice = 0; twice < 2; ++twice) {
    const Sample sample = data->Get(0);
    EXPECT_TRUE(sample.target.equal(at::tensor({2, 3, 4, 5, 6, 0}, at::kLong)));
    EXPECT_TRUE(sample.weight.equal(at::tensor({0.0f, 1.0f, 1.0f, 1.0f, 1.0f, 0.0f})));
  }
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["before"], Json({1, 2, 3, 4}));
  EXPECT_EQ(bench.fired()[0]["after"], Json({2, 3, 4, 5}));
  const auto back = bench.Make("data.shift_targets", {{"by", -1}});
  const Sample sample = Wrapped<Sequence>(*back)->Get(0);
  EXPECT_TRUE(sample.target.narrow(0, 1, 5).equal(sample.input.narrow(0, 1, 5)));
  EXPECT_EQ(sample.weight[0].item<double>(), 0);
}

TEST(ShiftTargets, RefusesFeatures) {
  FaultBench bench;
  const auto shift = bench.Make("data.shift_targets", {{"by", 1}});
  EXPECT_THROW(Wrapped<Labelled>(*shift), std::runtime_error);
}

}  // namespace
}  // namespace trainwreck
