// The parts of mixed precision, each alone: autocast, loss scaling, activation checkpointing.
#include "trainer/models/precision.h"

#include <ATen/autocast_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/function.h>

#include <cmath>

#include "trainer/build.h"
#include "trainer/data/loader.h"
#include "trainer/devices/cpu_memory.h"
#include "trainer/models/activation_checkpointing.h"
#include "trainer/models/model.h"
#include "trainer/optimizers/scaler.h"
#include "trainer/test_run.h"

namespace trainwreck {
namespace {

TEST(AutocastGuard, HoldsWithinAndGivesBackWhatWas) {
  const at::Tensor a = at::ones({4, 4});
  EXPECT_EQ(at::matmul(a, a).scalar_type(), at::kFloat);
  {
    AutocastGuard outer(Autocast::Of(Precision::kFp16, at::kCPU));
    EXPECT_EQ(at::matmul(a, a).scalar_type(), at::kHalf);
    {
      AutocastGuard inner(Autocast::Of(Precision::kFp32, at::kCPU));
      EXPECT_EQ(at::matmul(a, a).scalar_type(), at::kFloat);
    }
    EXPECT_EQ(at::matmul(a, a).scalar_type(), at::kHalf);
    EXPECT_EQ(Autocast::Current(at::kCPU).dtype, at::kHalf);
  }
  EXPECT_EQ(at::matmul(a, a).scalar_type(), at::kFloat);
  AutocastGuard bf16(Autocast::Of(Precision::kBf16, at::kCPU));
  EXPECT_EQ(at::matmul(a, a).scalar_type(), at::kBFloat16);
}

ScalerRecipe Dynamic() {
  return {.kind = ScalerKind::kDynamic,
          .init_scale = 8,
          .growth_factor = 4,
          .backoff_factor = 0.25,
          .growth_interval = 3};
}

std::vector<at::Tensor> Gradients(float value) {
  return {at::full({5}, value), at::full({2, 3}, 16.0)};
}

TEST(LossScaler, NoneTouchesNothing) {
  const auto scaler = MakeLossScaler({.kind = ScalerKind::kNone}, at::kCPU);
  EXPECT_EQ(scaler->scale(), 1);
  EXPECT_FALSE(scaler->skips_updates());
  const auto gradients = Gradients(kInf);
  EXPECT_FALSE(scaler->Unscale(gradients));
  EXPECT_EQ(gradients[1].max().item<float>(), 16);
  StateDict state;
  scaler->Save(state);
  EXPECT_TRUE(state.empty());
}

TEST(LossScaler, ScalesALossByItsShareAndTheScale) {
  const at::Tensor loss = at::full({}, 3.0);
  const auto none = MakeLossScaler({.kind = ScalerKind::kNone}, at::kCPU);
  EXPECT_TRUE(none->Scale(loss, 1).is_same(loss));
  EXPECT_EQ(none->Scale(loss, 0.25).item<double>(), 0.75);
  const auto by_8 = MakeLossScaler({.kind = ScalerKind::kStatic, .init_scale = 8}, at::kCPU);
  EXPECT_EQ(by_8->Scale(loss, 0.25).item<double>(), 6);
  EXPECT_EQ(by_8->Scale(loss, 1).item<double>(), 24);
}

TEST(LossScaler, UnscalesAndSeesEveryOverflow) {
  for (ScalerKind kind : {ScalerKind::kStatic, ScalerKind::kDynamic}) {
    ScalerRecipe recipe = Dynamic();
    recipe.kind = kind;
    const auto scaler = MakeLossScaler(recipe, at::kCPU);
    EXPECT_TRUE(scaler->skips_updates());
    auto gradients = Gradients(24);
    EXPECT_FALSE(scaler->Unscale(gradients));
    EXPECT_TRUE(gradients[0].eq(3.0).all().item<bool>());
    EXPECT_TRUE(gradients[1].eq(2.0).all().item<bool>());
    for (float bad : {kInf, -kInf, kNan}) EXPECT_TRUE(scaler->Unscale(Gradients(bad))) << bad;
    gradients = Gradients(1);
    gradients[1][1][2] = kNan;  // one element, the last
    EXPECT_TRUE(scaler->Unscale(gradients));
    EXPECT_FALSE(scaler->Unscale({})) << "everything is frozen";
  }
}

TEST(LossScaler, StaticNeverMoves) {
  const auto scaler = MakeLossScaler({.kind = ScalerKind::kStatic, .init_scale = 1e15}, at::kCPU);
  const double scale = scaler->scale();
  EXPECT_NEAR(scale, 1e15, 1e8);
  for (bool overflowed : {true, false, true, true}) scaler->Update(overflowed);
  for (int i = 0; i < 5000; ++i) scaler->Update(false);
  EXPECT_EQ(scaler->scale(), scale);
}

// As torch.amp.GradScaler does with the same settings, from 8: three good steps in a row grow it.
TEST(LossScaler, DynamicFollowsOverflows) {
  const auto scaler = MakeLossScaler(Dynamic(), at::kCPU);
  std::vector<double> scales;
  for (bool overflowed : {false, false, false, true, false, false, true, false, false, false}) {
    scaler->Update(overflowed);
    scales.push_back(scaler->scale());
  }
  EXPECT_EQ(scales, (std::vector<double>{8, 8, 32, 8, 8, 8, 2, 2, 2, 8}));
}

TEST(LossScaler, GoesOnFromASavedState) {
  const auto whole = MakeLossScaler(Dynamic(), at::kCPU);
  for (bool overflowed : {true, false, false}) whole->Update(overflowed);
  StateDict state;
  whole->Save(state);
  EXPECT_EQ(state.size(), 2u);
  const auto resumed = MakeLossScaler(Dynamic(), at::kCPU);
  resumed->Load(state);
  EXPECT_EQ(resumed->scale(), 2);
  resumed->Update(false);  // the third good one
  EXPECT_EQ(resumed->scale(), 8);
  const auto fresh = MakeLossScaler(Dynamic(), at::kCPU);
  fresh->Load({});
  EXPECT_EQ(fresh->scale(), 8) << "entries that are missing change nothing";
}

TrainingRecipe GptRecipe(NormPlace norm, const std::string& trainable) {
  TrainingRecipe recipe;
  recipe.model = {.kind = "gpt", .layers = 3, .width = 32, .norm = norm};
  recipe.model.trainable = trainable;
  recipe.data.kind = DataKind::kMarkov;
  recipe.data.seq_len = 24;
  return recipe;
}

struct Backward {
  double loss = 0;
  NamedTensors gradients;
  std::int64_t peak_bytes = 0;  // of forward and backward, beside the model
  at::Tensor next_draws;
};

Backward RunBackward(const TrainingRecipe& recipe, bool recompute, int micro_batches = 2) {
  TrainingRecipe changed = recipe;
  changed.model.activation_checkpointing = recompute;
  const auto data = BuildDataset(changed, /*held_out=*/false, /*seed=*/1);
  const auto model = BuildModel(changed, *data, /*seed=*/1);
  at::manual_seed(7);  // what dropout draws from
  CountCpuMemory();
  ResetCpuMemoryPeak();
  const std::int64_t before = CpuMemory().allocated_bytes;
  Backward result;
  for (int i = 0; i < micro_batches; ++i) {
    at::Tensor loss;
    {
      AutocastGuard autocast(Autocast::Of(changed.precision, at::kCPU));
      loss = model->Loss(Collate({data->Get(2 * i), data->Get(2 * i + 1), data->Get(9)}));
    }
    result.loss += loss.item<double>();
    loss.backward();
  }
  result.peak_bytes = CpuMemory().peak_bytes - before;
  result.next_draws = at::randn({4});
  for (const auto& [name, parameter] : ParametersOf(*model)) {
    result.gradients.emplace_back(name, parameter.grad());
  }
  return result;
}

TEST(ActivationCheckpointing, GradientsHaveTheSameBits) {
  for (NormPlace norm : {NormPlace::kPre, NormPlace::kPost}) {
    for (Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kFp16}) {
      // All; only what follows the first block's input, which then needs no gradient; parts of a
      // block; all but the blocks.
      for (const char* trainable :
           {"*", "blocks.*,head.*", "blocks.1.mlp.*", "embed.*,pos.*,norm.*,head.*"}) {
        SCOPED_TRACE(std::string(trainable) + ", precision " +
                     std::to_string(static_cast<int>(precision)));
        TrainingRecipe recipe = GptRecipe(norm, trainable);
        recipe.precision = precision;
        const Backward plain = RunBackward(recipe, false);
        const Backward again = RunBackward(recipe, true);
        EXPECT_EQ(plain.loss, again.loss);
        int compared = 0;
        for (std::size_t i = 0; i < plain.gradients.size(); ++i) {
          const auto& [name, expected] = plain.gradients[i];
          const at::Tensor& actual = again.gradients[i].second;
          ASSERT_EQ(expected.defined(), actual.defined()) << name;
          if (!expected.defined()) continue;
          ++compared;
          EXPECT_TRUE(expected.equal(actual)) << name;
          EXPECT_GT(expected.abs().max().item<double>(), 0) << name;
        }
        EXPECT_GT(compared, 0);
      }
    }
  }
}

// The second pass draws the masks of the first, micro-batch by micro-batch, and the generator goes
// on behind them.
TEST(ActivationCheckpointing, SoTheyHaveWithDropout) {
  for (Precision precision : {Precision::kFp32, Precision::kBf16}) {
    for (const char* trainable : {"*", "blocks.1.mlp.*,head.*"}) {
      TrainingRecipe recipe = GptRecipe(NormPlace::kPre, trainable);
      recipe.precision = precision;
      recipe.model.dropout = 0.3;
      const Backward plain = RunBackward(recipe, false);
      const Backward again = RunBackward(recipe, true);
      EXPECT_EQ(plain.loss, again.loss);
      EXPECT_TRUE(at::equal(plain.next_draws, again.next_draws));
      for (std::size_t i = 0; i < plain.gradients.size(); ++i) {
        const auto& [name, expected] = plain.gradients[i];
        ASSERT_EQ(expected.defined(), again.gradients[i].second.defined()) << name;
        if (!expected.defined()) continue;
        EXPECT_TRUE(expected.equal(again.gradients[i].second)) << name;
      }
    }
  }
}

TEST(ActivationCheckpointing, TakesLessMemory) {
  TrainingRecipe recipe = GptRecipe(NormPlace::kPre, "*");
  recipe.model.layers = 8;
  const std::int64_t plain = RunBackward(recipe, false, 1).peak_bytes;
  const std::int64_t again = RunBackward(recipe, true, 1).peak_bytes;
  EXPECT_LT(again, 0.5 * static_cast<double>(plain)) << plain;
}

TEST(ActivationCheckpointing, KeepsNoGraphWhereNobodyAsksForOne) {
  const at::Tensor weight = at::randn({3, 3}).set_requires_grad(true);
  const auto forward = [&](const at::Tensor& x) { return at::matmul(x, weight); };
  const at::Tensor x = at::ones({2, 3});
  EXPECT_EQ(RecomputeInBackward(forward, x, {weight}).grad_fn()->name(), "RecomputeBackward");
  at::NoGradGuard no_grad;
  EXPECT_FALSE(RecomputeInBackward(forward, x, {weight}).requires_grad());
}

}  // namespace
}  // namespace trainwreck
