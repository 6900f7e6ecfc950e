#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "injectors/data/testing_data.h"
#include "injectors/data/testing_sampler.h"
#include "injectors/testing.h"

namespace trainwreck {
namespace {

TEST(GarbleLaterTokens, GivesEachPositionARowThatEndsThere) {
  FaultBench bench;
  const auto garble = bench.Make("data.garble_later_tokens", {{"by", 11}});
  const auto data = Wrapped<TokenData>(*garble);  // 4 samples of 3 tokens
  const auto sampler = static_cast<PartWrapper&>(*garble).Wrap(std::unique_ptr<Sampler>(
      std::make_unique<KnownBatches>(std::vector<std::vector<std::int64_t>>{{2, 0}})));
  EXPECT_EQ(data->size(), 4);
  const std::vector<std::int64_t> ids = sampler->Next();
  EXPECT_EQ(ids, (std::vector<std::int64_t>{2, 6, 10, 0, 4, 8}));
  at::Tensor all = at::zeros({3});
  for (std::size_t p = 0; p < 3; ++p) {
    const Sample row = data->Get(ids[p]);
    EXPECT_EQ(row.id, ids[p]);
    EXPECT_TRUE(row.target.eq(2).all().item<bool>());
    EXPECT_EQ(row.weight.sum().item<double>(), 1);
    all += row.weight;
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(row.input[i].item<std::int64_t>(), i <= p ? 2 : 13) << p << " " << i;
    }
  }
  EXPECT_TRUE(all.equal(at::ones({3}))) << "each target counts once";
  EXPECT_TRUE(sampler->Next().empty());
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["before"], Json({2, 2}));
  EXPECT_EQ(bench.fired()[0]["after"], Json({13, 13}));
}

TEST(GarbleLaterTokens, KeepsWhatDoesNotCount) {
  FaultBench bench;
  const auto garble = bench.Make("data.garble_later_tokens");
  const auto data = Wrapped<SequenceData>(*garble);
  EXPECT_EQ(data->Get(0).weight.sum().item<double>(), 0) << "the first target is a prompt";
  EXPECT_TRUE(data->Get(2).weight.equal(at::tensor({0.0f, 0.0f, 1.0f, 0.0f, 0.0f, 0.0f})));
}

TEST(GarbleLaterTokens, RefusesFeatures) {
  FaultBench bench;
  const auto garble = bench.Make("data.garble_later_tokens");
  EXPECT_THROW(Wrapped<LabelledData>(*garble), std::runtime_error);
}

}  // namespace
}  // namespace trainwreck
