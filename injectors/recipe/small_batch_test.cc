#include <gtest/gtest.h>

#include "injectors/registry.h"

namespace trainwreck {
namespace {

TEST(SmallBatch, AmendsWhatItSays) {
  const RegisteredFault& fault = FaultRegistry().at("recipe.small_batch");
  EXPECT_EQ(fault.make, nullptr);
  ASSERT_EQ(fault.info.amends.size(), 1U);
  EXPECT_EQ(fault.info.amends[0].key, "data.batch_size");
  EXPECT_EQ(fault.info.amends[0].op, Amendment::Op::kSet);
  EXPECT_EQ(fault.info.amends[0].param, "size");
  EXPECT_NE(CheckValue(fault.info.params.at(0), 0), "");
}

}  // namespace
}  // namespace trainwreck
