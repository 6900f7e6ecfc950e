#include <gtest/gtest.h>

#include <set>

#include "injectors/data/testing_data.h"
#include "injectors/testing.h"

namespace trainwreck {
namespace {

constexpr std::int64_t kLabels = 100;

// The label of each sample is its id.
class NumberedData : public LabelledData {
 public:
  Sample Get(std::int64_t id) const override {
    Sample sample = LabelledData::Get(id);
    sample.target = at::full({}, id, at::kLong);
    return sample;
  }
  std::int64_t target_limit() const override { return kLabels; }
};

TEST(ShuffleLabels, GivesEverySampleTheTargetOfAnotherOne) {
  FaultBench bench;
  const auto shuffle = bench.Make("data.shuffle_labels");
  const auto data = Wrapped<NumberedData>(*shuffle);
  std::set<std::int64_t> givers;
  std::int64_t id = 0;
  do {  // one circle through all
    const Sample sample = data->Get(id);
    EXPECT_EQ(sample.id, id);
    EXPECT_EQ(sample.input.item<double>(), static_cast<double>(id));
    EXPECT_NE(Label(sample), id);
    EXPECT_TRUE(givers.insert(Label(sample)).second);
    id = Label(sample);
  } while (id != 0);
  EXPECT_EQ(givers.size(), static_cast<std::size_t>(kLabels));
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["samples"], kLabels);
  EXPECT_EQ(bench.fired()[0]["before"], 0);
  EXPECT_EQ(bench.fired()[0]["after"], Label(data->Get(0)));
}

TEST(ShuffleLabels, LeavesTheRestAlone) {
  FaultBench bench;
  const auto shuffle = bench.Make("data.shuffle_labels", {{"share", 0.3}}, {.from = 2});
  const auto data = Wrapped<NumberedData>(*shuffle);
  const auto moved = [&] {
    int count = 0;
    for (std::int64_t id = 0; id < kLabels; ++id) count += Label(data->Get(id)) != id ? 1 : 0;
    return count;
  };
  EXPECT_EQ(moved(), 0) << "before its step";
  bench.clock.step = 2;
  EXPECT_EQ(moved(), 30);
  const auto none = bench.Make("data.shuffle_labels", {{"share", 0.01}});
  EXPECT_EQ(Label(Wrapped<NumberedData>(*none)->Get(1)), 1) << "a circle of one";
}

}  // namespace
}  // namespace trainwreck
