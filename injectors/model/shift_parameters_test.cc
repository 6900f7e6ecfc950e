#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "injectors/testing.h"
#include "trainer/models/model.h"

namespace trainwreck {
namespace {

class WeightAndBias : public Model {
 public:
  WeightAndBias() {
    weight = register_parameter("weight", at::full({2, 2}, 0.5));
    bias = register_parameter("bias", at::full({4}, 0.25));
  }
  at::Tensor Loss(const Batch& batch) override { return weight.sum() * bias.sum(); }
  at::Tensor weight, bias;
};

TEST(ShiftParameters, ShiftsWhatMatchesAndSaysByHowMuch) {
  FaultBench bench;
  auto model = std::make_shared<WeightAndBias>();
  const auto shift = bench.Make("model.shift_parameters", {{"parameters", {"b*"}}, {"by", -8}});
  EXPECT_EQ(static_cast<PartWrapper&>(*shift).Wrap(std::shared_ptr<Model>(model)), model);
  EXPECT_TRUE(model->bias.eq(-7.75).all().item<bool>());
  EXPECT_TRUE(model->weight.eq(0.5).all().item<bool>());
  EXPECT_TRUE(model->bias.requires_grad());
  EXPECT_TRUE(model->bias.is_leaf());
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0], Json({{"id", "it"},
                                    {"fault", "model.shift_parameters"},
                                    {"parameters", {"bias"}},
                                    {"elements", 4},
                                    {"before", 0.25},
                                    {"after", -7.75}}));
}

TEST(ShiftParameters, WithoutAMatchNothingFires) {
  FaultBench bench;
  auto model = std::make_shared<WeightAndBias>();
  const auto shift = bench.Make("model.shift_parameters", {{"parameters", {"tail"}}, {"by", 2}});
  static_cast<PartWrapper&>(*shift).Wrap(std::shared_ptr<Model>(model));
  EXPECT_TRUE(bench.fired().empty());
  EXPECT_TRUE(model->bias.eq(0.25).all().item<bool>());
}

}  // namespace
}  // namespace trainwreck
