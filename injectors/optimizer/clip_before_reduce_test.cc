#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "injectors/testing.h"
#include "trainer/models/model.h"

namespace trainwreck {
namespace {

class FourWeights : public Model {
 public:
  FourWeights() { weight = register_parameter("weight", at::full({4}, 1.0)); }
  at::Tensor Loss(const Batch& batch) override { return weight.sum(); }
  at::Tensor weight;
};

double NormAfterClipping(FaultBench& bench, double gradient) {
  const auto clip = bench.Make("optimizer.clip_before_reduce");
  PartWrapper& wrapper = *clip;
  auto model = std::make_shared<FourWeights>();
  wrapper.Wrap(std::shared_ptr<Model>(model));
  const auto hook = wrapper.MakeHook();
  model->weight.mutable_grad() = at::full({4}, gradient);
  hook->OnBackwardDone(0);
  return model->weight.grad().norm().item<double>();
}

TEST(ClipBeforeReduce, ClipsARanksOwnGradientToTheRecipesNorm) {
  FaultBench bench(1, 2);
  bench.recipe["optimizer.clip_norm"] = 0.5;
  EXPECT_NEAR(NormAfterClipping(bench, 3.0), 0.5, 1e-6);
  EXPECT_EQ(bench.fired()[0]["before"], 6.0);
  EXPECT_EQ(bench.fired()[0]["after"], 0.5);
  EXPECT_NEAR(NormAfterClipping(bench, 0.1), 0.2, 1e-6) << "a short one stays";
  EXPECT_EQ(bench.fired().size(), 1U);
}

TEST(ClipBeforeReduce, LeavesARecipeWithoutClippingAlone) {
  FaultBench bench(1, 2);
  EXPECT_NEAR(NormAfterClipping(bench, 3.0), 6.0, 1e-6);
  EXPECT_TRUE(bench.fired().empty());
}

}  // namespace
}  // namespace trainwreck
