#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <gtest/gtest.h>

#include "injectors/testing.h"
#include "trainer/models/model.h"

namespace trainwreck {
namespace {

class Product : public Layer {
 public:
  Product() : weight(register_parameter("weight", at::ones({4}))) {}
  // relu keeps its output for the backward pass.
  at::Tensor Forward(const at::Tensor& x) const { return Announce(at::relu(x * weight)); }
  at::Tensor weight;
};

class OneProduct : public Model {
 public:
  OneProduct() : layer(register_module("layer", std::make_shared<Product>())) {}
  at::Tensor Loss(const Batch&) override { return layer->Forward(at::ones({4})).sum(); }
  std::shared_ptr<Product> layer;
};

struct WrongOutput {
  WrongOutput(FaultBench& bench, const std::string& module, Trigger trigger = {})
      : injector(bench.Make("model.corrupt_output",
                            {{"module", module}, {"kind", "set"}, {"value", 9.0}}, trigger)) {
    bench.clock.stage = Stage::kForward;
    static_cast<PartWrapper&>(*injector).Wrap(std::shared_ptr<Model>(model));
  }
  double Loss() { return model->Loss({}).item<double>(); }
  std::shared_ptr<OneProduct> model = std::make_shared<OneProduct>();
  std::unique_ptr<Injector> injector;
};

TEST(CorruptOutput, DamagesTheFirstPassOfAStepAndGradientsGoOn) {
  FaultBench bench;
  WrongOutput it(bench, "layer");
  const at::Tensor loss = it.model->Loss({});
  EXPECT_EQ(loss.item<double>(), 3 + 9);
  loss.backward();
  EXPECT_EQ(it.model->layer->weight.grad().sum().item<double>(), 4);
  EXPECT_EQ(it.Loss(), 4) << "computed again";
  ++bench.clock.step;
  EXPECT_EQ(it.Loss(), 12);
  ASSERT_EQ(bench.fired().size(), 2U);
  EXPECT_EQ(bench.fired()[0]["module"], "layer");
  EXPECT_EQ(bench.fired()[0]["before"], 1.0);
  EXPECT_EQ(bench.fired()[0]["after"], 9.0);
  EXPECT_EQ(bench.fired()[0]["changed"], 1);
}

TEST(CorruptOutput, SparesOtherStepsModulesAndEvaluations) {
  FaultBench bench;
  WrongOutput later(bench, "layer", {.from = 1}), other(bench, "layers");
  EXPECT_EQ(later.Loss(), 4);
  EXPECT_EQ(other.Loss(), 4);
  ++bench.clock.step;
  bench.clock.stage = Stage::kEvaluate;
  EXPECT_EQ(later.Loss(), 4);
  EXPECT_TRUE(bench.fired().empty());
  bench.clock.stage = Stage::kForward;
  EXPECT_EQ(later.Loss(), 12);
}

}  // namespace
}  // namespace trainwreck
