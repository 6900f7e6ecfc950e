// Tensors of more than 2^31 elements: every index and count beyond 32 bits. Needs 4 GiB, of which
// it looks whether they are free.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#include "kernels/backends.h"
#include "kernels/corrupt.h"
#include "kernels/digest.h"

namespace trainwreck::kernels {
namespace {

constexpr std::int64_t kCount = (std::int64_t{1} << 31) + 4099;
constexpr std::int64_t kBytes = 2 * kCount;

std::int64_t FreeBytes() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  while (file >> word) {
    if (word == "MemAvailable:" && file >> word) return std::stoll(word) * 1024;
  }
  return 0;
}

// One for all tests of the process: filling it takes longer than reading it.
class Large : public testing::TestWithParam<Backend> {
 protected:
  // Returns why there is none, or nothing.
  static std::string Prepare() {
    if (data_ != nullptr) return "";
    const std::int64_t free = FreeBytes();
    if (free < kBytes + (std::int64_t{2} << 30)) {
      return "needs 6 GiB of free memory, there are " + std::to_string(free >> 20) + " MiB";
    }
    data_ = static_cast<std::uint16_t*>(std::malloc(kBytes));
    std::fill_n(data_, kCount, std::uint16_t{0x3f80});  // 1 in bfloat16
    return "";
  }
  static void TearDownTestSuite() { std::free(data_); }

  static inline std::uint16_t* data_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(All, Large, testing::ValuesIn(Backends()),
                         BackendName<testing::TestParamInfo<Backend>>);

TEST_P(Large, StatisticsDigestAndCorruption) {
  SKIP_IF_UNUSABLE(GetParam());
  if (const std::string why = Prepare(); !why.empty()) GTEST_SKIP() << "NOT VERIFIED: " << why;
  const MutableTensorView tensor{data_, kCount, DType::kBFloat16};
  const TensorView view = tensor;
  const auto digest = [&] { return GetParam().digests(std::span(&view, 1)).at(0); };

  const std::uint64_t before = digest();
  const std::int64_t half = kBytes / 16 * 8;
  EXPECT_EQ(before, FinishDigest(DigestPart(data_, half, 0) +
                                     DigestPart(data_ + half / 2, kBytes - half, half / 8),
                                 kBytes, DType::kBFloat16));

  const std::int64_t last = kCount - 1;
  const CorruptionReport flipped =
      GetParam().corrupt(tensor, {.kind = Corruption::Kind::kFlipBit, .first = last, .bit = 15});
  ASSERT_EQ(flipped.shown.at(0).after, -1);
  EXPECT_NE(digest(), before);

  data_[kCount - 2] = 0x7fc0;  // NaN
  data_[kCount - 3] = 0x8000;  // -0
  data_[kCount - 4] = 0x4080;  // 4
  const TensorStats stats = GetParam().stats(std::span(&view, 1)).at(0);
  EXPECT_EQ(stats.count, kCount);
  EXPECT_EQ(stats.nan, 1);
  EXPECT_EQ(stats.zeros, 1);
  EXPECT_EQ(stats.max_abs, 4);
  EXPECT_EQ(stats.sum, static_cast<double>(kCount - 4 + 4 - 1));
  EXPECT_EQ(stats.sum_squares, static_cast<double>(kCount - 4 + 16 + 1));
  for (std::int64_t i = kCount - 4; i < kCount; ++i) data_[i] = 0x3f80;
  EXPECT_EQ(digest(), before);
}

}  // namespace
}  // namespace trainwreck::kernels
