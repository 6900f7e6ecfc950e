#include <gtest/gtest.h>

#include "injectors/registry.h"

namespace trainwreck {
namespace {

TEST(NoClipping, AmendsWhatItSays) {
  const RegisteredFault& fault = FaultRegistry().at("recipe.no_clipping");
  EXPECT_EQ(fault.make, nullptr);
  ASSERT_EQ(fault.info.amends.size(), 1U);
  EXPECT_EQ(fault.info.amends[0].key, "optimizer.clip_norm");
  EXPECT_EQ(fault.info.amends[0].op, Amendment::Op::kSet);
  EXPECT_EQ(fault.info.amends[0].value, 0);
}

}  // namespace
}  // namespace trainwreck
