#include <gtest/gtest.h>

#include "injectors/registry.h"

namespace trainwreck {
namespace {

TEST(WrongReduction, AmendsWhatItSays) {
  const RegisteredFault& fault = FaultRegistry().at("recipe.wrong_reduction");
  EXPECT_EQ(fault.make, nullptr);
  ASSERT_EQ(fault.info.amends.size(), 1U);
  EXPECT_EQ(fault.info.amends[0].key, "loss.reduction");
  EXPECT_EQ(fault.info.amends[0].op, Amendment::Op::kSet);
  EXPECT_EQ(fault.info.amends[0].param, "kind");
}

TEST(WrongReduction, TakesOnlyWhatIsWrong) {
  const auto& params = FaultRegistry().at("recipe.wrong_reduction").info.params;
  EXPECT_EQ(CheckValue(params.at(0), params.at(0).default_value), "");
  EXPECT_NE(CheckValue(params.at(0), "mean"), "");
}

}  // namespace
}  // namespace trainwreck
