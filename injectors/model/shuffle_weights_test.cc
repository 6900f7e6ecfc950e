#include <ATen/ops/arange.h>
#include <ATen/ops/sort.h>
#include <gtest/gtest.h>

#include "injectors/testing.h"
#include "trainer/models/model.h"

namespace trainwreck {
namespace {

class ManyWeights : public Model {
 public:
  ManyWeights() { weight = register_parameter("weight", at::arange(64).to(at::kFloat)); }
  at::Tensor Loss(const Batch& batch) override { return weight.sum(); }
  at::Tensor weight;
};

at::Tensor WeightUnder(FaultBench& bench, Trigger trigger = {}) {
  const auto shuffle = bench.Make("model.shuffle_weights", {}, std::move(trigger));
  auto model = std::make_shared<ManyWeights>();
  static_cast<PartWrapper&>(*shuffle).Wrap(std::shared_ptr<Model>(model));
  return model->weight.detach();
}

TEST(ShuffleWeights, KeepsTheValuesInAnotherOrderOnEachRank) {
  FaultBench zero(0, 2), one(1, 2);
  const at::Tensor first = WeightUnder(zero), second = WeightUnder(one);
  EXPECT_FALSE(first.equal(second));
  EXPECT_FALSE(first.equal(ManyWeights().weight));
  EXPECT_TRUE(std::get<0>(first.sort()).equal(ManyWeights().weight.detach()));
  EXPECT_TRUE(WeightUnder(zero).equal(first)) << "the same in each run";
  ASSERT_EQ(one.fired().size(), 1U);
  EXPECT_EQ(one.fired()[0]["parameter"], "weight");
}

TEST(ShuffleWeights, LeavesOtherRanksAlone) {
  FaultBench bench(0, 2);
  EXPECT_TRUE(WeightUnder(bench, {.ranks = {1}}).equal(ManyWeights().weight.detach()));
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
