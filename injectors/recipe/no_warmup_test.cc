#include <gtest/gtest.h>

#include "injectors/registry.h"

namespace trainwreck {
namespace {

TEST(NoWarmup, SetsTheWarmupToZeroSteps) {
  const RegisteredFault& fault = FaultRegistry().at("recipe.no_warmup");
  EXPECT_EQ(fault.make, nullptr);
  EXPECT_TRUE(fault.info.params.empty());
  ASSERT_EQ(fault.info.amends.size(), 1U);
  const Amendment& amendment = fault.info.amends[0];
  EXPECT_EQ(amendment.key, "schedule.warmup_steps");
  EXPECT_EQ(amendment.op, Amendment::Op::kSet);
  EXPECT_TRUE(amendment.param.empty());
  EXPECT_EQ(amendment.value, 0);
}

}  // namespace
}  // namespace trainwreck
