#include <gtest/gtest.h>

#include "injectors/registry.h"

namespace trainwreck {
namespace {

TEST(HighLogitScale, AmendsWhatItSays) {
  const RegisteredFault& fault = FaultRegistry().at("recipe.high_logit_scale");
  EXPECT_EQ(fault.make, nullptr);
  ASSERT_EQ(fault.info.amends.size(), 1U);
  EXPECT_EQ(fault.info.amends[0].key, "model.logit_scale");
  EXPECT_EQ(fault.info.amends[0].op, Amendment::Op::kScale);
  EXPECT_EQ(fault.info.amends[0].param, "factor");
}

TEST(HighLogitScale, TakesOnlyWhatMakesItWorse) {
  const auto& params = FaultRegistry().at("recipe.high_logit_scale").info.params;
  EXPECT_EQ(CheckValue(params.at(0), params.at(0).default_value), "");
  EXPECT_NE(CheckValue(params.at(0), 0.5), "");
}

}  // namespace
}  // namespace trainwreck
