#include "harness/launch/core_use.h"

#include <gtest/gtest.h>

namespace trainwreck {
namespace {

TEST(CoreUseTest, NeedsWhatItMayUseUntilItIsKnown) {
  CoreUse use;
  EXPECT_EQ(use.cores(1.5), 1.5);
  use.Sample(0.1, 0.0);
  EXPECT_EQ(use.cores(1.5), 1.5);
  use.Sample(0.3, 0.1);
  EXPECT_DOUBLE_EQ(use.cores(1.5), 0.5);
  use.Sample(0.4, std::nullopt);
  EXPECT_EQ(use.cores(1.5), 1.5);
}

TEST(CoreUseTest, RisesAtOnceAndFallsByHalf) {
  CoreUse use;
  use.Sample(1, 0.0);
  use.Sample(2, 0.8);
  use.Sample(3, 0.8);
  EXPECT_DOUBLE_EQ(use.cores(1), 0.4);
  use.Sample(4, 0.8);
  EXPECT_DOUBLE_EQ(use.cores(1), 0.2);
  use.Sample(5, 1.7);
  EXPECT_DOUBLE_EQ(use.cores(1), 0.9);
}

TEST(CoreUseTest, NeedsNoMoreThanItMayUse) {
  CoreUse use;
  use.Sample(1, 0.0);
  use.Sample(2, 3.0);  // its threads wait for cores
  EXPECT_EQ(use.cores(1), 1);
}

TEST(CoreUseTest, AnEndedProcessTakesNothingBack) {
  CoreUse use;
  use.Sample(1, 5.0);
  use.Sample(2, 6.5);
  use.Sample(3, 2.0);  // its time is no longer in the sum
  EXPECT_DOUBLE_EQ(use.cores(2), 1.5);
  use.Sample(4, 2.5);
  EXPECT_DOUBLE_EQ(use.cores(2), 0.75);
}

TEST(CoreUseTest, ABeginForgets) {
  CoreUse use;
  use.Sample(1, 0.0);
  use.Sample(2, 0.0);
  EXPECT_EQ(use.cores(1), 0);
  use.Begin();
  EXPECT_EQ(use.cores(1), 1);
}

TEST(CoreUseTest, ManyProcessesAreSampledLessOften) {
  CoreUse use;
  use.Sample(10, 0.0);
  EXPECT_FALSE(use.IsDue(10.05, 1));
  EXPECT_TRUE(use.IsDue(10.11, 1));
  EXPECT_FALSE(use.IsDue(11, 512));
  EXPECT_TRUE(use.IsDue(12.6, 512));
}

}  // namespace
}  // namespace trainwreck
