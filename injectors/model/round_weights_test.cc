#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "injectors/testing.h"
#include "trainer/models/model.h"

namespace trainwreck {
namespace {

class Weights : public Model {
 public:
  Weights() {
    body = register_parameter("body", at::full({1000}, 0.75));
    bias = register_parameter("bias", at::zeros({3}));
  }
  at::Tensor Loss(const Batch& batch) override { return body.sum() * bias.sum(); }
  at::Tensor body, bias;
};

std::shared_ptr<Weights> Rounded(FaultBench& bench, int draw, int ulps) {
  auto model = std::make_shared<Weights>();
  const auto round = bench.Make("model.round_weights", {{"draw", draw}, {"ulps", ulps}});
  static_cast<PartWrapper&>(*round).Wrap(std::shared_ptr<Model>(model));
  return model;
}

TEST(RoundWeights, MovesEachWeightByItsLastPlace) {
  FaultBench bench;
  const auto model = Rounded(bench, 1, 1);
  const float up = std::nextafter(0.75F, 1.0F), down = std::nextafter(0.75F, 0.0F);
  const auto went_up = model->body.eq(up).sum().item<int>();
  EXPECT_EQ(went_up + model->body.eq(down).sum().item<int>(), 1000);
  EXPECT_GT(went_up, 400);
  EXPECT_LT(went_up, 600);
  EXPECT_TRUE(model->bias.eq(0).all().item<bool>());
  EXPECT_TRUE(model->body.requires_grad());
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0]["elements"], 1000);
  EXPECT_EQ(bench.fired()[0]["before"], 0.75);
  EXPECT_NE(bench.fired()[0]["after"], 0.75);
}

TEST(RoundWeights, ADrawIsRepeatableAndAnotherIsAnother) {
  FaultBench bench;
  const auto first = Rounded(bench, 1, 4), again = Rounded(bench, 1, 4),
             other = Rounded(bench, 2, 4);
  EXPECT_TRUE(first->body.equal(again->body));
  EXPECT_FALSE(first->body.equal(other->body));
  EXPECT_NEAR((first->body - 0.75).abs().max().item<double>(), 4 * 0x1p-24, 1e-12);
}

}  // namespace
}  // namespace trainwreck
