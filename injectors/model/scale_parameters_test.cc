#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "injectors/testing.h"
#include "trainer/models/model.h"

namespace trainwreck {
namespace {

class TwoWeights : public Model {
 public:
  TwoWeights() {
    body = register_parameter("body", at::full({2, 2}, 0.5));
    head = register_parameter("head", at::full({3}, -3.0));
  }
  at::Tensor Loss(const Batch& batch) override { return body.sum() * head.sum(); }
  at::Tensor body, head;
};

TEST(ScaleParameters, ScalesWhatMatchesAndSaysBySize) {
  FaultBench bench;
  auto model = std::make_shared<TwoWeights>();
  const auto scale =
      bench.Make("model.scale_parameters", {{"parameters", {"h*"}}, {"factor", 1024}});
  EXPECT_EQ(static_cast<PartWrapper&>(*scale).Wrap(std::shared_ptr<Model>(model)), model);
  EXPECT_TRUE(model->head.eq(-3072.0).all().item<bool>());
  EXPECT_TRUE(model->body.eq(0.5).all().item<bool>());
  EXPECT_TRUE(model->head.requires_grad());
  EXPECT_TRUE(model->head.is_leaf());
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0], Json({{"id", "it"},
                                    {"fault", "model.scale_parameters"},
                                    {"parameters", {"head"}},
                                    {"elements", 3},
                                    {"before", 3.0},
                                    {"after", 3072.0}}));
}

TEST(ScaleParameters, ScalesSomeRowsOnly) {
  FaultBench bench;
  auto model = std::make_shared<TwoWeights>();
  const auto scale = bench.Make("model.scale_parameters",
                                {{"parameters", {"head"}}, {"factor", 2}, {"rows", {1, 3}}});
  static_cast<PartWrapper&>(*scale).Wrap(std::shared_ptr<Model>(model));
  EXPECT_EQ(model->head[0].item<double>(), -3.0);
  EXPECT_EQ(model->head[1].item<double>(), -6.0);
  EXPECT_EQ(model->head[2].item<double>(), -6.0);
  EXPECT_EQ(bench.fired().at(0)["elements"], 2);
  for (const Json& rows : {Json({1, 4}), Json({2, 2}), Json({1})}) {
    const auto bad = bench.Make("model.scale_parameters",
                                {{"parameters", {"head"}}, {"factor", 2}, {"rows", rows}});
    EXPECT_THROW(static_cast<PartWrapper&>(*bad).Wrap(std::shared_ptr<Model>(model)),
                 std::runtime_error);
  }
}

TEST(ScaleParameters, WithoutAMatchNothingFires) {
  FaultBench bench;
  auto model = std::make_shared<TwoWeights>();
  const auto scale =
      bench.Make("model.scale_parameters", {{"parameters", {"tail"}}, {"factor", 2}});
  static_cast<PartWrapper&>(*scale).Wrap(std::shared_ptr<Model>(model));
  EXPECT_TRUE(bench.fired().empty());
  EXPECT_TRUE(model->head.eq(-3.0).all().item<bool>());
}

}  // namespace
}  // namespace trainwreck
