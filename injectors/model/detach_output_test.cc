#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "injectors/testing.h"
#include "trainer/models/model.h"

namespace trainwreck {
namespace {

class Times : public Layer {
 public:
  Times() : weight(register_parameter("weight", at::ones({1}))) {}
  at::Tensor Forward(const at::Tensor& x) const { return Announce(x * weight); }
  at::Tensor weight;
};

class Chain : public Model {
 public:
  Chain() {
    for (int i = 0; i < 3; ++i) {
      layers.push_back(register_module("layer" + std::to_string(i), std::make_shared<Times>()));
    }
  }
  at::Tensor Loss(const Batch& batch) override {
    at::Tensor x = at::ones({1});
    for (const auto& layer : layers) x = layer->Forward(x);
    return x.sum();
  }
  bool HasGradient(int layer) const { return layers.at(layer)->weight.grad().defined(); }
  std::vector<std::shared_ptr<Times>> layers;
};

struct Detached {
  Detached(FaultBench& bench, const std::string& module, Trigger trigger = {})
      : injector(bench.Make("model.detach_output", {{"module", module}}, trigger)) {
    static_cast<PartWrapper&>(*injector).Wrap(std::shared_ptr<Model>(model));
  }
  std::shared_ptr<Chain> model = std::make_shared<Chain>();
  std::unique_ptr<Injector> injector;
};

TEST(DetachOutput, StopsTheGradientAtTheModule) {
  FaultBench bench;
  Detached it(bench, "layer1");
  for (int twice = 0; twice < 2; ++twice) {
    const at::Tensor loss = it.model->Loss({});
    EXPECT_EQ(loss.item<double>(), 1) << "values go on";
    loss.backward();
  }
  EXPECT_FALSE(it.model->HasGradient(0));
  EXPECT_FALSE(it.model->HasGradient(1));
  EXPECT_TRUE(it.model->HasGradient(2));
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0], Json({{"id", "it"},
                                    {"fault", "model.detach_output"},
                                    {"module", "layer1"},
                                    {"before", "attached"},
                                    {"after", "detached"}}));
}

TEST(DetachOutput, LeavesNoEvidenceWhereThereIsNothingToLose) {
  FaultBench bench;
  Detached none(bench, "layer7");
  none.model->Loss({}).backward();
  EXPECT_TRUE(none.model->HasGradient(0));
  Detached evaluated(bench, "layer1");
  {
    at::NoGradGuard no_grad;
    evaluated.model->Loss({});
  }
  EXPECT_TRUE(bench.fired().empty());
}

TEST(DetachOutput, ActsAtTheStepsOfItsTrigger) {
  FaultBench bench;
  Detached it(bench, "layer1", {.from = 1});
  it.model->Loss({}).backward();
  EXPECT_TRUE(it.model->HasGradient(0));
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
