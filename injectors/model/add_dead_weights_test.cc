#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "injectors/testing.h"
#include "trainer/models/model.h"

namespace trainwreck {
namespace {

class BesideDeadWeights : public Model {
 public:
  BesideDeadWeights() : weight(register_parameter("weight", at::ones({2}))) {}
  at::Tensor Loss(const Batch& batch) override { return weight.sum(); }
  at::Tensor weight;
};

TEST(AddDeadWeights, AddsOneParameterThatNothingDependsOn) {
  FaultBench bench;
  const auto injector = bench.Make("model.add_dead_weights", {{"elements", 7}});
  auto model = std::make_shared<BesideDeadWeights>();
  static_cast<PartWrapper&>(*injector).Wrap(std::shared_ptr<Model>(model));
  ASSERT_EQ(model->parameters().size(), 2U);
  const at::Tensor dead = model->named_parameters()["dead"];
  EXPECT_EQ(dead.numel(), 7);
  model->Loss({}).backward();
  EXPECT_TRUE(model->weight.grad().defined());
  EXPECT_FALSE(dead.grad().defined());
  EXPECT_EQ(bench.fired().at(0)["before"], 1);
  EXPECT_EQ(bench.fired().at(0)["after"], 2);
}

}  // namespace
}  // namespace trainwreck
