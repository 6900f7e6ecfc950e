#include <gtest/gtest.h>

#include "injectors/registry.h"

namespace trainwreck {
namespace {

TEST(LowPrecisionState, AmendsWhatItSays) {
  const RegisteredFault& fault = FaultRegistry().at("recipe.low_precision_state");
  EXPECT_EQ(fault.make, nullptr);
  ASSERT_EQ(fault.info.amends.size(), 1U);
  EXPECT_EQ(fault.info.amends[0].key, "optimizer.state_dtype");
  EXPECT_EQ(fault.info.amends[0].op, Amendment::Op::kSet);
  EXPECT_EQ(fault.info.amends[0].param, "dtype");
}

TEST(LowPrecisionState, TakesOnlyLessThanFp32) {
  const auto& params = FaultRegistry().at("recipe.low_precision_state").info.params;
  EXPECT_EQ(CheckValue(params.at(0), "bf16"), "");
  EXPECT_NE(CheckValue(params.at(0), "fp32"), "");
}

}  // namespace
}  // namespace trainwreck
