#include <gtest/gtest.h>

#include "injectors/registry.h"

namespace trainwreck {
namespace {

TEST(MaskHidesItself, AmendsWhatItSays) {
  const RegisteredFault& fault = FaultRegistry().at("recipe.mask_hides_itself");
  EXPECT_EQ(fault.make, nullptr);
  ASSERT_EQ(fault.info.amends.size(), 1U);
  EXPECT_EQ(fault.info.amends[0].key, "model.mask_shift");
  EXPECT_EQ(fault.info.amends[0].op, Amendment::Op::kSet);
  EXPECT_EQ(fault.info.amends[0].value, -1);
}

}  // namespace
}  // namespace trainwreck
