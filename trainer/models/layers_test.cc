// The layers and losses that come in a stable and in fragile forms, and the models made of them.
#include "trainer/models/layers.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "trainer/models/models.h"
#include "trainer/models/precision.h"

namespace trainwreck {
namespace {

at::Tensor Draw(at::IntArrayRef shape) {
  at::manual_seed(3);
  return at::randn(shape);
}

double Apart(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

bool IsFinite(const at::Tensor& x) { return x.isfinite().all().item<bool>(); }

TEST(AttentionTest, ExplicitFormsEqualTheFusedOne) {
  const at::Tensor q = Draw({2, 3, 5, 8}), k = q.flip(2), v = q.flip(3);
  const at::Tensor fused = CausalAttention(AttentionForm::kFused).Forward(q, k, v);
  for (const auto form : {AttentionForm::kExplicit, AttentionForm::kExplicitFp32}) {
    EXPECT_LT(Apart(CausalAttention(form).Forward(q, k, v), fused), 1e-6);
  }
}

TEST(AttentionTest, ScoresOverflowInFp16Only) {
  const at::Tensor q = at::full({1, 1, 4, 8}, 300.0).to(at::kHalf);  // products of 720,000
  AutocastGuard autocast(Autocast::Of(Precision::kFp16, c10::kCPU));
  EXPECT_FALSE(IsFinite(CausalAttention(AttentionForm::kExplicit).Forward(q, q, q)));
  EXPECT_TRUE(IsFinite(CausalAttention(AttentionForm::kExplicitFp32).Forward(q, q, q)));
}

TEST(LossTest, FormsAgreeOnModerateLogits) {
  const at::Tensor logits = Draw({6, 5}), weights = at::arange(1, 7).to(at::kFloat);
  const at::Tensor targets = at::tensor({0, 1, 2, 3, 4, 0}, at::kLong);
  const double fused = WeightedCrossEntropy().Forward(logits, targets, weights).item<double>();
  for (const auto form :
       {LossForm::kLogOfSoftmax, LossForm::kPlainSoftmax, LossForm::kPlainLogSumExp}) {
    EXPECT_NEAR(
        WeightedCrossEntropy({.form = form}).Forward(logits, targets, weights).item<double>(),
        fused, 1e-6);
  }
  EXPECT_NEAR(
      WeightedCrossEntropy({.weight = 0.25}).Forward(logits, targets, weights).item<double>(),
      0.25 * fused, 1e-6);
}

// Each form fails where its operations leave the range of fp32, and nowhere else.
TEST(LossTest, FragileFormsFailWhereTheyMust) {
  const auto loss = [](LossForm form, double first, double second, double eps = 0) {
    const at::Tensor logits = at::tensor({first, second}).to(at::kFloat).view({1, 2});
    return WeightedCrossEntropy({.form = form, .eps = eps})
        .Forward(logits, at::zeros({1}, at::kLong), at::ones({1}))
        .item<double>();
  };
  EXPECT_NEAR(loss(LossForm::kFused, -150, 0), 150, 1e-4);
  EXPECT_TRUE(std::isinf(loss(LossForm::kLogOfSoftmax, -150, 0)));
  EXPECT_NEAR(loss(LossForm::kLogOfSoftmax, -150, 0, 1e-12), 27.6, 0.1);
  EXPECT_NEAR(loss(LossForm::kLogOfSoftmax, 150, 0), 0, 1e-6);
  EXPECT_TRUE(std::isnan(loss(LossForm::kPlainSoftmax, 90, 0)));
  EXPECT_TRUE(std::isnan(loss(LossForm::kPlainSoftmax, 90, 0, 1e-8)));
  EXPECT_NEAR(loss(LossForm::kPlainSoftmax, 80, 0), 0, 1e-6);
  EXPECT_TRUE(std::isinf(loss(LossForm::kPlainLogSumExp, -120, -110)));
  EXPECT_NEAR(loss(LossForm::kPlainLogSumExp, -60, -50), 10, 1e-3);
  EXPECT_NEAR(loss(LossForm::kFused, -120, -110), 10, 1e-3);
}

TEST(LossTest, AMeanPerSequenceCountsEverySequenceAlike) {
  const at::Tensor logits = Draw({2, 3, 4});
  const at::Tensor targets = at::tensor({0, 1, 2, 3, 0, 1}, at::kLong).view({2, 3});
  const at::Tensor weights = at::tensor({1.0f, 1.0f, 1.0f, 0.0f, 0.0f, 1.0f}).view({2, 3});
  const auto of_sequence = [&](int i) {
    return WeightedCrossEntropy().Forward(logits[i], targets[i], weights[i]).item<double>();
  };
  const auto mean = [&](const at::Tensor& w, bool guarded) {
    return WeightedCrossEntropy({.per_sequence = true, .guard_denominator = guarded})
        .Forward(logits, targets, w)
        .item<double>();
  };
  EXPECT_NEAR(mean(weights, false), (of_sequence(0) + of_sequence(1)) / 2, 1e-6);
  const at::Tensor empty = at::tensor({1.0f, 1.0f, 1.0f, 0.0f, 0.0f, 0.0f}).view({2, 3});
  EXPECT_TRUE(std::isnan(mean(empty, false)));
  EXPECT_NEAR(mean(empty, true), of_sequence(0) / 2, 1e-6);
}

TEST(NormaliseTest, FormsAgreeAwayFromZero) {
  const at::Tensor x = Draw({4, 8});
  const at::Tensor expected = x / x.norm(2, {-1}, /*keepdim=*/true);
  for (const auto form : {NormaliseForm::kClamped, NormaliseForm::kEpsInside,
                          NormaliseForm::kEpsOutside, NormaliseForm::kPlain}) {
    EXPECT_LT(Apart(Normalise(form).Forward(x), expected), 1e-6);
  }
}

TEST(NormaliseTest, AtZeroOnePlaceOfEpsilonSavesTheBackwardPass) {
  const auto forward_and_gradient = [](NormaliseForm form) {
    at::Tensor x = at::zeros({1, 4}).set_requires_grad(true);
    const at::Tensor y = Normalise(form).Forward(x);
    y.sum().backward();
    return std::pair(IsFinite(y), IsFinite(x.grad()));
  };
  EXPECT_EQ(forward_and_gradient(NormaliseForm::kClamped), std::pair(true, true));
  EXPECT_EQ(forward_and_gradient(NormaliseForm::kEpsInside), std::pair(true, true));
  EXPECT_EQ(forward_and_gradient(NormaliseForm::kEpsOutside), std::pair(true, false));
  EXPECT_EQ(forward_and_gradient(NormaliseForm::kPlain).first, false);
}

TEST(StandardiseTest, OnePassCancelsFarFromZero) {
  const at::Tensor x = Draw({64, 32});
  const at::Tensor two = Standardise(InputNorm::kTwoPass).Forward(x);
  EXPECT_LT(Apart(Standardise(InputNorm::kOnePass).Forward(x), two), 1e-4);
  EXPECT_LT(Apart(Standardise(InputNorm::kOnePassClamped).Forward(x), two), 1e-4);
  const at::Tensor far = x + 20000;
  EXPECT_TRUE(at::isnan(Standardise(InputNorm::kOnePass).Forward(far)).any().item<bool>());
  EXPECT_TRUE(IsFinite(Standardise(InputNorm::kOnePassClamped).Forward(far)));
  EXPECT_LT(Apart(Standardise(InputNorm::kTwoPass).Forward(far), two), 0.02);
}

TEST(PrototypeTest, LogitsAreCosinesOrDistances) {
  ModelRecipe recipe{.layers = 1, .width = 8};
  recipe.logit_scale = 3;
  Batch batch{.ids = {0, 1},
              .inputs = Draw({2, 4}),
              .targets = at::tensor({1, 2}, at::kLong),
              .weights = at::ones({2})};
  const auto parameter = [](Model& model, const char* name) {
    return model.named_parameters()[name].detach();
  };
  for (const auto kind : {SimilarityKind::kCosine, SimilarityKind::kDistance}) {
    recipe.similarity = kind;
    const auto model = MakePrototype(recipe, 4, 3, 1);
    const at::Tensor embedding =
        at::matmul(at::matmul(batch.inputs, parameter(*model, "layers.0.weight").t()).relu(),
                   parameter(*model, "embed.weight").t());
    const at::Tensor prototypes = parameter(*model, "prototypes.weight");
    const auto unit = [](const at::Tensor& x) { return x / x.norm(2, {-1}, true); };
    const at::Tensor logits = kind == SimilarityKind::kCosine
                                  ? 3 * at::matmul(unit(embedding), unit(prototypes).t())
                                  : -3 * (embedding.unsqueeze(1) - prototypes).square().sum(-1);
    const double expected =
        WeightedCrossEntropy().Forward(logits, batch.targets, batch.weights).item<double>();
    EXPECT_NEAR(model->Loss(batch).item<double>(), expected, 1e-5);
  }
}

TEST(RnnTest, ATokenChangesTheLossOfThoseAfterItOnly) {
  const auto model = MakeRnn({.width = 16}, 8, 1);
  const auto loss_at = [&](at::Tensor tokens, std::int64_t position) {
    Batch batch{.ids = {0},
                .inputs = tokens,
                .targets = at::zeros({1, 6}, at::kLong),
                .weights = at::zeros({1, 6})};
    batch.weights[0][position].fill_(1);
    return model->Loss(batch).item<double>();
  };
  const at::Tensor tokens = at::tensor({1, 2, 3, 4, 5, 6}, at::kLong).view({1, 6});
  at::Tensor changed = tokens.clone();
  changed[0][2].fill_(7);
  for (std::int64_t t = 0; t < 6; ++t) {
    if (t < 2) {
      EXPECT_EQ(loss_at(tokens, t), loss_at(changed, t)) << t;
    } else {
      EXPECT_NE(loss_at(tokens, t), loss_at(changed, t)) << t;
    }
  }
}

TEST(GptTest, NormOfQueriesAndKeysTakesTheirSizeAway) {
  const at::Tensor tokens = at::arange(8, at::kLong).view({1, 8});
  const auto change = [&](bool qk_norm) {
    ModelRecipe recipe{.layers = 1, .width = 16, .heads = 2};
    recipe.qk_norm = qk_norm;
    const auto model = MakeGpt(recipe, 8, 8, 1);
    at::NoGradGuard no_grad;
    at::Tensor weight = model->named_parameters()["blocks.0.attn.qkv.weight"].narrow(0, 0, 32);
    weight.mul_(30);  // away from the norm's epsilon
    const at::Tensor before = model->Logits(tokens);
    weight.mul_(30);  // queries and keys, not values
    return Apart(model->Logits(tokens), before);
  };
  EXPECT_LT(change(true), 1e-4);
  EXPECT_GT(change(false), 1e-3);
}

}  // namespace
}  // namespace trainwreck
