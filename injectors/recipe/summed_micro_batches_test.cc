#include <gtest/gtest.h>

#include "injectors/registry.h"

namespace trainwreck {
namespace {

TEST(SummedMicroBatches, AmendsWhatItSays) {
  const RegisteredFault& fault = FaultRegistry().at("recipe.summed_micro_batches");
  EXPECT_EQ(fault.make, nullptr);
  ASSERT_EQ(fault.info.amends.size(), 1U);
  EXPECT_EQ(fault.info.amends[0].key, "loss.accumulated");
  EXPECT_EQ(fault.info.amends[0].op, Amendment::Op::kSet);
  EXPECT_EQ(fault.info.amends[0].value, "sum");
}

}  // namespace
}  // namespace trainwreck
