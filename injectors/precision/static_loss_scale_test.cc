#include <gtest/gtest.h>

#include "injectors/registry.h"

namespace trainwreck {
namespace {

TEST(StaticLossScale, FixesTheScalersKindAndScale) {
  const RegisteredFault& fault = FaultRegistry().at("precision.static_loss_scale");
  EXPECT_EQ(fault.make, nullptr);
  ASSERT_EQ(fault.info.amends.size(), 2U);
  EXPECT_EQ(fault.info.amends[0].key, "scaler.kind");
  EXPECT_EQ(fault.info.amends[0].value, "static");
  EXPECT_EQ(fault.info.amends[1].key, "scaler.init_scale");
  EXPECT_EQ(fault.info.amends[1].param, "scale");
  for (const Amendment& amendment : fault.info.amends) {
    EXPECT_EQ(amendment.op, Amendment::Op::kSet);
  }
}

TEST(StaticLossScale, TakesOnlyScalesThatAFloatHolds) {
  const ParamInfo& scale = FaultRegistry().at("precision.static_loss_scale").info.params.at(0);
  EXPECT_EQ(CheckValue(scale, scale.default_value), "");
  EXPECT_EQ(CheckValue(scale, 65536), "");
  EXPECT_NE(CheckValue(scale, 0.5), "");
  EXPECT_NE(CheckValue(scale, 1e39), "");
}

}  // namespace
}  // namespace trainwreck
