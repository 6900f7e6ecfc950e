#include <gtest/gtest.h>

#include "injectors/registry.h"

namespace trainwreck {
namespace {

TEST(HighWeightDecay, AmendsWhatItSays) {
  const RegisteredFault& fault = FaultRegistry().at("recipe.high_weight_decay");
  EXPECT_EQ(fault.make, nullptr);
  ASSERT_EQ(fault.info.amends.size(), 1U);
  EXPECT_EQ(fault.info.amends[0].key, "optimizer.weight_decay");
  EXPECT_EQ(fault.info.amends[0].op, Amendment::Op::kSet);
  EXPECT_EQ(fault.info.amends[0].param, "value");
}

TEST(HighWeightDecay, TakesOnlyWhatMakesItWorse) {
  const auto& params = FaultRegistry().at("recipe.high_weight_decay").info.params;
  EXPECT_EQ(CheckValue(params.at(0), params.at(0).default_value), "");
  EXPECT_NE(CheckValue(params.at(0), -0.5), "");
}

}  // namespace
}  // namespace trainwreck
