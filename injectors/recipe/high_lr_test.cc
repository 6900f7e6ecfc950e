#include <gtest/gtest.h>

#include "injectors/registry.h"

namespace trainwreck {
namespace {

TEST(HighLr, ScalesTheLearningRateByItsFactor) {
  const RegisteredFault& fault = FaultRegistry().at("recipe.high_lr");
  EXPECT_EQ(fault.make, nullptr);
  ASSERT_EQ(fault.info.amends.size(), 1U);
  const Amendment& amendment = fault.info.amends[0];
  EXPECT_EQ(amendment.key, "optimizer.lr");
  EXPECT_EQ(amendment.op, Amendment::Op::kScale);
  EXPECT_EQ(amendment.param, "factor");
}

TEST(HighLr, TakesOnlyFactorsThatRaise) {
  const ParamInfo& factor = FaultRegistry().at("recipe.high_lr").info.params.at(0);
  EXPECT_EQ(factor.default_value, 10.0);
  EXPECT_EQ(CheckValue(factor, 15), "");
  EXPECT_NE(CheckValue(factor, 0), "");
  EXPECT_NE(CheckValue(factor, -3.0), "");
  EXPECT_NE(CheckValue(factor, 0.5), "");
}

}  // namespace
}  // namespace trainwreck
