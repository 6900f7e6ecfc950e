#include <gtest/gtest.h>

#include "injectors/registry.h"

namespace trainwreck {
namespace {

TEST(BadInit, AmendsWhatItSays) {
  const RegisteredFault& fault = FaultRegistry().at("recipe.bad_init");
  EXPECT_EQ(fault.make, nullptr);
  ASSERT_EQ(fault.info.amends.size(), 2U);
  EXPECT_EQ(fault.info.amends[0].key, "model.init");
  EXPECT_EQ(fault.info.amends[0].op, Amendment::Op::kSet);
  EXPECT_EQ(fault.info.amends[0].param, "kind");
  EXPECT_EQ(fault.info.amends[1].key, "model.init_std");
  EXPECT_EQ(fault.info.amends[1].op, Amendment::Op::kSet);
  EXPECT_EQ(fault.info.amends[1].param, "std");
}

TEST(BadInit, TakesOnlyWhatMakesItWorse) {
  const auto& params = FaultRegistry().at("recipe.bad_init").info.params;
  EXPECT_EQ(CheckValue(params.at(0), params.at(0).default_value), "");
  EXPECT_NE(CheckValue(params.at(0), "other"), "");
  EXPECT_EQ(CheckValue(params.at(1), 1e20), "");
  EXPECT_NE(CheckValue(params.at(1), -0.5), "");
}

}  // namespace
}  // namespace trainwreck
