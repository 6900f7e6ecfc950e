#include <gtest/gtest.h>

#include "injectors/registry.h"

namespace trainwreck {
namespace {

TEST(SaturatingActivation, AmendsWhatItSays) {
  const RegisteredFault& fault = FaultRegistry().at("recipe.saturating_activation");
  EXPECT_EQ(fault.make, nullptr);
  ASSERT_EQ(fault.info.amends.size(), 1U);
  EXPECT_EQ(fault.info.amends[0].key, "model.activation");
  EXPECT_EQ(fault.info.amends[0].op, Amendment::Op::kSet);
  EXPECT_EQ(fault.info.amends[0].param, "kind");
}

TEST(SaturatingActivation, TakesOnlyWhatMakesItWorse) {
  const auto& params = FaultRegistry().at("recipe.saturating_activation").info.params;
  EXPECT_EQ(CheckValue(params.at(0), params.at(0).default_value), "");
  EXPECT_NE(CheckValue(params.at(0), "other"), "");
}

}  // namespace
}  // namespace trainwreck
