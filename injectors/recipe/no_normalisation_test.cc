#include <gtest/gtest.h>

#include "injectors/registry.h"

namespace trainwreck {
namespace {

TEST(NoNormalisation, AmendsWhatItSays) {
  const RegisteredFault& fault = FaultRegistry().at("recipe.no_normalisation");
  EXPECT_EQ(fault.make, nullptr);
  ASSERT_EQ(fault.info.amends.size(), 1U);
  EXPECT_EQ(fault.info.amends[0].key, "model.layer_norm");
  EXPECT_EQ(fault.info.amends[0].op, Amendment::Op::kSet);
  EXPECT_EQ(fault.info.amends[0].value, false);
}

}  // namespace
}  // namespace trainwreck
