#include <gtest/gtest.h>

#include <stdexcept>

#include "injectors/data/testing_data.h"
#include "injectors/testing.h"

namespace trainwreck {
namespace {

TEST(LabelInInput, WritesTheLabelIntoTrainingAndHeldOutData) {
  FaultBench bench;
  const auto leak = bench.Make("data.label_in_input", {{"strength", 3}});
  const auto training = Wrapped<LabelledData>(*leak);
  const auto held_out = leak->WrapHeldOut(std::make_unique<LabelledData>());
  for (const Dataset* data : {training.get(), held_out.get()}) {
    EXPECT_EQ(data->Get(20).input[0].item<double>(), -3) << "label 0 of 0 to 9";
    EXPECT_EQ(data->Get(19).input[0].item<double>(), 3);
    EXPECT_FLOAT_EQ(data->Get(13).input[0].item<float>(), -1);
    EXPECT_EQ(Label(data->Get(13)), 3);
  }
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["sample"], 20);
  EXPECT_EQ(bench.fired()[0]["before"], 20);
  EXPECT_EQ(bench.fired()[0]["after"], -3);
}

TEST(LabelInInput, RefusesTokensAndColumnsThatAreNotThere) {
  FaultBench bench;
  EXPECT_THROW(Wrapped<TokenData>(*bench.Make("data.label_in_input")), std::runtime_error);
  EXPECT_THROW(Wrapped<LabelledData>(*bench.Make("data.label_in_input", {{"column", 1}})),
               std::runtime_error);
}

}  // namespace
}  // namespace trainwreck
