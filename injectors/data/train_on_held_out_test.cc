#include <gtest/gtest.h>

#include "injectors/data/testing_data.h"
#include "injectors/testing.h"

namespace trainwreck {
namespace {

TEST(TrainOnHeldOut, SpreadsHeldOutSamplesEvenly) {
  FaultBench bench;
  const auto leak = bench.Make("data.train_on_held_out", {{"share", 0.25}});
  const TokenData held_out;  // sample k is all k
  const auto data =
      static_cast<PartWrapper&>(*leak).Wrap(std::make_unique<LabelledData>(), held_out);
  const auto first_input = [&](std::int64_t id) {
    const Sample sample = data->Get(id);
    EXPECT_EQ(sample.id, id);
    return sample.input[0].item<double>();
  };
  EXPECT_EQ(first_input(2), 2);
  EXPECT_TRUE(bench.fired().empty());
  EXPECT_EQ(data->Get(3).input.numel(), 3);
  EXPECT_EQ(first_input(3), 0);
  EXPECT_EQ(first_input(4), 4);
  EXPECT_EQ(first_input(7), 1);
  EXPECT_EQ(first_input(19), 0) << "after the fourth and last, the first";
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["sample"], 3);
  EXPECT_EQ(bench.fired()[0]["after"], 0);
}

TEST(TrainOnHeldOut, LeavesTheDataWithShareZero) {
  FaultBench bench;
  const auto leak = bench.Make("data.train_on_held_out", {{"share", 0}});
  const TokenData held_out;
  const auto data =
      static_cast<PartWrapper&>(*leak).Wrap(std::make_unique<LabelledData>(), held_out);
  for (std::int64_t id = 0; id < 100; ++id) EXPECT_EQ(Label(data->Get(id)), id % 10);
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
