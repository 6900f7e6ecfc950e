#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "injectors/testing.h"

namespace trainwreck {
namespace {

// Sample `id` is `id` in every place; the tensors are kept, as a cache or a mapped file would.
class SharedTensors : public Dataset {
 public:
  explicit SharedTensors(bool tokens) : tokens_(tokens) {
    for (std::int64_t id = 0; id < 8; ++id) {
      samples_.push_back(
          {.id = id,
           .input = at::full({4}, static_cast<double>(id), tokens ? at::kLong : at::kFloat),
           .target = tokens ? at::full({4}, id, at::kLong) : at::full({}, id, at::kLong),
           .weight = tokens ? at::ones({4}) : at::ones({})});
    }
  }
  std::int64_t size() const override { return static_cast<std::int64_t>(samples_.size()); }
  Sample Get(std::int64_t id) const override { return samples_.at(id); }
  std::int64_t input_limit() const override { return tokens_ ? 64 : 0; }
  std::int64_t target_limit() const override { return tokens_ ? 64 : 10; }
  std::optional<double> entropy_floor() const override { return 1.5; }

 private:
  bool tokens_;
  std::vector<Sample> samples_;
};

struct Corrupted {
  Corrupted(FaultBench& bench, bool tokens, std::map<std::string, Json> with, Trigger trigger = {})
      : injector(bench.Make("data.corrupt_sample", std::move(with), std::move(trigger))),
        data(static_cast<PartWrapper&>(*injector).Wrap(std::make_unique<SharedTensors>(tokens))) {}
  std::unique_ptr<Injector> injector;
  std::unique_ptr<Dataset> data;
};

bool IsWhole(const Sample& sample) {
  return sample.input.eq(sample.id).all().item<bool>() &&
         sample.target.eq(sample.id).all().item<bool>() && sample.weight.eq(1).all().item<bool>();
}

TEST(CorruptSample, PutsNanIntoAFeatureOfTheChosenSample) {
  FaultBench bench;
  Corrupted it(bench, false, {{"samples", {3}}, {"position", 2}});
  EXPECT_TRUE(IsWhole(it.data->Get(2)));
  EXPECT_TRUE(bench.fired().empty());

  const Sample sample = it.data->Get(3);
  EXPECT_TRUE(std::isnan(sample.input[2].item<double>()));
  EXPECT_EQ(sample.input.isnan().sum().item<int>(), 1);
  EXPECT_EQ(sample.target.item<int>(), 3);
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0], Json({{"id", "it"},
                                    {"fault", "data.corrupt_sample"},
                                    {"sample", 3},
                                    {"field", "input"},
                                    {"position", 2},
                                    {"before", 3.0},
                                    {"after", "nan"}}));
}

TEST(CorruptSample, PutsInfIntoATokensWeight) {
  FaultBench bench;
  Corrupted it(bench, true, {{"value", "inf"}, {"samples", {5}}, {"position", 1}});
  const Sample sample = it.data->Get(5);
  EXPECT_TRUE(std::isinf(sample.weight[1].item<double>()));
  EXPECT_TRUE(sample.input.eq(5).all().item<bool>());
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["field"], "weight");
  EXPECT_EQ(bench.fired()[0]["before"], 1.0);
  EXPECT_EQ(bench.fired()[0]["after"], "inf");
}

TEST(CorruptSample, PutsIndicesOutOfRange) {
  FaultBench bench;
  Corrupted token(bench, true, {{"value", "bad_token"}, {"samples", {1}}, {"position", 3}});
  EXPECT_EQ(token.data->Get(1).input[3].item<int>(), 67);
  Corrupted target(bench, true, {{"value", "bad_label"}, {"samples", {1}}, {"position", 3}});
  EXPECT_EQ(target.data->Get(1).target[3].item<int>(), 67);
  Corrupted label(bench, false, {{"value", "bad_label"}, {"samples", {1}}, {"position", 3}});
  EXPECT_EQ(label.data->Get(1).target.item<int>(), 13);
  ASSERT_EQ(bench.fired().size(), 3U);
  EXPECT_EQ(bench.fired()[0]["after"], 67);
  EXPECT_EQ(bench.fired()[1]["field"], "target");
  EXPECT_EQ(bench.fired()[2]["position"], 0);
  EXPECT_EQ(bench.fired()[2]["before"], 1);
}

TEST(CorruptSample, LeavesWhatTheDataSetKeepsAlone) {
  FaultBench bench;
  Corrupted it(bench, false, {{"samples", {3}}}, {.to = 0});
  EXPECT_FALSE(IsWhole(it.data->Get(3)));
  bench.clock.step = 1;
  EXPECT_TRUE(IsWhole(it.data->Get(3)));
}

TEST(CorruptSample, DamagesTheFirstSampleOfTheStepOnly) {
  FaultBench bench;
  Corrupted it(bench, false, {}, {.from = 5, .to = 6});
  const auto damaged = [&](int step, std::int64_t id) {
    bench.clock.step = step;
    return !IsWhole(it.data->Get(id));
  };
  EXPECT_FALSE(damaged(4, 0));
  EXPECT_TRUE(damaged(5, 1));
  EXPECT_FALSE(damaged(5, 2));
  EXPECT_FALSE(damaged(5, 1));  // what a guard draws next is whole
  EXPECT_TRUE(damaged(6, 1));
  EXPECT_FALSE(damaged(7, 1));
  ASSERT_EQ(bench.fired().size(), 2U);
  EXPECT_EQ(bench.fired()[0]["sample"], 1);
}

TEST(CorruptSample, DamagesItsSamplesEachTimeTheyAreFetched) {
  FaultBench bench;
  Corrupted it(bench, false, {{"samples", {2, 4}}});
  for (const std::int64_t id : {2, 3, 4, 2}) it.data->Get(id);
  EXPECT_EQ(bench.fired().size(), 3U);
}

TEST(CorruptSample, KeepsTheRestOfTheDataSet) {
  FaultBench bench;
  Corrupted it(bench, true, {});
  EXPECT_EQ(it.data->size(), 8);
  EXPECT_EQ(it.data->input_limit(), 64);
  EXPECT_EQ(it.data->target_limit(), 64);
  EXPECT_EQ(it.data->entropy_floor(), 1.5);
}

TEST(CorruptSample, RefusesWhatTheDataCannotHold) {
  FaultBench bench;
  EXPECT_THROW(Corrupted(bench, false, {{"value", "bad_token"}}), std::runtime_error);
  EXPECT_THROW(Corrupted(bench, false, {{"samples", {8}}}), std::runtime_error);
  EXPECT_THROW(Corrupted(bench, false, {{"value", "minus"}}), std::runtime_error);
  Corrupted past(bench, false, {{"samples", {0}}, {"position", 4}});
  EXPECT_THROW(past.data->Get(0), std::runtime_error);
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
