#include <gtest/gtest.h>

#include "injectors/registry.h"

namespace trainwreck {
namespace {

TEST(SoftmaxOverPositions, AmendsWhatItSays) {
  const RegisteredFault& fault = FaultRegistry().at("recipe.softmax_over_positions");
  EXPECT_EQ(fault.make, nullptr);
  ASSERT_EQ(fault.info.amends.size(), 1U);
  EXPECT_EQ(fault.info.amends[0].key, "loss.softmax_over");
  EXPECT_EQ(fault.info.amends[0].op, Amendment::Op::kSet);
  EXPECT_EQ(fault.info.amends[0].value, "positions");
}

}  // namespace
}  // namespace trainwreck
