#include <gtest/gtest.h>

#include "injectors/registry.h"

namespace trainwreck {
namespace {

TEST(MemoryBudget, SetsTheLimitToItsBytes) {
  const RegisteredFault& fault = FaultRegistry().at("memory.budget");
  EXPECT_EQ(fault.make, nullptr);
  ASSERT_EQ(fault.info.amends.size(), 1U);
  EXPECT_EQ(fault.info.amends[0].key, "memory.limit_bytes");
  EXPECT_EQ(fault.info.amends[0].op, Amendment::Op::kSet);
  EXPECT_EQ(fault.info.amends[0].param, "bytes");
}

TEST(MemoryBudget, MustBeGivenWholeBytes) {
  const ParamInfo& bytes = FaultRegistry().at("memory.budget").info.params.at(0);
  EXPECT_TRUE(bytes.default_value.is_null());
  EXPECT_EQ(CheckValue(bytes, 1 << 20), "");
  EXPECT_NE(CheckValue(bytes, 0), "") << "0 would be no limit at all";
  EXPECT_NE(CheckValue(bytes, 0.5), "");
}

}  // namespace
}  // namespace trainwreck
