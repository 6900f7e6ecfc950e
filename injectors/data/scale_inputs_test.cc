#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "injectors/testing.h"

namespace trainwreck {
namespace {

// Each feature of sample `id` is `id`; the tensors are kept, as a cache would.
class CachedData : public Dataset {
 public:
  explicit CachedData(std::int64_t tokens) : tokens_(tokens) {
    for (std::int64_t id = 0; id < 4; ++id) {
      samples_.push_back({.id = id,
                          .input = at::full({3}, static_cast<double>(id), at::kFloat),
                          .target = at::full({}, id, at::kLong),
                          .weight = at::ones({})});
    }
  }
  std::int64_t size() const override { return 4; }
  Sample Get(std::int64_t id) const override { return samples_.at(id); }
  std::int64_t input_limit() const override { return tokens_; }
  std::int64_t target_limit() const override { return 10; }
  std::optional<double> entropy_floor() const override { return 1.5; }

 private:
  std::int64_t tokens_;
  std::vector<Sample> samples_;
};

TEST(ScaleInputs, ScalesEverySampleAndSaysSoOnce) {
  FaultBench bench;
  const auto scale = bench.Make("data.scale_inputs", {{"factor", -50}});
  const auto data = static_cast<PartWrapper&>(*scale).Wrap(std::make_unique<CachedData>(0));
  EXPECT_EQ(data->size(), 4);
  EXPECT_EQ(data->target_limit(), 10);
  EXPECT_EQ(data->entropy_floor(), 1.5);
  for (const std::int64_t id : {2, 3, 2}) {
    const Sample sample = data->Get(id);
    EXPECT_TRUE(sample.input.eq(-50.0 * static_cast<double>(id)).all().item<bool>());
    EXPECT_EQ(sample.target.item<std::int64_t>(), id);
  }
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0], Json({{"id", "it"},
                                    {"fault", "data.scale_inputs"},
                                    {"sample", 2},
                                    {"before", 2.0},
                                    {"after", 100.0}}));
}

TEST(ScaleInputs, ActsAtTheStepsOfItsTrigger) {
  FaultBench bench;
  const auto scale = bench.Make("data.scale_inputs", {{"factor", 4}}, {.from = 5});
  const auto data = static_cast<PartWrapper&>(*scale).Wrap(std::make_unique<CachedData>(0));
  bench.clock.step = 4;
  EXPECT_TRUE(data->Get(1).input.eq(1).all().item<bool>());
  EXPECT_TRUE(bench.fired().empty());
  bench.clock.step = 5;
  EXPECT_TRUE(data->Get(1).input.eq(4).all().item<bool>());
}

TEST(ScaleInputs, AddsAnOffsetToTheChosenSamples) {
  FaultBench bench;
  const auto shift =
      bench.Make("data.scale_inputs", {{"factor", 2}, {"offset", 10}, {"samples", {3}}});
  const auto data = static_cast<PartWrapper&>(*shift).Wrap(std::make_unique<CachedData>(0));
  EXPECT_TRUE(data->Get(2).input.eq(2).all().item<bool>());
  EXPECT_TRUE(bench.fired().empty());
  EXPECT_TRUE(data->Get(3).input.eq(16).all().item<bool>());
  EXPECT_EQ(bench.fired().at(0)["sample"], 3);
}

TEST(ScaleInputs, RefusesTokens) {
  FaultBench bench;
  const auto scale = bench.Make("data.scale_inputs", {{"factor", 4}});
  EXPECT_THROW(static_cast<PartWrapper&>(*scale).Wrap(std::make_unique<CachedData>(64)),
               std::runtime_error);
}

}  // namespace
}  // namespace trainwreck
