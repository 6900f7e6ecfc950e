#include <gtest/gtest.h>

#include "injectors/registry.h"

namespace trainwreck {
namespace {

TEST(StretchedPositions, AmendsWhatItSays) {
  const RegisteredFault& fault = FaultRegistry().at("recipe.stretched_positions");
  EXPECT_EQ(fault.make, nullptr);
  ASSERT_EQ(fault.info.amends.size(), 1U);
  EXPECT_EQ(fault.info.amends[0].key, "model.rotary_scale");
  EXPECT_EQ(fault.info.amends[0].op, Amendment::Op::kScale);
  EXPECT_EQ(fault.info.amends[0].param, "factor");
  EXPECT_NE(CheckValue(fault.info.params.at(0), 1.5), "");
}

}  // namespace
}  // namespace trainwreck
