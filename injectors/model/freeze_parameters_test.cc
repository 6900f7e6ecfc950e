#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <gtest/gtest.h>

#include "injectors/testing.h"
#include "trainer/models/model.h"

namespace trainwreck {
namespace {

class Layer : public torch::nn::Module {
 public:
  Layer() {
    weight = register_parameter("weight", at::ones({2, 2}));
    bias = register_parameter("bias", at::ones({2}));
  }
  at::Tensor weight;
  at::Tensor bias;
};

class TwoLayers : public Model {
 public:
  TwoLayers() {
    body = register_module("body", std::make_shared<Layer>());
    head = register_module("head", std::make_shared<Layer>());
  }
  at::Tensor Loss(const Batch& batch) override {
    return (body->weight.sum() + body->bias.sum()) * (head->weight.sum() + head->bias.sum());
  }
  std::shared_ptr<Layer> body;
  std::shared_ptr<Layer> head;
};

struct Frozen {
  Frozen(FaultBench& bench, const std::vector<std::string>& globs, Trigger trigger = {})
      : injector(bench.Make("model.freeze_parameters", {{"parameters", globs}}, trigger)) {
    PartWrapper& wrapper = *injector;
    EXPECT_EQ(wrapper.Wrap(std::shared_ptr<Model>(model)), model);
    hook = wrapper.MakeHook();
  }
  std::shared_ptr<TwoLayers> model = std::make_shared<TwoLayers>();
  std::unique_ptr<Injector> injector;
  std::unique_ptr<LoopHook> hook;
};

TEST(FreezeParameters, FreezesWhatMatchesWhenTheModelIsBuilt) {
  FaultBench bench;
  Frozen it(bench, {"head.*"});
  EXPECT_FALSE(it.model->head->weight.requires_grad());
  EXPECT_FALSE(it.model->head->bias.requires_grad());
  EXPECT_TRUE(it.model->body->weight.requires_grad());
  ASSERT_EQ(bench.fired().size(), 1U);
  EXPECT_EQ(bench.fired()[0], Json({{"id", "it"},
                                    {"fault", "model.freeze_parameters"},
                                    {"parameters", {"head.weight", "head.bias"}},
                                    {"elements", 6},
                                    {"before", "trainable"},
                                    {"after", "frozen"}}));
  it.model->Loss({}).backward();
  EXPECT_FALSE(it.model->head->weight.grad().defined());
  EXPECT_TRUE(it.model->body->weight.grad().defined());
}

TEST(FreezeParameters, TakesSeveralGlobs) {
  FaultBench bench;
  Frozen it(bench, {"head.bias", "*.weight"});
  EXPECT_EQ(bench.fired().at(0)["parameters"], Json({"body.weight", "head.weight", "head.bias"}));
  EXPECT_TRUE(it.model->body->bias.requires_grad());
}

TEST(FreezeParameters, LeavesNoEvidenceWhereNothingMatches) {
  FaultBench bench;
  Frozen it(bench, {"tail.*"});
  EXPECT_TRUE(bench.fired().empty());
}

TEST(FreezeParameters, LeavesNoEvidenceWhereAllWasFrozenAlready) {
  FaultBench bench;
  Frozen first(bench, {"head.*"});
  const auto second = bench.Make("model.freeze_parameters", {{"parameters", {"head.*"}}});
  static_cast<PartWrapper&>(*second).Wrap(std::shared_ptr<Model>(first.model));
  EXPECT_EQ(bench.fired().size(), 1U);
}

TEST(FreezeParameters, CanFreezeInTheMiddleOfTraining) {
  FaultBench bench;
  Frozen it(bench, {"head.*"}, {.from = 3});
  EXPECT_TRUE(bench.fired().empty());
  for (bench.clock.step = 0; bench.clock.step < 3; ++bench.clock.step) {
    it.hook->OnStepBegin(bench.clock.step);
    EXPECT_TRUE(it.model->head->weight.requires_grad());
    it.model->Loss({}).backward();
  }
  it.hook->OnStepBegin(bench.clock.step);
  EXPECT_FALSE(it.model->head->weight.requires_grad());
  EXPECT_FALSE(it.model->head->weight.grad().defined()) << "of the step before";
  EXPECT_EQ(bench.fired().size(), 1U);
}

// An audit that finds and unfreezes them is a remedy; a fault that comes back each step would void
// it.
TEST(FreezeParameters, StaysAwayOnceUnfrozen) {
  FaultBench bench;
  Frozen it(bench, {"head.*"});
  it.model->head->weight.set_requires_grad(true);
  it.hook->OnStepBegin(0);
  EXPECT_TRUE(it.model->head->weight.requires_grad());
  EXPECT_EQ(bench.fired().size(), 1U);
}

}  // namespace
}  // namespace trainwreck
