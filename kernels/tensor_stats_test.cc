#include "kernels/tensor_stats.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace trainwreck::kernels {
namespace {

TEST(TensorStats, CountsAndSums) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {3, -4, 0, -0.0f, infinity, std::nanf("")};
  const TensorStats stats = ComputeTensorStats(TensorView{values.data(), 6, DType::kFloat32});
  EXPECT_EQ(stats.count, 6);
  EXPECT_EQ(stats.nonfinite, 2);
  EXPECT_EQ(stats.nan, 1);
  EXPECT_EQ(stats.zeros, 2);
  EXPECT_EQ(stats.max_abs, 4);
  EXPECT_EQ(stats.sum, -1);
  EXPECT_EQ(stats.norm(), 5);
  EXPECT_TRUE(std::isnan(stats.ieee_norm()));
}

}  // namespace
}  // namespace trainwreck::kernels
