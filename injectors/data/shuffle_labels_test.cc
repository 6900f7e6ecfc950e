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

template <typename Data>
std::unique_ptr<Dataset> Wrapped(Injector& injector) {
  return static_cast<PartWrapper&>(injector).Wrap(std::unique_ptr<Dataset>(new Data()));
}

std::int64_t Label(const Sample& sample) { return sample.target.item<std::int64_t>(); }

TEST(ShuffleLabels, GivesEverySampleTheTargetOfAnotherOne) {
  FaultBench bench;
  const auto shuffle = bench.Make("data.shuffle_labels");
  const auto data = Wrapped<Labelled>(*shuffle);
  std::set<std::int64_t> givers;
  std::int64_t id = 0;
  do {  // one circle through all
    const Sample sample = data->Get(id);
    EXPECT_EQ(sample.id, id);
    EXPECT_EQ(sample.input.item<double>(), static_cast<double>(id));
    ASSERT_TRUE(sample.target_id.has_value());
    EXPECT_NE(*sample.target_id, id);
    EXPECT_EQ(Label(sample), *sample.target_id % 10);
    EXPECT_TRUE(givers.insert(*sample.target_id).second);
    id = *sample.target_id;
  } while (id != 0);
  EXPECT_EQ(givers.size(), static_cast<std::size_t>(kSamples));
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["samples"], kSamples);
  EXPECT_EQ(bench.fired()[0]["before"], 0);
  EXPECT_EQ(bench.fired()[0]["after"], *data->Get(0).target_id);
}

TEST(ShuffleLabels, LeavesTheRestAlone) {
  FaultBench bench;
  const auto shuffle = bench.Make("data.shuffle_labels", {{"share", 0.3}}, {.from = 2});
  const auto data = Wrapped<Labelled>(*shuffle);
  const auto moved = [&] {
    int count = 0;
    for (std::int64_t id = 0; id < kSamples; ++id) count += data->Get(id).target_id ? 1 : 0;
    return count;
  };
  EXPECT_EQ(moved(), 0) << "before its step";
  bench.clock.step = 2;
  EXPECT_EQ(moved(), 30);
  const auto none = bench.Make("data.shuffle_labels", {{"share", 0.01}});
  EXPECT_FALSE(Wrapped<Labelled>(*none)->Get(1).target_id) << "a circle of one";
}

}  // namespace
}  // namespace trainwreck
