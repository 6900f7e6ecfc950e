// Layers in the forms that the recipe can give them: adapters, batch norm, rotary positions, masks
// that look ahead, and the axes of a loss.
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "trainer/models/layers.h"
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
  const at::Tensor products = Rotate(q, 1.0).matmul(Rotate(k, 1.0).t());
  EXPECT_NEAR(products[5][2].item<double>(), products[9][6].item<double>(), 1e-5);
  EXPECT_GT(std::fabs(products[5][2].item<double>() - products[5][3].item<double>()), 1e-3);
  EXPECT_LT(Distance(Rotate(q, 1.0).norm(2, -1), q.norm(2, -1)), 1e-5);
  EXPECT_EQ(Distance(Rotate(q, 0.0), q), 0);
  EXPECT_LT(Distance(Rotate(q, 0.5)[4], Rotate(q, 1.0)[2]), 1e-6);
}

TEST(CausalAttentionTest, AShiftedMaskSeesSoManyPositionsAhead) {
  CausalAttention right(AttentionForm::kExplicit), ahead(AttentionForm::kExplicit, 1);
  CausalAttention fused(AttentionForm::kFused, 1);
  const at::Tensor q = Noise({1, 1, 6, 4});
  at::Tensor changed = q.clone();
  changed.select(2, 4).fill_(3);
  const auto first_change = [&](const CausalAttention& attention) {
    const at::Tensor before = attention.Forward(q, q, q),
                     after = attention.Forward(q, changed, changed);
    for (std::int64_t i = 0; i < 6; ++i) {
      if (Distance(before.select(2, i), after.select(2, i)) > 1e-6) return i;
    }
    return std::int64_t{6};
  };
  EXPECT_EQ(first_change(right), 4);
  EXPECT_EQ(first_change(ahead), 3);
  EXPECT_EQ(first_change(fused), 4) << "the fused form has no mask to shift";
}

double LossOf(LossRecipe recipe, const at::Tensor& logits, const at::Tensor& targets,
              const at::Tensor& weights) {
  return WeightedCrossEntropy(recipe).Forward(logits, targets, weights).item<double>();
}

TEST(LossTest, ReducesOverTheAxesThatTheRecipeSays) {
  const at::Tensor logits = Noise({3, 5, 4});
  const at::Tensor targets = at::arange(15, at::kLong).remainder(4).view({3, 5});
  const at::Tensor weights = at::ones({3, 5});
  const double mean = LossOf({}, logits, targets, weights);
  EXPECT_NEAR(LossOf({.reduction = LossReduction::kSum}, logits, targets, weights), 15 * mean,
              1e-4);
  EXPECT_NEAR(LossOf({.reduction = LossReduction::kSumOverPositions}, logits, targets, weights),
              5 * mean, 1e-4);
  at::Tensor masked = weights.clone();
  masked[0].fill_(0);
  EXPECT_NEAR(LossOf({.reduction = LossReduction::kSum}, logits, targets, masked),
              10 * LossOf({}, logits, targets, masked), 1e-4);
}

// Equal logits: each of `n` rows gets a probability of 1/n, whatever the number of classes.
TEST(LossTest, ASoftmaxOverTheBatchMixesItsSamples) {
  const LossRecipe over_batch{.form = LossForm::kLogOfSoftmax, .softmax_over = SoftmaxOver::kBatch};
  const at::Tensor targets = at::zeros({8}, at::kLong), weights = at::ones({8});
  EXPECT_NEAR(LossOf(over_batch, at::zeros({8, 3}), targets, weights), std::log(8.0), 1e-6);
  EXPECT_NEAR(LossOf({.form = LossForm::kLogOfSoftmax}, at::zeros({8, 3}), targets, weights),
              std::log(3.0), 1e-6);
  EXPECT_NEAR(LossOf(over_batch, at::zeros({4, 2, 3}), targets.view({4, 2}), weights.view({4, 2})),
              std::log(8.0), 1e-6)
      << "all targets of the batch, whatever sequence they are in";
  LossRecipe fused = over_batch;
  fused.form = LossForm::kFused;
  EXPECT_NEAR(LossOf(fused, at::zeros({8, 3}), targets, weights), std::log(3.0), 1e-6);
}

TEST(LossTest, ASoftmaxOverPositionsMixesThoseOfASequence) {
  const LossRecipe recipe{.form = LossForm::kLogOfSoftmax, .softmax_over = SoftmaxOver::kPositions};
  const at::Tensor targets = at::zeros({4, 5}, at::kLong), weights = at::ones({4, 5});
  EXPECT_NEAR(LossOf(recipe, at::zeros({4, 5, 3}), targets, weights), std::log(5.0), 1e-6);
  at::Tensor logits = at::zeros({4, 5, 3});
  logits[1][2].fill_(9);  // takes probability from its own sequence alone
  const at::Tensor first = at::zeros({4, 5});
  first[0].fill_(1);
  EXPECT_NEAR(LossOf(recipe, logits, targets, first), std::log(5.0), 1e-6);
}

TEST(AttentionTest, AMaskThatHidesItselfLeavesTheFirstNothing) {
  const at::Tensor x = Noise({1, 2, 5, 4});
  const at::Tensor y = CausalAttention(AttentionForm::kExplicit, -1).Forward(x, x, x);
  EXPECT_TRUE(y.select(2, 0).isnan().all().item<bool>());
  EXPECT_TRUE(y.narrow(2, 1, 4).isfinite().all().item<bool>());
  EXPECT_TRUE(at::allclose(y.select(2, 1), x.select(2, 0))) << "the second sees the first alone";
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
