// Update rules, clipping and statistics against LibTorch's own or a plain loop; schedules against
// their formulas.
#include "trainer/optimizers/optimizers.h"

#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "trainer/optimizers/clipping.h"
#include "trainer/optimizers/schedules.h"

namespace trainwreck {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

NamedTensors MakeParameters() {
  at::manual_seed(3);
  NamedTensors parameters;
  for (const std::int64_t size : {1, 17, 300}) {
    parameters.emplace_back("p" + std::to_string(size), at::randn({size}).set_requires_grad(true));
  }
  return parameters;
}

std::vector<at::Tensor> TensorsOf(const NamedTensors& parameters) {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, parameter] : parameters) tensors.push_back(parameter);
  return tensors;
}

// The same 20 gradients and learning rates for both; the largest difference of any parameter at the
// end. With `gaps`, a parameter has no gradient at some steps (LibTorch's AdamW counts steps for
// each parameter, ours those of the run, so they agree only without).
template <typename SetRate>
double Difference(NamedTensors& ours, Optimizer& optimizer, std::vector<at::Tensor>& theirs,
                  torch::optim::Optimizer& oracle, const SetRate& set_rate, bool gaps) {
  at::manual_seed(4);
  for (int step = 0; step < 20; ++step) {
    optimizer.ZeroGrad();
    oracle.zero_grad();
    for (std::size_t i = 0; i < ours.size(); ++i) {
      if (gaps && i == 1 && step % 3 == 1) continue;  // without a gradient: left alone
      const at::Tensor gradient = at::randn(ours[i].second.sizes());
      ours[i].second.mutable_grad() = gradient.clone();
      theirs[i].mutable_grad() = gradient.clone();
    }
    const double lr = 0.1 / (1 + step);
    set_rate(lr);
    optimizer.Step(lr);
    oracle.step();
  }
  double worst = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    worst = std::max(worst, (ours[i].second - theirs[i]).abs().max().item<double>());
  }
  return worst;
}

TEST(SgdTest, EqualsLibTorchs) {
  for (const double momentum : {0.0, 0.9}) {
    for (const double weight_decay : {0.0, 0.1}) {
      NamedTensors ours = MakeParameters();
      std::vector<at::Tensor> theirs = TensorsOf(MakeParameters());
      const auto optimizer = MakeSgd(ours, {.momentum = momentum, .weight_decay = weight_decay});
      torch::optim::SGD oracle(
          theirs, torch::optim::SGDOptions(0.1).momentum(momentum).weight_decay(weight_decay));
      auto& options = static_cast<torch::optim::SGDOptions&>(oracle.param_groups()[0].options());
      EXPECT_LT(Difference(
                    ours, *optimizer, theirs, oracle, [&](double lr) { options.lr(lr); },
                    /*gaps=*/true),
                1e-6)
          << momentum << " " << weight_decay;
    }
  }
}

TEST(AdamWTest, EqualsLibTorchs) {
  for (const double weight_decay : {0.0, 0.1}) {
    NamedTensors ours = MakeParameters();
    std::vector<at::Tensor> theirs = TensorsOf(MakeParameters());
    const auto optimizer =
        MakeAdamW(ours, {.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6, .weight_decay = weight_decay});
    torch::optim::AdamW oracle(
        theirs,
        torch::optim::AdamWOptions(0.1).betas({0.8, 0.95}).eps(1e-6).weight_decay(weight_decay));
    auto& options = static_cast<torch::optim::AdamWOptions&>(oracle.param_groups()[0].options());
    EXPECT_LT(Difference(
                  ours, *optimizer, theirs, oracle, [&](double lr) { options.lr(lr); },
                  /*gaps=*/false),
              2e-6)
        << weight_decay;
  }
}

// A group without decay is an optimizer without decay over its parameters; groups that are set
// alike are one group, bit for bit.
TEST(OptimizersTest, GroupsAreOptimizersOfTheirOwn) {
  const auto run = [](bool adamw, double weight_decay, const std::string& no_decay) {
    NamedTensors parameters = MakeParameters();
    const auto optimizer =
        adamw ? MakeAdamW(parameters, {.weight_decay = weight_decay, .no_decay = no_decay})
              : MakeSgd(parameters, {.momentum = 0.9,
                                     .weight_decay = weight_decay,
                                     .no_decay = no_decay,
                                     .state_dtype = at::kBFloat16});
    at::manual_seed(4);
    for (int step = 0; step < 5; ++step) {
      for (auto& [name, parameter] : parameters) {
        parameter.mutable_grad() = at::randn(parameter.sizes());
      }
      optimizer->Step(0.1);
    }
    return TensorsOf(parameters);
  };
  for (const bool adamw : {false, true}) {
    const auto all = run(adamw, 0.5, ""), none = run(adamw, 0, "");
    const auto middle = run(adamw, 0.5, "*17, other");
    EXPECT_TRUE(at::equal(middle[0], all[0]));
    EXPECT_TRUE(at::equal(middle[1], none[1]));
    EXPECT_TRUE(at::equal(middle[2], all[2]));
    EXPECT_FALSE(at::equal(all[1], none[1]));
    const auto every = run(adamw, 0.5, "*"), alike = run(adamw, 0, "*17");
    for (std::size_t i = 0; i < none.size(); ++i) {
      EXPECT_TRUE(at::equal(every[i], none[i])) << i;
      EXPECT_TRUE(at::equal(alike[i], none[i])) << i;
    }
  }
}

TEST(OptimizersTest, StateInFp16RoundsASmallSecondMomentToNothing) {
  const auto moved = [](at::ScalarType dtype, double eps) {
    NamedTensors parameters = {{"p", at::zeros({2}).set_requires_grad(true)}};
    parameters[0].second.mutable_grad() = at::full({2}, 1e-4);
    const auto optimizer = MakeAdamW(parameters, {.eps = eps, .state_dtype = dtype});
    optimizer->Step(0.1);
    StateDict state;
    optimizer->Save(state);
    EXPECT_EQ(state.at("optimizer.exp_avg_sq.p").scalar_type(), dtype);
    EXPECT_EQ(state.at("optimizer.exp_avg_sq.p").eq(0).all().item<bool>(), dtype == at::kHalf);
    optimizer->Step(0.1);
    return -parameters[0].second[0].item<double>();
  };
  EXPECT_NEAR(moved(at::kFloat, 1e-8), 0.2, 1e-4);
  EXPECT_NEAR(moved(at::kBFloat16, 1e-8), 0.2, 0.01);
  EXPECT_GT(moved(at::kHalf, 1e-8), 0.21) << "what is left of the second moment is the last square";
}

// State that is loaded goes on as if it had never been saved; a missing entry keeps its fresh
// value.
TEST(OptimizersTest, StateGoesThroughSaveAndLoad) {
  for (const bool adamw : {false, true}) {
    auto make = [&](const NamedTensors& parameters) {
      return adamw ? MakeAdamW(parameters, {}) : MakeSgd(parameters, {.momentum = 0.9});
    };
    auto step = [](NamedTensors& parameters, Optimizer& optimizer, double gradient) {
      for (auto& [name, parameter] : parameters) {
        parameter.mutable_grad() = at::full_like(parameter, gradient);
      }
      optimizer.Step(0.1);
    };
    NamedTensors kept = MakeParameters();
    const auto first = make(kept);
    step(kept, *first, 1.0);
    StateDict state;
    first->Save(state);
    for (auto& [name, tensor] : state) tensor = tensor.clone();

    NamedTensors resumed, forgetful;
    for (const auto& [name, parameter] : kept) {
      resumed.emplace_back(name, parameter.detach().clone().set_requires_grad(true));
      forgetful.emplace_back(name, parameter.detach().clone().set_requires_grad(true));
    }
    const auto second = make(resumed);
    second->Load(state);
    const auto third = make(forgetful);
    third->Load({});
    step(kept, *first, -0.5);
    step(resumed, *second, -0.5);
    step(forgetful, *third, -0.5);
    EXPECT_TRUE(at::equal(kept[2].second, resumed[2].second)) << adamw;
    EXPECT_FALSE(at::equal(kept[2].second, forgetful[2].second)) << adamw;
  }
}

TEST(ClippingTest, EqualsLibTorchs) {
  for (const double max_norm : {0.5, 1e6}) {
    NamedTensors ours = MakeParameters();
    std::vector<at::Tensor> theirs = TensorsOf(MakeParameters());
    for (std::size_t i = 0; i < ours.size(); ++i) {
      const at::Tensor gradient = at::randn(ours[i].second.sizes());
      ours[i].second.mutable_grad() = gradient.clone();
      theirs[i].mutable_grad() = gradient.clone();
    }
    const double norm = GlobalNorm(GradientStats(ours));
    EXPECT_NEAR(norm, torch::nn::utils::clip_grad_norm_(theirs, max_norm), 1e-4);
    EXPECT_EQ(ClipGradients(ours, norm, max_norm), max_norm < 1);
    for (std::size_t i = 0; i < ours.size(); ++i) {
      EXPECT_LT((ours[i].second.grad() - theirs[i].grad()).abs().max().item<double>(), 1e-6);
    }
  }
}

TEST(ClippingTest, NonfiniteNormsSpreadAsInLibTorch) {
  NamedTensors parameters = {{"p", at::zeros({2}).set_requires_grad(true)}};
  at::Tensor& gradient = parameters[0].second.mutable_grad();
  gradient = at::tensor({1.0f, static_cast<float>(kNan)});
  double norm = GlobalNorm(GradientStats(parameters));
  EXPECT_TRUE(std::isnan(norm));
  EXPECT_EQ(CountNonfinite(GradientStats(parameters)), 1);
  EXPECT_TRUE(ClipGradients(parameters, norm, 1.0));
  EXPECT_EQ(CountNonfinite(GradientStats(parameters)), 2);
  gradient = at::tensor({1.0f, static_cast<float>(kInf)});
  norm = GlobalNorm(GradientStats(parameters));
  EXPECT_EQ(norm, kInf);
  EXPECT_TRUE(ClipGradients(parameters, norm, 1.0));
  EXPECT_EQ(gradient[0].item<double>(), 0.0);
  EXPECT_TRUE(std::isnan(gradient[1].item<double>()));
}

TEST(ScheduleTest, FollowsItsFormula) {
  const ScheduleRecipe cosine{
      .kind = ScheduleKind::kWarmupCosine, .warmup_steps = 10, .final_ratio = 0.1};
  EXPECT_DOUBLE_EQ(LearningRateAt(cosine, 2.0, 111, 0), 0.2);
  EXPECT_DOUBLE_EQ(LearningRateAt(cosine, 2.0, 111, 9), 2.0);
  EXPECT_DOUBLE_EQ(LearningRateAt(cosine, 2.0, 111, 10), 2.0);
  EXPECT_DOUBLE_EQ(LearningRateAt(cosine, 2.0, 111, 60), 1.1);
  EXPECT_DOUBLE_EQ(LearningRateAt(cosine, 2.0, 111, 110), 0.2);
  EXPECT_DOUBLE_EQ(LearningRateAt(cosine, 2.0, 111, 500), 0.2);
  ScheduleRecipe linear = cosine;
  linear.kind = ScheduleKind::kWarmupLinear;
  EXPECT_DOUBLE_EQ(LearningRateAt(linear, 2.0, 111, 35), 0.2 + 1.8 * 0.75);
  EXPECT_DOUBLE_EQ(LearningRateAt(linear, 2.0, 111, 110), 0.2);
  ScheduleRecipe constant = cosine;
  constant.kind = ScheduleKind::kConstant;
  EXPECT_EQ(LearningRateAt(constant, 2.0, 111, 0), 2.0);
  ScheduleRecipe cold = cosine;
  cold.warmup_steps = 0;
  EXPECT_DOUBLE_EQ(LearningRateAt(cold, 2.0, 1, 0), 2.0) << "a run of one step divides by nothing";
  EXPECT_DOUBLE_EQ(LearningRateAt(cold, 2.0, 101, 0), 2.0);
}

TEST(ScheduleTest, AWarmRestartBeginsTheDecayAgain) {
  const ScheduleRecipe recipe{.kind = ScheduleKind::kWarmupCosine,
                              .warmup_steps = 10,
                              .final_ratio = 0.1,
                              .restart_step = 61,
                              .restart_ratio = 3};
  EXPECT_DOUBLE_EQ(LearningRateAt(recipe, 2.0, 112, 0), 0.2);
  EXPECT_DOUBLE_EQ(LearningRateAt(recipe, 2.0, 112, 35), 1.1);
  EXPECT_DOUBLE_EQ(LearningRateAt(recipe, 2.0, 112, 60), 0.2);
  EXPECT_DOUBLE_EQ(LearningRateAt(recipe, 2.0, 112, 61), 6.0);
  EXPECT_DOUBLE_EQ(LearningRateAt(recipe, 2.0, 112, 86), 3.3);
  EXPECT_DOUBLE_EQ(LearningRateAt(recipe, 2.0, 112, 111), 0.6);
}

TEST(ScheduleTest, StepIsItsState) {
  const ScheduleRecipe recipe{.kind = ScheduleKind::kWarmupLinear, .warmup_steps = 4};
  const auto first = MakeSchedule(recipe, 1.0, 100);
  first->Advance();
  first->Advance();
  StateDict state;
  first->Save(state);
  const auto second = MakeSchedule(recipe, 1.0, 100);
  EXPECT_DOUBLE_EQ(second->LearningRate(), 0.25);
  second->Load(state);
  EXPECT_DOUBLE_EQ(second->LearningRate(), 0.75);
  second->Load({});
  EXPECT_DOUBLE_EQ(second->LearningRate(), 0.75);
}

}  // namespace
}  // namespace trainwreck
