#include "kernels/corrupt.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <stdexcept>
#include <vector>

#include "kernels/backends.h"
#include "kernels/corrupt_element.h"
#include "kernels/kernel_testing.h"

namespace trainwreck::kernels {
namespace {

using Kind = Corruption::Kind;
using Where = Corruption::Where;

// Both hold the same; the tensor is then corrupted, and the indices that differ are returned.
std::set<std::int64_t> Differences(const TestTensor& now, const TestTensor& before) {
  std::set<std::int64_t> indices;
  for (std::int64_t i = 0; i < now.count(); ++i) {
    if (now.bits(i) != before.bits(i)) indices.insert(i);
  }
  return indices;
}

class CorruptOn : public testing::TestWithParam<Backend> {
 protected:
  static constexpr std::int64_t kCount = 9001;  // more than a block of a GPU changes

  // Corrupts a tensor of normal numbers and checks that the report tells what happened, and nothing
  // else happened.
  TestTensor Apply(DType dtype, const Corruption& corruption, std::int64_t expected_elements,
                   CorruptionReport* out = nullptr) {
    TestTensor tensor(dtype, kCount, ItemBytes(dtype)), before(dtype, kCount);
    tensor.FillNormal(5);
    before.FillNormal(5);
    const CorruptionReport report = GetParam().corrupt(tensor.view(), corruption);
    EXPECT_EQ(report.elements, expected_elements);
    const std::set<std::int64_t> different = Differences(tensor, before);
    EXPECT_EQ(report.changed, static_cast<std::int64_t>(different.size()));
    EXPECT_EQ(static_cast<std::int64_t>(report.shown.size()),
              std::min(expected_elements, CorruptionReport::kShown));
    for (const CorruptedElement& element : report.shown) {
      EXPECT_EQ(element.before_bits, before.bits(element.index));
      EXPECT_EQ(element.after_bits, tensor.bits(element.index));
      EXPECT_EQ(element.before, before.at(element.index));
      if (std::isnan(element.after)) continue;
      EXPECT_EQ(element.after, tensor.at(element.index));
    }
    if (out != nullptr) *out = report;
    return tensor;
  }
};
INSTANTIATE_TEST_SUITE_P(All, CorruptOn, testing::ValuesIn(Backends()),
                         BackendName<testing::TestParamInfo<Backend>>);

TEST_P(CorruptOn, FlipsTheBitThatIsAskedFor) {
  SKIP_IF_UNUSABLE(GetParam());
  for (DType dtype : kFloatTypes) {
    for (int bit = 0; bit < static_cast<int>(8 * ItemBytes(dtype)); ++bit) {
      CorruptionReport report;
      Apply(dtype, {.kind = Kind::kFlipBit, .elements = 20, .bit = bit, .seed = 3}, 20, &report);
      EXPECT_EQ(report.changed, 20);
      for (const CorruptedElement& element : report.shown) {
        EXPECT_EQ(element.before_bits ^ element.after_bits, std::uint64_t{1} << bit);
      }
    }
  }
}

TEST_P(CorruptOn, SetsScalesAndZeroes) {
  SKIP_IF_UNUSABLE(GetParam());
  for (DType dtype : kFloatTypes) {
    CorruptionReport report;
    Apply(dtype, {.kind = Kind::kSetValue, .elements = 3, .value = 1e30, .seed = 1}, 3, &report);
    const double written = dtype == DType::kFloat16 ? INFINITY : report.shown[0].after;
    EXPECT_EQ(report.shown[0].after, written);
    EXPECT_GT(report.shown[0].after, 0.99e30);
    Apply(dtype, {.kind = Kind::kSetValue, .value = NAN}, 1, &report);
    EXPECT_TRUE(std::isnan(report.shown[0].after));
    Apply(dtype, {.kind = Kind::kScale, .elements = 9, .value = -2}, 9, &report);
    for (const auto& element : report.shown) EXPECT_EQ(element.after, -2 * element.before);
    Apply(dtype, {.kind = Kind::kZero, .where = Where::kRegion, .elements = 700}, 700, &report);
    for (const auto& element : report.shown) EXPECT_EQ(element.after_bits, 0u);
  }
}

TEST_P(CorruptOn, RegionsAreContiguousAndInside) {
  SKIP_IF_UNUSABLE(GetParam());
  std::set<std::int64_t> starts;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CorruptionReport report;
    Apply(DType::kFloat32,
          {.kind = Kind::kFlipBit, .where = Where::kRegion, .elements = 4000, .seed = seed}, 4000,
          &report);
    starts.insert(report.shown[0].index);
    for (std::int64_t j = 0; j < CorruptionReport::kShown; ++j) {
      EXPECT_EQ(report.shown[j].index, report.shown[0].index + j);
    }
  }
  EXPECT_GT(starts.size(), 15u);
  CorruptionReport report;
  Apply(DType::kFloat32, {.elements = 10, .first = kCount - 4}, 4, &report);
  EXPECT_EQ(report.shown[0].index, kCount - 4);
  Apply(DType::kFloat32, {.elements = 2 * kCount}, kCount);
}

TEST_P(CorruptOn, NoiseHasTheAskedSpread) {
  SKIP_IF_UNUSABLE(GetParam());
  TestTensor tensor(DType::kFloat32, 100000);
  GetParam().corrupt(tensor.view(), {.kind = Kind::kAddNoise, .elements = 100000, .value = 0.5});
  double sum = 0, squares = 0, fourth = 0, most = 0;
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    const double x = tensor.at(i) / 0.5;
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
    most = std::max(most, std::fabs(x));
  }
  const double n = static_cast<double>(tensor.count());
  // Six standard errors of each.
  EXPECT_NEAR(sum / n, 0, 6 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1, 6 * std::sqrt(1.9 / n));
  EXPECT_NEAR(fourth / n, 2.9, 0.2);  // 3 - 6/60 of Irwin-Hall; uniform noise has 1.8
  EXPECT_GT(most, 3.5);
  EXPECT_LE(most, 6);
}

// All bit patterns, all lengths of a last block, both ways to choose, unaligned where that is
// allowed: the same bits as one element after another.
TEST_P(CorruptOn, DoesTheSameToTheBitAsVersionOne) {
  SKIP_IF_UNUSABLE(GetParam());
  for (DType dtype : kFloatTypes) {
    const std::int64_t offset = GetParam().any_alignment ? 1 : ItemBytes(dtype);
    for (Kind kind :
         {Kind::kFlipBit, Kind::kSetValue, Kind::kScale, Kind::kAddNoise, Kind::kZero}) {
      for (Where where : {Where::kScattered, Where::kRegion}) {
        for (std::int64_t elements : {1L, 255L, 256L, 257L, 1000L, 1025L, kCount}) {
          const Corruption corruption{.kind = kind,
                                      .where = where,
                                      .elements = elements,
                                      .bit = 9,
                                      .value = 0.3,
                                      .seed = 77};
          TestTensor expected(dtype, kCount), actual(dtype, kCount, offset);
          expected.FillBits(6);
          actual.FillBits(6);
          const std::int64_t changed = NaiveCorrupt(expected.view(), corruption);
          EXPECT_EQ(GetParam().corrupt(actual.view(), corruption).changed, changed);
          ASSERT_TRUE(Differences(actual, expected).empty()) << DTypeName(dtype) << " " << elements;
        }
      }
    }
  }
}

// Whether no other number of the type is nearer to `exact` by more than `slack`.
bool IsNearest(const TestTensor& tensor, std::int64_t index, long double exact, long double slack) {
  const double value = tensor.at(index);
  if (std::isnan(exact)) return std::isnan(value);
  if (std::signbit(value) != std::signbit(exact)) return false;
  const std::uint64_t sign = std::uint64_t{1} << (8 * ItemBytes(tensor.dtype()) - 1);
  const std::uint64_t magnitude = tensor.bits(index) & (sign - 1);
  TestTensor around(tensor.dtype(), 3);  // the two below, the one above
  for (std::uint64_t k = 0; k < 3; ++k) {
    around.set_bits(static_cast<std::int64_t>(k),
                    k < 2 ? magnitude - std::min(magnitude, 2 - k) : magnitude + 1);
  }
  const long double size = std::fabs(exact), got = std::fabs(value), below = around.at(1);
  if (std::isinf(value)) return size + slack >= below + (below - around.at(0)) / 2;
  const long double up = std::isinf(around.at(2)) ? got - below : around.at(2) - got;
  return size <= got + up / 2 + slack && size >= got - (got - below) / 2 - slack;
}

// In extended precision, from the words of corrupt.h.
TEST_P(CorruptOn, AgreesWithTheOracle) {
  SKIP_IF_UNUSABLE(GetParam());
  for (DType dtype : kFloatTypes) {
    for (double value : {0.3, -1e-3, 700.0, 1e-300}) {
      TestTensor original(dtype, kCount), scaled(dtype, kCount), noisy(dtype, kCount);
      for (TestTensor* tensor : {&original, &scaled, &noisy}) tensor->FillBits(8);
      const Corruption scale{.kind = Kind::kScale, .elements = kCount, .value = value};
      Corruption noise{.kind = Kind::kAddNoise, .elements = kCount, .value = value, .seed = 5};
      GetParam().corrupt(scaled.view(), scale);
      GetParam().corrupt(noisy.view(), noise);
      for (std::int64_t i = 0; i < kCount; ++i) {
        const long double x = original.at(i);
        long double standard = -6;
        for (std::uint64_t k = 0; k < 12; ++k) {
          standard += static_cast<long double>(RandomBits(5, 64 + k, i) >> 11) * 0x1p-53L;
        }
        // Doubles come between.
        const long double slack = std::fabs(x * value) * 0x1p-52L;
        const long double noise_slack = (std::fabs(x) + 12 * std::fabs(value)) * 0x1p-50L;
        ASSERT_TRUE(IsNearest(scaled, i, x * value, slack))
            << original.at(i) << " to " << scaled.at(i);
        ASSERT_TRUE(IsNearest(noisy, i, x + standard * value, noise_slack))
            << original.at(i) << " to " << noisy.at(i);
      }
    }
  }
}

TEST_P(CorruptOn, LeavesAnEmptyTensorAlone) {
  SKIP_IF_UNUSABLE(GetParam());
  const CorruptionReport report = GetParam().corrupt({nullptr, 0, DType::kFloat32}, {});
  EXPECT_EQ(report.elements, 0);
  EXPECT_EQ(report.changed, 0);
}

TEST_P(CorruptOn, RefusesWhatMakesNoSense) {
  SKIP_IF_UNUSABLE(GetParam());
  TestTensor halves(DType::kFloat16, 10), integers(DType::kInt32, 10);
  const auto& corrupt = GetParam().corrupt;
  EXPECT_THROW(corrupt(halves.view(), {.bit = 16}), std::invalid_argument);
  EXPECT_THROW(corrupt(halves.view(), {.bit = -1}), std::invalid_argument);
  EXPECT_THROW(corrupt(halves.view(), {.elements = -1}), std::invalid_argument);
  EXPECT_THROW(corrupt(halves.view(), {.first = 10}), std::invalid_argument);
  EXPECT_THROW(corrupt(halves.view(), {.first = -1}), std::invalid_argument);
  EXPECT_THROW(corrupt(integers.view(), {}), std::invalid_argument);
  EXPECT_TRUE(Differences(halves, TestTensor(DType::kFloat16, 10)).empty());
}

TEST(ShuffledIndex, IsAPermutation) {
  for (std::int64_t count = 1; count <= 300; ++count) {
    std::set<std::int64_t> seen;
    for (std::int64_t j = 0; j < count; ++j) {
      const std::int64_t index = ShuffledIndex(j, count, 11);
      ASSERT_GE(index, 0);
      ASSERT_LT(index, count);
      seen.insert(index);
    }
    ASSERT_EQ(static_cast<std::int64_t>(seen.size()), count);
  }
}

TEST(ShuffledIndex, IsUniformOverSeeds) {
  constexpr std::int64_t kPlaces = 10, kSeeds = 20000;
  for (std::int64_t j : {0, 4}) {
    std::vector<int> hits(kPlaces);
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) ++hits[ShuffledIndex(j, kPlaces, seed)];
    // 2000 expected, standard deviation 42.
    for (int hit : hits) EXPECT_NEAR(hit, kSeeds / kPlaces, 255);
  }
}

TEST(ShuffledIndex, ReachesBeyondFourBillion) {
  const std::int64_t count = std::int64_t{1} << 40;
  std::int64_t most = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const std::int64_t index = ShuffledIndex(0, count, seed);
    ASSERT_LT(index, count);
    most = std::max(most, index);
  }
  EXPECT_GT(most, count / 2);
}

}  // namespace
}  // namespace trainwreck::kernels
