#include <gtest/gtest.h>

#include "injectors/registry.h"

namespace trainwreck {
namespace {

TEST(NoLossScaling, AmendsWhatItSays) {
  const RegisteredFault& fault = FaultRegistry().at("recipe.no_loss_scaling");
  EXPECT_EQ(fault.make, nullptr);
  ASSERT_EQ(fault.info.amends.size(), 1U);
  EXPECT_EQ(fault.info.amends[0].key, "scaler.kind");
  EXPECT_EQ(fault.info.amends[0].op, Amendment::Op::kSet);
  EXPECT_EQ(fault.info.amends[0].value, "none");
}

}  // namespace
}  // namespace trainwreck
