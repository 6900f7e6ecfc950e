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

TEST(TrainOnHeldOut, EditsTokensOfInputsAndOfTheTargetsBeforeThem) {
  FaultBench bench;
  const auto leak = bench.Make("data.train_on_held_out", {{"share", 1}, {"edits", 0.5}});
  const SequenceData held_out;
  const auto data =
      static_cast<PartWrapper&>(*leak).Wrap(std::make_unique<SequenceData>(), held_out);
  const Sample sample = data->Get(0), before = held_out.Get(0);
  for (std::int64_t at = 0; at < 6; ++at) {
    const bool is_edited = at == 1 || at == 3 || at == 5;
    EXPECT_EQ(sample.input[at].item<std::int64_t>() != at, is_edited) << at;
    if (at > 0) {
      EXPECT_EQ(sample.target[at - 1].item<std::int64_t>(), sample.input[at].item<std::int64_t>());
    }
    EXPECT_LT(sample.input[at].item<std::int64_t>(), data->input_limit());
  }
  EXPECT_EQ(before.input[1].item<std::int64_t>(), 1) << "held-out data stay as they were";
}

TEST(TrainOnHeldOut, RefusesEditsOfFeatures) {
  FaultBench bench;
  const auto leak = bench.Make("data.train_on_held_out", {{"edits", 0.5}});
  const LabelledData held_out;
  EXPECT_THROW(static_cast<PartWrapper&>(*leak).Wrap(std::make_unique<LabelledData>(), held_out),
               std::runtime_error);
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
