#include "trainer/optimizers/block_codes.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <limits>

#include "trainer/optimizers/optimizers.h"

namespace trainwreck {
namespace {

at::Tensor ThereAndBack(const at::Tensor& values, bool is_signed) {
  const BlockCodes table(is_signed);
  at::Tensor codes = at::empty({values.numel()}, at::kByte);
  at::Tensor scales = at::empty({BlocksOf(values.numel())});
  table.Encode(values, codes, scales);
  return table.Decode(codes, scales);
}

TEST(BlockCodesTest, KeepsZeroAndTheLargestOfEachBlock) {
  at::Tensor values = at::zeros({600});
  values[3] = 5.0;
  values[300] = -0.25;
  values[599] = 1e-6;
  const at::Tensor back = ThereAndBack(values, /*is_signed=*/true);
  EXPECT_EQ(back[3].item<float>(), 5.0F);
  EXPECT_NEAR(back[300].item<float>(), -0.25, 0.25 * 0.008) << "-1 itself is no value";
  EXPECT_EQ(back[599].item<float>(), values[599].item<float>()) << "of the last, shorter block";
  EXPECT_EQ(back.count_nonzero().item<int>(), 3);
}

// A decade with n values has a step of 0.9 / n of its largest: the error is at most half of it.
TEST(BlockCodesTest, TheErrorIsHalfAStepOfTheDecade) {
  for (const bool is_signed : {true, false}) {
    const at::Tensor values = at::linspace(is_signed ? -1 : 0, 1, 256);
    const at::Tensor error = ThereAndBack(values, is_signed).sub(values).abs();
    const double half_step = 0.45 / (is_signed ? 64 : 128);
    EXPECT_LE(error.max().item<double>(), 1.001 * half_step);
    EXPECT_GE(error.max().item<double>(), 0.5 * half_step);
  }
}

TEST(BlockCodesTest, ALargeNumberCostsOnlyItsOwnBlock) {
  at::manual_seed(5);
  at::Tensor values = at::randn({512});
  const at::Tensor before = ThereAndBack(values, true);
  values[0] = 1e6;
  const at::Tensor after = ThereAndBack(values, true);
  EXPECT_TRUE(after.narrow(0, 256, 256).equal(before.narrow(0, 256, 256)));
  EXPECT_FALSE(after.narrow(0, 1, 255).equal(before.narrow(0, 1, 255)));
}

// Else Adam would divide a first moment, which has a code, by epsilon alone.
TEST(BlockCodesTest, ASecondMomentIsNeverRoundedToZero) {
  at::Tensor values = at::full({256}, 1e-9);
  values[0] = 1.0;
  values[1] = 0.0;
  const at::Tensor back = ThereAndBack(values, /*is_signed=*/false);
  EXPECT_EQ(back.count_nonzero().item<int>(), 255);
  EXPECT_EQ(back[1].item<float>(), 0.0F);
  EXPECT_EQ(ThereAndBack(values, /*is_signed=*/true).count_nonzero().item<int>(), 1);
}

TEST(BlockCodesTest, WhatIsNotFiniteStaysSo) {
  at::Tensor values = at::ones({4});
  values[2] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(ThereAndBack(values, true).isnan().all().item<bool>());
}

// A parameter of several pieces and blocks, and a gradient that is the same at each step.
at::Tensor Trained(at::ScalarType state, UpdateForm form, double momentum) {
  at::manual_seed(11);
  at::Tensor parameter = at::zeros({20000}).set_requires_grad(true);
  const NamedTensors parameters = {{"p", parameter}};
  const auto optimizer =
      momentum > 0 ? MakeSgd(parameters, {.momentum = momentum, .form = form, .state_dtype = state})
                   : MakeAdamW(parameters, {.form = form, .state_dtype = state});
  for (int step = 0; step < 10; ++step) {
    parameter.mutable_grad() = at::randn({20000}).add(1.0);
    optimizer->Step(0.01);
  }
  return parameter.detach();
}

TEST(OptimizerInCodesTest, TrainsAsInFp32UpToItsRounding) {
  for (const UpdateForm form : {UpdateForm::kFused, UpdateForm::kPlain}) {
    for (const double momentum : {0.0, 0.9}) {
      const at::Tensor exact = Trained(at::kFloat, form, momentum);
      const at::Tensor rounded = Trained(at::kByte, form, momentum);
      const double error = rounded.sub(exact).norm().item<double>();
      EXPECT_GT(error, 0);
      EXPECT_LT(error, 0.02 * exact.norm().item<double>()) << momentum;
    }
  }
}

TEST(OptimizerInCodesTest, KeepsAQuarterOfTheBytesAndResumesExactly) {
  const auto train = [](int steps, const StateDict* from, StateDict* to) {
    at::manual_seed(11);
    at::Tensor parameter = at::zeros({1000}).set_requires_grad(true);
    const auto optimizer = MakeAdamW({{"p", parameter}}, {.state_dtype = at::kByte});
    if (from != nullptr) {
      parameter.detach().copy_(from->at("p"));
      optimizer->Load(*from);
    }
    for (int step = 0; step < steps; ++step) {
      parameter.mutable_grad() = at::full({1000}, 0.5).add(parameter.detach());
      optimizer->Step(0.01);
    }
    optimizer->Save(*to);
    for (auto& [name, tensor] : *to) tensor = tensor.clone();
    (*to)["p"] = parameter.detach();
  };
  StateDict whole, half, resumed;
  train(8, nullptr, &whole);
  train(4, nullptr, &half);
  train(4, &half, &resumed);
  EXPECT_TRUE(resumed.at("p").equal(whole.at("p")));
  EXPECT_EQ(whole.at("optimizer.exp_avg.p").nbytes(), 1000U);
  EXPECT_EQ(whole.at("optimizer.exp_avg_scales.p").numel(), 4);
}

}  // namespace
}  // namespace trainwreck
