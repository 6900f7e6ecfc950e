#include "kernels/tensor_stats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/backends.h"
#include "kernels/kernel_testing.h"
#include "kernels/versions.h"

namespace trainwreck::kernels {
namespace {

// Around every boundary of the order of the sums: rows, strips, chunks, slots.
const std::int64_t kSizes[] = {0,    1,    2,    15,   16,   17,   31,    100,          1023,
                               1024, 1025, 2047, 8191, 8192, 8193, 16385, 5 * 8192 + 3, 100003};

bool SameBits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

void ExpectSame(const TensorStats& actual, const TensorStats& expected) {
  EXPECT_EQ(actual.count, expected.count);
  EXPECT_EQ(actual.nonfinite, expected.nonfinite);
  EXPECT_EQ(actual.nan, expected.nan);
  EXPECT_EQ(actual.zeros, expected.zeros);
  EXPECT_EQ(actual.max_abs, expected.max_abs);
  EXPECT_TRUE(SameBits(actual.sum, expected.sum)) << actual.sum << " != " << expected.sum;
  EXPECT_TRUE(SameBits(actual.sum_squares, expected.sum_squares))
      << actual.sum_squares << " != " << expected.sum_squares;
}

// The bound of a sum of n terms by pieces of at most 64 in a row: a few hundred roundings.
void ExpectNear(const TensorStats& actual, const TensorStats& oracle) {
  EXPECT_EQ(actual.count, oracle.count);
  EXPECT_EQ(actual.nonfinite, oracle.nonfinite);
  EXPECT_EQ(actual.nan, oracle.nan);
  EXPECT_EQ(actual.zeros, oracle.zeros);
  EXPECT_EQ(actual.max_abs, oracle.max_abs);
  EXPECT_LE(std::fabs(actual.sum_squares - oracle.sum_squares), 1e-13 * oracle.sum_squares);
  const double largest_sum = oracle.max_abs * static_cast<double>(oracle.finite());
  EXPECT_LE(std::fabs(actual.sum - oracle.sum), 1e-13 * largest_sum);
}

// The order of tensor_stats.h written down once more, plainly.
TensorStats AsDefined(const TestTensor& tensor) {
  TensorStats stats = StatsOracle(tensor.view());
  const auto by_halves = [](std::vector<double> values) {
    for (std::size_t half = values.size() / 2; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) values[i] += values[i + half];
    }
    return values[0];
  };
  const auto total = [&](auto term) {
    std::vector<double> slots(256);
    for (std::int64_t chunk = 0; chunk * 8192 < tensor.count(); ++chunk) {
      std::vector<double> strips(8);
      for (std::int64_t strip = 0; strip < 8; ++strip) {
        std::vector<double> lanes(16);
        for (std::int64_t i = 0; i < 1024; ++i) {
          const std::int64_t index = chunk * 8192 + strip * 1024 + i;
          const double x = index < tensor.count() ? tensor.at(index) : 0;
          if (std::isfinite(x)) lanes[i % 16] += term(x);
        }
        strips[strip] = by_halves(lanes);
      }
      slots[chunk % 256] += by_halves(strips);
    }
    return by_halves(slots);
  };
  stats.sum = total([](double x) { return x; });
  stats.sum_squares = total([](double x) { return x * x; });
  return stats;
}

class TensorStatsOn : public testing::TestWithParam<Backend> {
 protected:
  TensorStats Of(const TestTensor& tensor) const {
    const TensorView view = tensor.view();
    return GetParam().stats(std::span(&view, 1)).at(0);
  }
};
INSTANTIATE_TEST_SUITE_P(All, TensorStatsOn, testing::ValuesIn(Backends()),
                         BackendName<testing::TestParamInfo<Backend>>);

TEST_P(TensorStatsOn, AgreesWithTheOracleAtAllSizesTypesAndAddresses) {
  SKIP_IF_UNUSABLE(GetParam());
  for (DType dtype : kFloatTypes) {
    for (std::int64_t size : kSizes) {
      for (std::int64_t misaligned : {0, 1, 4, 8, 36}) {
        if (!GetParam().any_alignment && misaligned % ItemBytes(dtype) != 0) continue;
        SCOPED_TRACE(DTypeName(dtype) + ", " + std::to_string(size) + " elements, " +
                     std::to_string(misaligned) + " bytes off");
        TestTensor tensor(dtype, size, misaligned);
        tensor.FillNormal(static_cast<std::uint64_t>(size));
        ExpectNear(Of(tensor), StatsOracle(tensor.view()));
        tensor.FillBits(static_cast<std::uint64_t>(size) + 1);
        ExpectNear(Of(tensor), StatsOracle(tensor.view()));
        if (HasFailure()) return;
      }
    }
  }
}

TEST_P(TensorStatsOn, HasTheBitsOfTheDefinedOrder) {
  SKIP_IF_UNUSABLE(GetParam());
  for (DType dtype : kFloatTypes) {
    // The last one has more chunks than there are slots.
    for (std::int64_t size : {1, 17, 1000, 1025, 8192, 30001, 257 * 8192 + 1037}) {
      SCOPED_TRACE(DTypeName(dtype) + ", " + std::to_string(size) + " elements");
      TestTensor tensor(dtype, size);
      tensor.FillNormal(3);
      ExpectSame(Of(tensor), AsDefined(tensor));
    }
    TestTensor wild(dtype, 20000);
    wild.FillBits(4);
    ExpectSame(Of(wild), AsDefined(wild));
  }
}

TEST_P(TensorStatsOn, CountsSpecialValues) {
  SKIP_IF_UNUSABLE(GetParam());
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (DType dtype : kFloatTypes) {
    for (std::int64_t at : {0, 7, 16, 1024, 2999}) {
      SCOPED_TRACE(DTypeName(dtype) + ", from element " + std::to_string(at));
      TestTensor tensor(dtype, 3010);
      for (std::int64_t i = 0; i < tensor.count(); ++i) tensor.set(i, 1);
      const double special[] = {3, -4, 0.0, -0.0, infinity, -infinity, nan};
      for (int k = 0; k < 7; ++k) tensor.set(at + k, special[k]);
      const TensorStats stats = Of(tensor);
      EXPECT_EQ(stats.count, 3010);
      EXPECT_EQ(stats.nonfinite, 3);
      EXPECT_EQ(stats.nan, 1);
      EXPECT_EQ(stats.zeros, 2);
      EXPECT_EQ(stats.max_abs, 4);
      EXPECT_EQ(stats.sum, 3003 - 1);
      EXPECT_EQ(stats.sum_squares, 3003 + 25);
      EXPECT_TRUE(std::isnan(stats.ieee_norm()));
    }
  }
}

TEST_P(TensorStatsOn, SubnormalsAreNumbers) {
  SKIP_IF_UNUSABLE(GetParam());
  for (DType dtype : kFloatTypes) {
    SCOPED_TRACE(DTypeName(dtype));
    TestTensor tensor(dtype, 100);
    tensor.set_bits(41, 1);  // the smallest
    const double smallest = tensor.at(41);
    ASSERT_GT(smallest, 0);
    const TensorStats stats = Of(tensor);
    EXPECT_EQ(stats.zeros, 99);
    EXPECT_EQ(stats.max_abs, smallest);
    EXPECT_EQ(stats.sum, smallest);
    EXPECT_EQ(stats.sum_squares, smallest * smallest);
  }
}

TEST_P(TensorStatsOn, LargestValuesDoNotOverflow) {
  SKIP_IF_UNUSABLE(GetParam());
  TestTensor tensor(DType::kFloat32, 5000);
  for (std::int64_t i = 0; i < tensor.count(); ++i) tensor.set_bits(i, 0xff7fffff);
  const double largest = std::numeric_limits<float>::max();
  const TensorStats stats = Of(tensor);
  EXPECT_EQ(stats.max_abs, largest);
  EXPECT_NEAR(stats.norm() / (largest * std::sqrt(5000.0)), 1, 1e-14);
  EXPECT_EQ(stats.nonfinite, 0);
}

TEST_P(TensorStatsOn, TakesAListOfAnyTensors) {
  SKIP_IF_UNUSABLE(GetParam());
  std::vector<TestTensor> tensors;
  std::vector<TensorView> views;
  for (std::int64_t size : {0, 5, 0, 0, 9000, 64, 0, 1}) {
    tensors.emplace_back(kFloatTypes[tensors.size() % 3], size);
    tensors.back().FillNormal(tensors.size());
    views.push_back(tensors.back().view());
  }
  const std::vector<TensorStats> stats = GetParam().stats(views);
  ASSERT_EQ(stats.size(), views.size());
  for (std::size_t i = 0; i < stats.size(); ++i) {
    SCOPED_TRACE(i);
    ExpectSame(stats[i], AsDefined(tensors[i]));
  }
  EXPECT_TRUE(GetParam().stats({}).empty());
}

TEST_P(TensorStatsOn, RefusesOtherTypes) {
  SKIP_IF_UNUSABLE(GetParam());
  for (DType dtype : {DType::kFloat64, DType::kInt64, DType::kInt32, DType::kUint8}) {
    const TensorView view{nullptr, 0, dtype};
    EXPECT_THROW(GetParam().stats(std::span(&view, 1)), std::invalid_argument);
  }
}

TEST(TensorStats, DerivesMeanDeviationAndNorm) {
  const float values[] = {1, 2, 3, 4};
  const TensorStats stats = ComputeTensorStats(TensorView{values, 4, DType::kFloat32});
  EXPECT_EQ(stats.mean(), 2.5);
  EXPECT_EQ(stats.stddev(), std::sqrt(1.25));
  EXPECT_EQ(stats.norm(), std::sqrt(30.0));
  EXPECT_EQ(stats.ieee_norm(), stats.norm());
  EXPECT_EQ(TensorStats().mean(), 0);
  EXPECT_EQ(TensorStats().stddev(), 0);
  const float infinite[] = {1, std::numeric_limits<float>::infinity()};
  EXPECT_EQ(ComputeTensorStats(TensorView{infinite, 2, DType::kFloat32}).ieee_norm(),
            std::numeric_limits<double>::infinity());
}

TEST(TensorStats, RefusesTooLittleRoom) {
  const TensorView view{nullptr, 0, DType::kFloat32};
  EXPECT_THROW(ComputeTensorStats(std::span(&view, 1), std::span<TensorStats>()),
               std::invalid_argument);
}

TEST(CompareTensors, AgreesWithTheOracleAndAcrossInstructionSets) {
  for (std::int64_t size : kSizes) {
    SCOPED_TRACE(size);
    TestTensor now(DType::kFloat32, size, 4), before(DType::kFloat32, size);
    now.FillNormal(1);
    before.FillNormal(1);
    // Values of another magnitude, so that the square of the change is inexact and a fused addition
    // would show.
    for (std::int64_t i = 0; i < size; i += 3) before.set(i, before.at(i) * 1e-4);
    long double now_squares = 0, change_squares = 0;
    std::int64_t changed = 0;
    for (std::int64_t i = 0; i < size; ++i) {
      const long double change = static_cast<long double>(now.at(i)) - before.at(i);
      now_squares += static_cast<long double>(now.at(i)) * now.at(i);
      change_squares += change * change;
      changed += now.bits(i) != before.bits(i);
    }
    const auto* a = static_cast<const float*>(now.view().data);
    const auto* b = static_cast<const float*>(before.view().data);
    const ChangeStats portable = CompareTensors(a, b, size, InstructionSet::kPortable);
    EXPECT_EQ(portable.changed, changed);
    EXPECT_NEAR(portable.now_squares, static_cast<double>(now_squares),
                1e-13 * static_cast<double>(now_squares));
    EXPECT_NEAR(portable.change_squares, static_cast<double>(change_squares),
                1e-13 * static_cast<double>(change_squares));
    for (InstructionSet set : AvailableInstructionSets()) {
      const ChangeStats stats = CompareTensors(a, b, size, set);
      EXPECT_TRUE(SameBits(stats.now_squares, portable.now_squares)) << Name(set);
      EXPECT_TRUE(SameBits(stats.change_squares, portable.change_squares)) << Name(set);
      EXPECT_EQ(stats.changed, portable.changed) << Name(set);
    }
  }
}

TEST(CompareTensors, SeesBitsNotValues) {
  const float nan = std::nanf("");
  const float now[] = {0.0f, 1, nan, 2};
  const float before[] = {-0.0f, 1, nan, 3};
  const ChangeStats stats = CompareTensors(now, before, 4);
  EXPECT_EQ(stats.changed, 2);  // the sign of the zero, and 3 -> 2; not the same NaN
  EXPECT_TRUE(std::isnan(stats.now_squares));
}

}  // namespace
}  // namespace trainwreck::kernels
