// Layers in the forms that the recipe can give them (adapters, batch norm, rotary positions), and
// with other functions in them.
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "trainer/models/layers.h"
#include "trainer/models/model.h"
#include "trainer/models/models.h"

namespace trainwreck {
namespace {

at::Tensor Noise(at::IntArrayRef shape) {
  at::Generator generator = MakeGenerator(7);
  return at::randn(shape, generator);
}

double Distance(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

TEST(AdapterTest, AddsNothingAtFirstAndHasAGradient) {
  at::Generator generator = MakeGenerator(1), same = MakeGenerator(1);
  Linear plain(6, 4, 0.5, generator), adapted(6, 4, 0.5, same);
  adapted.AddAdapter(2, same);
  const at::Tensor x = Noise({3, 6});
  EXPECT_EQ(Distance(plain.Forward(x), adapted.Forward(x)), 0);
  auto parameters = adapted.named_parameters();
  EXPECT_EQ(parameters["lora_a"].sizes(), at::IntArrayRef({2, 6}));
  EXPECT_EQ(parameters["lora_b"].sizes(), at::IntArrayRef({4, 2}));
  adapted.Forward(x).sum().backward();
  EXPECT_GT(parameters["lora_b"].grad().abs().max().item<double>(), 0);
  parameters["lora_b"].data().fill_(1);
  const at::Tensor added = x.matmul(parameters["lora_a"].t()).sum(1, /*keepdim=*/true);
  EXPECT_LT(Distance(adapted.Forward(x), plain.Forward(x) + added), 1e-5);
}

TEST(BatchNormTest, TrainsOnTheBatchAndJudgesByRunningMeans) {
  BatchNorm norm(2);
  const at::Tensor x = Noise({64, 2}) * 3 + 5;
  const at::Tensor trained = norm.Forward(x);
  EXPECT_LT(trained.mean(0).abs().max().item<double>(), 1e-5);
  EXPECT_NEAR(norm.named_buffers()["running_mean"][0].item<double>(),
              0.1 * x.mean(0)[0].item<double>(), 1e-5);
  for (int i = 0; i < 200; ++i) norm.Forward(x);
  norm.eval();
  EXPECT_LT(Distance(norm.Forward(x), trained), 0.05);
  const at::Tensor alone = x.narrow(0, 0, 1);
  EXPECT_LT(Distance(norm.Forward(alone), norm.Forward(x).narrow(0, 0, 1)), 1e-6)
      << "a sample is judged alone";
}

TEST(RotateTest, ProductsDependOnDistancesAlone) {
  const at::Tensor q = Noise({1, 8}).expand({10, 8}), k = Noise({2, 8})[1].expand({10, 8});
  const at::Tensor products = Rotary(1.0).Forward(q).matmul(Rotary(1.0).Forward(k).t());
  EXPECT_NEAR(products[5][2].item<double>(), products[9][6].item<double>(), 1e-5);
  EXPECT_GT(std::fabs(products[5][2].item<double>() - products[5][3].item<double>()), 1e-3);
  EXPECT_LT(Distance(Rotary(1.0).Forward(q).norm(2, -1), q.norm(2, -1)), 1e-5);
  EXPECT_EQ(Distance(Rotary(0.0).Forward(q), q), 0);
  EXPECT_LT(Distance(Rotary(0.5).Forward(q)[4], Rotary(1.0).Forward(q)[2]), 1e-6);
}

TEST(CausalAttentionTest, SeesWhatItsMaskLeaves) {
  CausalAttention causal(AttentionForm::kExplicit), blind(AttentionForm::kExplicit);
  CausalAttention fused(AttentionForm::kFused);
  const auto nothing = [](std::int64_t length, at::Device) {
    return at::ones({length, length}, at::kBool);
  };
  blind.set_mask(nothing);
  fused.set_mask(nothing);
  const at::Tensor x = Noise({1, 2, 5, 4});
  EXPECT_TRUE(at::equal(LaterPositions(3, at::kCPU), at::ones({3, 3}, at::kBool).triu(1)));
  EXPECT_TRUE(at::allclose(causal.Forward(x, x, x).select(2, 0), x.select(2, 0)))
      << "the first sees itself alone";
  EXPECT_TRUE(blind.Forward(x, x, x).isnan().all().item<bool>());
  EXPECT_TRUE(at::allclose(fused.Forward(x, x, x), causal.Forward(x, x, x), 1e-5, 1e-6))
      << "the fused form has a mask of its own";
}

TEST(LossTest, IsMadeOfASoftmaxAndAReduction) {
  const at::Tensor logits = Noise({3, 5, 4});
  const at::Tensor targets = at::arange(15, at::kLong).remainder(4).view({3, 5});
  const at::Tensor weights = at::ones({3, 5});
  for (const LossForm form : {LossForm::kFused, LossForm::kLogOfSoftmax}) {
    WeightedCrossEntropy loss({.form = form});
    const double plain = loss.Forward(logits, targets, weights).item<double>();
    loss.set_reduce([](const at::Tensor& nll, const at::Tensor& w) { return (nll * w).sum(); });
    EXPECT_NEAR(loss.Forward(logits, targets, weights).item<double>(), 15 * plain, 1e-4);
    loss.set_softmax([](const at::Tensor& z) { return at::ones(z.sizes()); });
    const double certain = loss.Forward(logits, targets, weights).item<double>();
    EXPECT_NEAR(certain, form == LossForm::kFused ? 15 * plain : 0, 1e-4)
        << "the fused form has a softmax of its own";
  }
}

TEST(GptTest, DropoutActsInTrainingAlone) {
  const at::Tensor tokens = at::tensor({1, 2, 3, 4, 5, 6}, at::kLong).view({1, 6});
  const auto model = MakeGpt({.layers = 1, .width = 16, .dropout = 0.5}, 8, 6, 1);
  const auto plain = MakeGpt({.layers = 1, .width = 16}, 8, 6, 1);
  EXPECT_FALSE(at::equal(model->Logits(tokens), model->Logits(tokens)));
  struct Outputs : ForwardHook {
    void OnOutput(const std::string& module, at::Tensor&) override { modules.insert(module); }
    std::set<std::string> modules;
  } outputs;
  HookScope scope(*model, &outputs);
  model->eval();
  EXPECT_TRUE(at::equal(model->Logits(tokens), plain->Logits(tokens)));
  EXPECT_TRUE(outputs.modules.contains("blocks.0.drop1"));
  EXPECT_TRUE(outputs.modules.contains("blocks.0.drop2"));
}

TEST(GptTest, PositionsAreLearnedRotaryOrNone) {
  const at::Tensor tokens = at::tensor({1, 2, 3, 4, 5, 6}, at::kLong).view({1, 6});
  const at::Tensor swapped = at::tensor({2, 1, 3, 4, 5, 6}, at::kLong).view({1, 6});
  const auto order_matters = [&](Positions positions, double scale) {
    ModelRecipe recipe{.layers = 1, .width = 16, .positions = positions, .rotary_scale = scale};
    const auto model = MakeGpt(recipe, 8, 6, 1);
    EXPECT_EQ(model->named_parameters().contains("pos.weight"), positions == Positions::kLearned);
    return Distance(model->Logits(tokens).select(1, 5), model->Logits(swapped).select(1, 5)) > 1e-7;
  };
  EXPECT_TRUE(order_matters(Positions::kLearned, 1));
  EXPECT_TRUE(order_matters(Positions::kRotary, 1));
  EXPECT_FALSE(order_matters(Positions::kRotary, 0));
  EXPECT_FALSE(order_matters(Positions::kNone, 1));
}

}  // namespace
}  // namespace trainwreck
