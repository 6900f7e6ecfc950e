#include <gtest/gtest.h>

#include "injectors/registry.h"

namespace trainwreck {
namespace {

TEST(EvalInTrainMode, AmendsWhatItSays) {
  const RegisteredFault& fault = FaultRegistry().at("recipe.eval_in_train_mode");
  EXPECT_EQ(fault.make, nullptr);
  ASSERT_EQ(fault.info.amends.size(), 1U);
  EXPECT_EQ(fault.info.amends[0].key, "eval.mode");
  EXPECT_EQ(fault.info.amends[0].op, Amendment::Op::kSet);
  EXPECT_EQ(fault.info.amends[0].value, "train");
}

}  // namespace
}  // namespace trainwreck
