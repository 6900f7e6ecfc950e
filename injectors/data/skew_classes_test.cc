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

std::int64_t Label(const Sample& sample) { return sample.target.item<std::int64_t>(); }

TEST(SkewClasses, GivesTheMajorityItsShare) {
  FaultBench bench;
  const auto skew = bench.Make("data.skew_classes", {{"majority", 3}, {"share", 0.8}});
  const auto data = Wrapped<Labelled>(*skew);
  int most = 0;
  std::set<std::int64_t> others;
  for (std::int64_t id = 0; id < kSamples; ++id) {
    const Sample sample = data->Get(id);
    EXPECT_EQ(sample.id, id);
    EXPECT_EQ(Label(sample), sample.input.item<std::int64_t>() % 10) << "input and label stay one";
    if (Label(sample) == 3) {
      ++most;
    } else {
      others.insert(Label(sample));
    }
  }
  EXPECT_NEAR(most, 80, 15);
  EXPECT_GT(others.size(), 4U);
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["before"], 0.1);
  EXPECT_EQ(bench.fired()[0]["after"], most / 100.0);
}

TEST(SkewClasses, RefusesTokensAndLabelsThatDoNotOccur) {
  FaultBench bench;
  const auto skew = bench.Make("data.skew_classes", {{"majority", 10}});
  EXPECT_THROW(Wrapped<Labelled>(*skew), std::runtime_error);
  const auto plain = bench.Make("data.skew_classes");
  EXPECT_THROW(Wrapped<Sequence>(*plain), std::runtime_error);
}

}  // namespace
}  // namespace trainwreck
