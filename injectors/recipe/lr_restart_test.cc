#include <gtest/gtest.h>

#include "injectors/registry.h"

namespace trainwreck {
namespace {

TEST(LrRestart, AmendsWhatItSays) {
  const RegisteredFault& fault = FaultRegistry().at("recipe.lr_restart");
  EXPECT_EQ(fault.make, nullptr);
  ASSERT_EQ(fault.info.amends.size(), 2U);
  EXPECT_EQ(fault.info.amends[0].key, "schedule.restart_step");
  EXPECT_EQ(fault.info.amends[0].param, "step");
  EXPECT_EQ(fault.info.amends[1].key, "schedule.restart_ratio");
  EXPECT_EQ(fault.info.amends[1].param, "ratio");
  for (const Amendment& amendment : fault.info.amends) {
    EXPECT_EQ(amendment.op, Amendment::Op::kSet);
  }
}

}  // namespace
}  // namespace trainwreck
