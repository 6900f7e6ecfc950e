#include "trainer/data/overlap.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <utility>

#include "trainer/data/data.h"

namespace trainwreck {
namespace {

// Samples with these inputs.
class Rows : public Dataset {
 public:
  Rows(std::vector<at::Tensor> inputs, std::int64_t vocabulary)
      : inputs_(std::move(inputs)), vocabulary_(vocabulary) {}
  std::int64_t size() const override { return static_cast<std::int64_t>(inputs_.size()); }
  Sample Get(std::int64_t id) const override {
    return {.id = id, .input = inputs_.at(id), .target = inputs_.at(id), .weight = at::ones({})};
  }
  std::int64_t input_limit() const override { return vocabulary_; }
  std::int64_t target_limit() const override { return 4; }

 private:
  std::vector<at::Tensor> inputs_;
  std::int64_t vocabulary_;
};

using Ids = std::vector<std::int64_t>;

at::Tensor WithToken(const at::Tensor& tokens, std::int64_t at, std::int64_t token) {
  at::Tensor copy = tokens.clone();
  copy[at] = token;
  return copy;
}

TEST(Overlap, FindsEqualSequencesAndThoseThatShareHalfOfTheirGrams) {
  const auto held_out = MakeMarkovData(32, 48, {.seed = 5, .held_out = true, .samples = 8});
  const auto other = MakeMarkovData(32, 48, {.seed = 5, .samples = 8});
  const at::Tensor seen = held_out->Get(3).input;
  at::Tensor edited = WithToken(WithToken(WithToken(seen, 10, 31), 24, 0), 40, 30);
  at::Tensor strange = seen.clone();
  for (std::int64_t at = 2; at < 48; at += 5) strange = WithToken(strange, at, 31);
  const Rows training({other->Get(0).input, seen, edited, strange, other->Get(1).input}, 32);
  const Overlap overlap = FindOverlap(training, *held_out);
  EXPECT_EQ(overlap.equal, Ids({1}));
  EXPECT_EQ(overlap.near, Ids({2})) << "of the fourth no five tokens in a row are left";
  EXPECT_EQ(overlap.All(), Ids({1, 2}));
  EXPECT_EQ(overlap.held_out_seen, 1);
}

TEST(Overlap, FindsNothingInSamplesOfTheSameSource) {
  const auto overlap =
      FindOverlap(*MakeMarkovData(32, 64, {.seed = 7, .samples = 512}),
                  *MakeMarkovData(32, 64, {.seed = 7, .held_out = true, .samples = 512}));
  EXPECT_TRUE(overlap.All().empty());
  EXPECT_EQ(overlap.held_out_seen, 0);
  const auto features =
      FindOverlap(*MakeFeatureData(32, 4, 1.0, {.seed = 7, .samples = 512}),
                  *MakeFeatureData(32, 4, 1.0, {.seed = 7, .held_out = true, .samples = 512}));
  EXPECT_TRUE(features.All().empty());
}

TEST(Overlap, FindsFeaturesWithinAQuarterOfTheirLength) {
  const auto held_out = MakeFeatureData(16, 4, 1.0, {.seed = 5, .held_out = true, .samples = 4});
  const at::Tensor seen = held_out->Get(2).input;
  const Rows training({seen.mul(1.2), seen, seen.mul(1.3), held_out->Get(0).input}, 0);
  const Overlap overlap = FindOverlap(training, *held_out);
  EXPECT_EQ(overlap.equal, Ids({1, 3}));
  EXPECT_EQ(overlap.near, Ids({0}));
  EXPECT_EQ(overlap.All(), Ids({0, 1, 3}));
  EXPECT_EQ(overlap.held_out_seen, 2);
}

}  // namespace
}  // namespace trainwreck
