// Tensors of more than 2^31 elements of each type: every index and count beyond 32 bits. Needs 4
// GiB for 16 bits and 8 for 32, of which it looks whether they are free.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <tuple>

#include "kernels/backends.h"
#include "kernels/corrupt_element.h"
#include "kernels/digest.h"
#include "kernels/kernel_testing.h"

namespace trainwreck::kernels {
namespace {

constexpr std::int64_t kCount = (std::int64_t{1} << 31) + 4099;
std::int64_t FreeBytes() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  while (file >> word) {
    if (word == "MemAvailable:" && file >> word) return std::stoll(word) * 1024;
  }
  return 0;
}

// One for all tests of a type: filling it takes longer than reading it.
class Large : public testing::TestWithParam<std::tuple<DType, Backend>> {
 protected:
  // Returns why there is none, or nothing.
  static std::string Prepare(DType dtype) {
    const std::int64_t bytes = kCount * ItemBytes(dtype);
    if (data_ != nullptr && held_ == dtype) return "";
    Release();
    const std::int64_t needed = bytes + (std::int64_t{2} << 30);
    if (const std::int64_t free = FreeBytes(); free < needed) {
      return "needs " + std::to_string(needed >> 20) + " MiB of free memory, there are " +
             std::to_string(free >> 20);
    }
    data_ = static_cast<char*>(std::malloc(static_cast<std::size_t>(bytes)));
    held_ = dtype;
    if (dtype == DType::kFloat32) {
      std::fill_n(reinterpret_cast<float*>(data_), kCount, 1.0f);
    } else {
      std::fill_n(reinterpret_cast<std::uint16_t*>(data_), kCount,
                  static_cast<std::uint16_t>(Encode(1, dtype)));
    }
    return "";
  }
  static void Release() {
    std::free(data_);
    data_ = nullptr;
  }
  static void TearDownTestSuite() { Release(); }

  static void Set(std::int64_t index, double value) {
    const std::uint64_t bits = Encode(value, held_);
    const std::int64_t size = ItemBytes(held_);
    std::memcpy(data_ + index * size, &bits, static_cast<std::size_t>(size));
  }

  static inline char* data_ = nullptr;
  static inline DType held_ = DType::kFloat32;
};
INSTANTIATE_TEST_SUITE_P(
    All, Large, testing::Combine(testing::ValuesIn(kFloatTypes), testing::ValuesIn(Backends())),
    [](const auto& info) {
      return DTypeName(std::get<0>(info.param)) + "_" + std::get<1>(info.param).name;
    });

TEST_P(Large, StatisticsDigestAndCorruption) {
  const DType dtype = std::get<0>(GetParam());
  const Backend& backend = std::get<1>(GetParam());
  SKIP_IF_UNUSABLE(backend);
  if (const std::string why = Prepare(dtype); !why.empty()) {
    GTEST_SKIP() << "NOT VERIFIED: " << why;
  }
  const MutableTensorView tensor{data_, kCount, dtype};
  const TensorView view = tensor;
  const auto digest = [&] { return backend.digests(std::span(&view, 1)).at(0); };

  const std::uint64_t before = digest();
  const std::int64_t half = view.bytes() / 16 * 8;
  EXPECT_EQ(before, FinishDigest(DigestPart(data_, half, 0) +
                                     DigestPart(data_ + half, view.bytes() - half, half / 8),
                                 view.bytes(), dtype));

  const int sign_bit = static_cast<int>(8 * ItemBytes(dtype)) - 1;
  const CorruptionReport flipped = backend.corrupt(
      tensor, {.kind = Corruption::Kind::kFlipBit, .first = kCount - 1, .bit = sign_bit});
  ASSERT_EQ(flipped.shown.at(0).after, -1);
  EXPECT_NE(digest(), before);

  Set(kCount - 2, NAN);
  Set(kCount - 3, -0.0);
  Set(kCount - 4, 4);
  const TensorStats stats = backend.stats(std::span(&view, 1)).at(0);
  EXPECT_EQ(stats.count, kCount);
  EXPECT_EQ(stats.nan, 1);
  EXPECT_EQ(stats.zeros, 1);
  EXPECT_EQ(stats.max_abs, 4);
  EXPECT_EQ(stats.sum, static_cast<double>(kCount - 4 + 4 - 1));
  EXPECT_EQ(stats.sum_squares, static_cast<double>(kCount - 4 + 16 + 1));

  // A region from below 2^31 to the last element: all that is not 1 any more becomes 1.
  const CorruptionReport ones = backend.corrupt(
      tensor,
      {.kind = Corruption::Kind::kSetValue, .elements = 5000, .first = kCount - 5000, .value = 1});
  EXPECT_EQ(ones.elements, 5000);
  EXPECT_EQ(ones.changed, 4);
  EXPECT_EQ(digest(), before);
}

}  // namespace
}  // namespace trainwreck::kernels
