#include "kernels/digest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <vector>

#include "kernels/backends.h"
#include "kernels/corrupt_element.h"
#include "kernels/kernel_testing.h"
#include "kernels/versions.h"

namespace trainwreck::kernels {
namespace {

// The definition in digest.h, written down once more, byte by byte.
std::uint64_t AsDefined(const TensorView& tensor) {
  const std::uint64_t step = 0x9e3779b97f4a7c15ull;
  const auto mix = [](std::uint64_t x) {
    for (int round = 0; round < 2; ++round) x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ull;
    return x ^ (x >> 32);
  };
  const auto* bytes = static_cast<const unsigned char*>(tensor.data);
  std::uint64_t sum = mix(static_cast<std::uint64_t>(tensor.bytes()) * step +
                          static_cast<std::uint64_t>(tensor.dtype) + 1);
  for (std::int64_t word = 0; word * 8 < tensor.bytes(); ++word) {
    std::uint64_t value = 0;
    for (int b = 0; b < 8 && word * 8 + b < tensor.bytes(); ++b) {
      value |= std::uint64_t{bytes[word * 8 + b]} << (8 * b);
    }
    sum += mix(value + static_cast<std::uint64_t>(word) * step);
  }
  return mix(sum);
}

std::vector<float> Normal(std::int64_t count, std::uint64_t seed = 1) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(StandardNoise(seed, static_cast<std::uint64_t>(i))));
  }
  return values;
}

std::uint64_t DigestOf(const std::vector<float>& values) {
  return TensorDigest({values.data(), static_cast<std::int64_t>(values.size()), DType::kFloat32});
}

class DigestOn : public testing::TestWithParam<Backend> {};
INSTANTIATE_TEST_SUITE_P(All, DigestOn, testing::ValuesIn(Backends()),
                         BackendName<testing::TestParamInfo<Backend>>);

TEST_P(DigestOn, IsAsDefinedForAllTypesSizesAndAddresses) {
  SKIP_IF_UNUSABLE(GetParam());
  const DType types[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat64,
                         DType::kInt64,   DType::kInt32,   DType::kUint8};
  for (std::int64_t misaligned : {0, 1, 4, 8}) {
    std::vector<TestTensor> tensors;
    std::vector<TensorView> views;
    for (DType dtype : types) {
      if (!GetParam().any_alignment && misaligned % ItemBytes(dtype) != 0) continue;
      for (std::int64_t size : {0, 1, 3, 7, 8, 9, 63, 64, 65, 1023, 2048, 2049, 20011}) {
        tensors.emplace_back(dtype, size, misaligned);
        tensors.back().FillBits(tensors.size());
        views.push_back(tensors.back().view());
      }
    }
    const std::vector<std::uint64_t> digests = GetParam().digests(views);
    ASSERT_EQ(digests.size(), views.size());
    for (std::size_t i = 0; i < views.size(); ++i) {
      EXPECT_EQ(digests[i], AsDefined(views[i]))
          << DTypeName(views[i].dtype) << ", " << views[i].count << " elements, " << misaligned
          << " bytes off";
    }
  }
}

TEST(Digest, AnyChunkingGivesTheSame) {
  const std::vector<float> values = Normal(10007);
  const std::int64_t bytes = static_cast<std::int64_t>(values.size() * sizeof(float));
  const char* data = reinterpret_cast<const char*>(values.data());
  for (InstructionSet set : AvailableInstructionSets()) {
    for (std::int64_t words : {1, 2, 3, 7, 16, 100, 4999, 100000}) {
      std::uint64_t parts = 0;
      for (std::int64_t at = 0; at < bytes; at += 8 * words) {
        parts += DigestPart(data + at, std::min(bytes - at, 8 * words), at / 8, set);
      }
      EXPECT_EQ(FinishDigest(parts, bytes, DType::kFloat32), DigestOf(values))
          << Name(set) << ", pieces of " << words << " words";
    }
  }
}

TEST(Digest, EveryFlippedBitIsSeenAndFlipsHalfOfTheDigest) {
  const std::vector<float> values = Normal(65);  // the last word is half full
  const std::uint64_t before = DigestOf(values);
  std::vector<int> flips(64);
  double total = 0;
  int cases = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (int bit = 0; bit < 32; ++bit, ++cases) {
      std::vector<float> flipped = values;
      flipped[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(values[i]) ^ (1u << bit));
      const std::uint64_t change = DigestOf(flipped) ^ before;
      ASSERT_NE(change, 0u) << "element " << i << ", bit " << bit;
      total += std::popcount(change);
      for (int k = 0; k < 64; ++k) flips[k] += change >> k & 1;
    }
  }
  // 2080 fair coins for each bit: standard deviation 0.011 of the share; six of them.
  EXPECT_NEAR(total / cases / 64, 0.5, 0.01);
  for (int k = 0; k < 64; ++k) {
    EXPECT_NEAR(static_cast<double>(flips[k]) / cases, 0.5, 0.066) << "bit " << k;
  }
}

TEST(Digest, ExchangesAndPermutationsAreSeen) {
  const std::vector<float> values = Normal(64);
  std::unordered_set<std::uint64_t> digests = {DigestOf(values)};
  std::size_t variants = 1;
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t j = i + 1; j < values.size(); ++j, ++variants) {
      std::vector<float> swapped = values;
      std::swap(swapped[i], swapped[j]);
      digests.insert(DigestOf(swapped));
    }
  }
  std::vector<float> permuted = values;
  std::uint64_t state = 9;
  for (int i = 0; i < 1000; ++i, ++variants) {
    for (std::size_t k = permuted.size() - 1; k > 0; --k) {
      std::swap(permuted[k], permuted[(state = RandomBits(state, 0, k)) % (k + 1)]);
    }
    digests.insert(DigestOf(permuted));
  }
  std::sort(permuted.begin(), permuted.end());
  digests.insert(DigestOf(permuted));
  EXPECT_EQ(digests.size(), variants + 1);
}

// Two flipped signs change two words by 2^31 or 2^63 each: the hardest pair for a sum of mixed
// words, and what broken reductions do. A million variants must be distinct, and their low 32 bits
// must meet as often as those of a random function: 122 times expected.
TEST(Digest, PairsOfFlippedSignsDoNotCancel) {
  const std::vector<float> values = Normal(1449);
  const std::int64_t count = static_cast<std::int64_t>(values.size());
  std::uint64_t all = DigestPart(values.data(), count * 4, 0);
  const auto term = [](float low, float high, std::int64_t word, std::int64_t bytes) {
    const float pair[2] = {low, high};
    return DigestPart(pair, bytes, word);
  };
  std::vector<std::uint64_t> change;  // of the sum, by the element that changes its sign
  for (std::int64_t i = 0; i + 1 < count; i += 2) {
    const std::uint64_t old = term(values[i], values[i + 1], i / 2, 8);
    change.push_back(term(-values[i], values[i + 1], i / 2, 8) - old);
    change.push_back(term(values[i], -values[i + 1], i / 2, 8) - old);
  }
  std::vector<std::uint64_t> digests;
  for (std::size_t i = 0; i < change.size(); ++i) {
    for (std::size_t j = (i | 1) + 1; j < change.size(); ++j) {  // in another word
      digests.push_back(FinishDigest(all + change[i] + change[j], count * 4, DType::kFloat32));
    }
  }
  ASSERT_GT(digests.size(), 1'000'000u);
  std::sort(digests.begin(), digests.end());
  EXPECT_EQ(std::adjacent_find(digests.begin(), digests.end()), digests.end());
  std::vector<std::uint32_t> low(digests.begin(), digests.end());
  std::sort(low.begin(), low.end());
  int collisions = 0;
  for (std::size_t i = 1; i < low.size(); ++i) collisions += low[i] == low[i - 1];
  EXPECT_GT(collisions, 60);
  EXPECT_LT(collisions, 190);
}

TEST(Digest, TruncationPaddingAndTypeAreSeen) {
  std::unordered_set<std::uint64_t> digests;
  const std::vector<unsigned char> zeros(64);
  for (std::int64_t count = 0; count <= 64; ++count) {
    digests.insert(TensorDigest({zeros.data(), count, DType::kUint8}));
  }
  EXPECT_EQ(digests.size(), 65u);
  for (DType dtype : {DType::kFloat32, DType::kInt32}) {
    digests.insert(TensorDigest({zeros.data(), 16, dtype}));
  }
  for (DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    digests.insert(TensorDigest({zeros.data(), 32, dtype}));
  }
  EXPECT_EQ(digests.size(), 65u + 4);
}

TEST(Digest, OfAListTheOrderAndTheBordersCount) {
  const std::vector<float> values = Normal(30);
  const TensorView whole{values.data(), 30, DType::kFloat32};
  const TensorView head{values.data(), 10, DType::kFloat32};
  const TensorView tail{values.data() + 10, 20, DType::kFloat32};
  const TensorView empty{nullptr, 0, DType::kFloat32};
  const std::vector<std::vector<TensorView>> lists = {
      {},           {empty},      {empty, empty},      {whole},       {whole, empty},
      {head, tail}, {tail, head}, {head, empty, tail}, {whole, whole}};
  std::unordered_set<std::uint64_t> digests;
  for (const auto& list : lists) {
    digests.insert(ListDigest(list));
    std::vector<std::uint64_t> parts(list.size());
    ComputeDigests(list, parts);
    EXPECT_EQ(CombineDigests(parts), ListDigest(list));
  }
  EXPECT_EQ(digests.size(), lists.size());
  std::vector<std::uint64_t> too_few;
  EXPECT_THROW(ComputeDigests(lists.back(), too_few), std::invalid_argument);
}

// So that a change of the definition is noticed: digests in old checkpoints and traces would no
// longer fit.
TEST(Digest, HasNotChanged) {
  std::vector<float> values(1000);
  std::iota(values.begin(), values.end(), 0.0f);
  EXPECT_EQ(DigestOf(values), 7720977395013063392ull);
  EXPECT_EQ(DigestOf({}), 2072007709074090988ull);
}

}  // namespace
}  // namespace trainwreck::kernels
