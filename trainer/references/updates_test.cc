// Update rules, schedules, clipping and loss scaling against the papers' formulas in double, step
// by step, also across a checkpoint in the middle.
#include "trainer/references/updates.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "trainer/build.h"
#include "trainer/checkpoints/checkpoint.h"
#include "trainer/optimizers/clipping.h"
#include "trainer/optimizers/master_weights.h"
#include "trainer/optimizers/scaler.h"
#include "trainer/optimizers/schedules.h"
#include "trainer/ranks/forked_ranks.h"
#include "trainer/references/tensors.h"

namespace trainwreck {
namespace {

using reference::Element;

constexpr int kSteps = 100;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kHalfUlp = 0x1p-24;  // of fp32, relative

// What a checkpoint file makes of a state.
StateDict Stored(const StateDict& state) {
  ScratchFolder folder;
  FileCheckpointStore store({.dir = folder.path(), .writer = "test"});
  store.Save(1, state);
  return store.Load(1);
}

// One step of the truth for one element; step `t` counts from 1.
using UpdateRule = std::function<void(double rate, std::int64_t t, double gradient, Element&)>;
// How far an element of the state may be from its exact value, where the numbers that made it were
// of this size.
using Bound = std::function<double(double exact, double size)>;

// The trainer's optimizer and the truth, side by side. Three parameters, whose gradients are of
// size 1, 1e-3 and 1e-6: next to the last an epsilon of 1e-5 is large, next to the first it is
// nothing. The second has no gradient at every fifth step.
class RuleRun {
 public:
  // With masters where the recipe says fp32, and then the parameters are bf16.
  RuleRun(const OptimizerRecipe& recipe, UpdateRule rule)
      : recipe_(recipe), rule_(std::move(rule)) {
    for (const int size : {1, 7, 40}) {
      parameters_.emplace_back(
          "p" + std::to_string(size),
          at::zeros({size}, masters_.empty() ? at::kFloat : at::kBFloat16).set_requires_grad(true));
      truth_.emplace_back(static_cast<std::size_t>(size));
    }
    reference::FillWithNoise(parameters_, random_);
    optimizer_ = NewOptimizer();
    TakeOver();
  }

  // The truth goes on from what the trainer has, exactly as its bits say.
  void TakeOver() {
    const StateDict state = State();
    for (std::size_t i = 0; i < truth_.size(); ++i) {
      Read(i, masters_, &Element::value, state);
      if (!first_.empty()) Read(i, first_, &Element::first, state);
      if (is_adamw_) Read(i, "exp_avg_sq", &Element::second, state);
    }
  }

  void Step(double rate) {
    ++steps_done_;
    optimizer_->ZeroGrad();
    for (std::size_t i = 0; i < truth_.size(); ++i) {
      if (i == 1 && steps_done_ % 5 == 3) continue;
      std::vector<float> gradient(truth_[i].size());
      for (std::size_t e = 0; e < gradient.size(); ++e) {
        gradient[e] = normal_(random_) * std::pow(1e-3f, static_cast<float>(i));
        Element& element = truth_[i][e];
        const double decay = recipe_.weight_decay * element.value;
        rule_(rate, steps_done_, gradient[e], element);
        largest_[i] = std::max(
            {largest_[i], std::fabs(gradient[e]) + std::fabs(decay), std::fabs(element.first)});
      }
      parameters_[i].second.mutable_grad() = at::tensor(gradient);
    }
    optimizer_->Step(rate);
  }

  // Through a file, into an optimizer that is new.
  void SaveAndLoad() {
    const StateDict state = Stored(State());
    optimizer_ = NewOptimizer();
    optimizer_->Load(state);
  }

  // Each parameter is as near to the truth as its type and `value_bound` allow.
  void ExpectRounded(double value_bound) const {
    for (std::size_t i = 0; i < truth_.size(); ++i) {
      ExpectEach(
          i, "", &Element::value, State(),
          [&](double exact, double) {
            return 0.5 * reference::Spacing(exact, /*fraction_bits=*/7, /*min_exponent=*/-126) +
                   value_bound * (1 + std::fabs(exact));
          },
          0);
    }
  }

  void Expect(double value_bound, const Bound& state_bound) const {
    const StateDict state = State();
    for (std::size_t i = 0; i < truth_.size(); ++i) {
      ExpectEach(
          i, masters_, &Element::value, state,
          [&](double exact, double) { return value_bound * (1 + std::fabs(exact)); }, 0);
      if (!first_.empty()) ExpectEach(i, first_, &Element::first, state, state_bound, largest_[i]);
      if (is_adamw_) {
        const double largest = largest_[i] * largest_[i];
        ExpectEach(i, "exp_avg_sq", &Element::second, state, state_bound, largest);
      }
    }
    if (is_adamw_) {
      ASSERT_EQ(state.at("optimizer.step").item<double>(), steps_done_);
    }
  }

 private:
  std::unique_ptr<Optimizer> NewOptimizer() const {
    const auto rule = [this](NamedTensors some) { return BuildOptimizer(recipe_, some); };
    return masters_.empty() ? rule(parameters_) : WithMasters(parameters_, rule);
  }
  StateDict State() const {
    StateDict state;
    optimizer_->Save(state);
    return state;
  }
  // Parameter `i`: its state of this kind, or its values.
  std::vector<double> Values(std::size_t i, const std::string& kind, const StateDict& state) const {
    const auto& [name, parameter] = parameters_[i];
    return reference::MatrixOf(kind.empty() ? parameter
                                            : state.at("optimizer." + kind + "." + name))
        .values;
  }
  void Read(std::size_t i, const std::string& kind, double Element::*field,
            const StateDict& state) {
    const std::vector<double> values = Values(i, kind, state);
    for (std::size_t e = 0; e < values.size(); ++e) truth_[i][e].*field = values[e];
  }
  void ExpectEach(std::size_t i, const std::string& kind, double Element::*field,
                  const StateDict& state, const Bound& bound, double size) const {
    const std::vector<double> values = Values(i, kind, state);
    for (std::size_t e = 0; e < values.size(); ++e) {
      const double exact = truth_[i][e].*field;
      ASSERT_NEAR(values[e], exact, bound(exact, size))
          << kind << " " << parameters_[i].first << "[" << e << "], step " << steps_done_;
    }
  }

  const OptimizerRecipe recipe_;
  const UpdateRule rule_;
  const bool is_adamw_ = recipe_.kind == OptimizerKind::kAdamW;
  const std::string masters_ = recipe_.master_weights == Masters::kFp32 ? "master" : "";
  const std::string first_ = is_adamw_ ? "exp_avg" : recipe_.momentum > 0 ? "momentum" : "";
  NamedTensors parameters_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<std::vector<Element>> truth_;
  // The largest gradient (decay included) or momentum of each parameter so far.
  std::vector<double> largest_ = {0, 0, 0};
  std::int64_t steps_done_ = 0;
  std::mt19937_64 random_{11};
  std::normal_distribution<float> normal_;
};

struct RuleCase {
  std::string name;
  OptimizerRecipe recipe;
};

std::vector<RuleCase> Rules() {
  const auto sgd = OptimizerKind::kSgd, adamw = OptimizerKind::kAdamW;
  return {
      {"sgd", {.kind = sgd, .momentum = 0}},
      {"sgd with decay", {.kind = sgd, .momentum = 0, .weight_decay = 0.1}},
      {"momentum", {.kind = sgd, .momentum = 0.9}},
      {"momentum with decay", {.kind = sgd, .momentum = 0.8, .weight_decay = 0.1}},
      {"adamw", {.kind = adamw}},
      {"adamw with decay", {.kind = adamw, .weight_decay = 0.3}},
      {"adamw with other betas", {.kind = adamw, .beta1 = 0.5, .beta2 = 0.999}},
      {"adamw without momentum", {.kind = adamw, .beta1 = 0, .beta2 = 0.9}},
      {"adamw with a large epsilon", {.kind = adamw, .weight_decay = 0.01, .eps = 1e-5}},
  };
}

double RateAt(int step) { return 0.05 / (1 + 0.1 * step); }

// A run has one count of steps, whether or not a parameter had a gradient.
UpdateRule RuleOf(const OptimizerRecipe& recipe) {
  return [recipe](double rate, std::int64_t t, double gradient, Element& element) {
    if (recipe.kind == OptimizerKind::kSgd) {
      reference::SgdStep(recipe, rate, gradient, element);
    } else {
      reference::AdamWStep(recipe, rate, t, gradient, element);
    }
  };
}

// Rounding: some ten operations a step, each by half a unit of the numbers that take part.
double BoundAfter(int steps) { return 10 * steps * kHalfUlp; }

void FollowPaper(const OptimizerRecipe& recipe, int stop) {
  RuleRun run(recipe, RuleOf(recipe));
  for (int step = 0; step < kSteps; ++step) {
    if (step == stop) run.SaveAndLoad();
    run.Step(RateAt(step));
    const double bound = BoundAfter(step + 1);
    ASSERT_NO_FATAL_FAILURE(
        run.Expect(bound, [bound](double, double size) { return bound * size; }));
  }
}

TEST(RuleTest, FollowsItsPaper) {
  for (const RuleCase& rule : Rules()) {
    for (const int stop : {-1, 37}) {
      SCOPED_TRACE(rule.name + ", saved and loaded at " + std::to_string(stop));
      FollowPaper(rule.recipe, stop);
    }
  }
}

TEST(RuleTest, FollowsItsPaperInThePlainForm) {
  for (RuleCase rule : Rules()) {
    SCOPED_TRACE(rule.name);
    rule.recipe.form = UpdateForm::kPlain;
    FollowPaper(rule.recipe, 37);
  }
}

// The masters do, and so the parameters are the truth rounded once.
TEST(RuleTest, FollowsItsPaperWithParametersIn16Bits) {
  for (RuleCase rule : Rules()) {
    SCOPED_TRACE(rule.name);
    rule.recipe.master_weights = Masters::kFp32;
    RuleRun run(rule.recipe, RuleOf(rule.recipe));
    for (int step = 0; step < kSteps; ++step) {
      if (step == 37) run.SaveAndLoad();
      run.Step(RateAt(step));
      const double bound = BoundAfter(step + 1);
      ASSERT_NO_FATAL_FAILURE(
          run.Expect(bound, [bound](double, double size) { return bound * size; }));
      ASSERT_NO_FATAL_FAILURE(run.ExpectRounded(bound));
    }
  }
}

TEST(RuleTest, MomentumIsSutskeversWhereTheRateIsConstant) {
  constexpr double kRate = 0.05;
  const OptimizerRecipe recipe{.kind = OptimizerKind::kSgd, .momentum = 0.9, .weight_decay = 0.1};
  RuleRun run(recipe, [&](double rate, std::int64_t, double gradient, Element& element) {
    reference::SutskeverStep(recipe, rate, gradient, element);
  });
  for (int step = 0; step < kSteps; ++step) run.Step(kRate);
  // His velocity has the rate in it, so the trainer's momentum is another number.
  run.Expect(BoundAfter(kSteps), [](double, double) { return kInfinity; });
}

// A floating type of 16 bits.
struct Format {
  StateDtype dtype;
  int fraction_bits, min_exponent;
};

void KeepNearest(OptimizerRecipe recipe, const Format& format) {
  recipe.state_dtype = format.dtype;
  RuleRun run(recipe, RuleOf(recipe));
  for (int step = 0; step < kSteps; ++step) {
    run.TakeOver();
    run.Step(RateAt(step));
    if (step == kSteps / 2) run.SaveAndLoad();
    // Half a spacing, and what fp32 made of the exact value before.
    const Bound nearest = [&](double exact, double size) {
      return 0.5 * reference::Spacing(exact, format.fraction_bits, format.min_exponent) +
             BoundAfter(1) * size;
    };
    ASSERT_NO_FATAL_FAILURE(run.Expect(BoundAfter(1), nearest));
  }
}

// Each step from the state that is there, exactly as its bits say. What is kept is the new state
// rounded to the nearest number of the format; the parameter moves by the state before it was
// rounded.
TEST(RuleTest, StateIn16BitsIsTheNearestNumber) {
  for (const Format& format :
       {Format{StateDtype::kBf16, 7, -126}, Format{StateDtype::kFp16, 10, -14}}) {
    for (const RuleCase& rule : Rules()) {
      SCOPED_TRACE(rule.name);
      KeepNearest(rule.recipe, format);
    }
  }
}

struct ScheduleCase {
  std::string name;
  ScheduleRecipe recipe;
  std::int64_t steps = 60;
};

std::vector<ScheduleCase> Schedules() {
  std::vector<ScheduleCase> cases = {{"constant", {.kind = ScheduleKind::kConstant}}};
  for (const auto kind : {ScheduleKind::kWarmupCosine, ScheduleKind::kWarmupLinear}) {
    const std::string name = kind == ScheduleKind::kWarmupCosine ? "cosine" : "linear";
    cases.push_back({name, {.kind = kind}});
    cases.push_back({name + ", warmup of 1", {.kind = kind, .warmup_steps = 1}});
    cases.push_back({name + ", warmup", {.kind = kind, .warmup_steps = 10, .final_ratio = 0.25}});
    cases.push_back({name + ", to 0", {.kind = kind, .warmup_steps = 7, .final_ratio = 0}});
    cases.push_back({name + ", all warmup", {.kind = kind, .warmup_steps = 60}});
    cases.push_back({name + ", more warmup than steps", {.kind = kind, .warmup_steps = 80}});
    cases.push_back({name + ", restart",
                     {.kind = kind, .warmup_steps = 5, .restart_step = 31, .restart_ratio = 0.5}});
    cases.push_back({name + ", one step", {.kind = kind}, 1});
    cases.push_back({name + ", two steps", {.kind = kind, .warmup_steps = 1}, 2});
  }
  return cases;
}

// Every step, and some after the last; and from every step on again after a save and a load, once
// through a file.
TEST(ScheduleReferenceTest, FollowsItsClosedForm) {
  constexpr double kPeak = 0.3;
  for (const auto& [name, recipe, steps] : Schedules()) {
    SCOPED_TRACE(name);
    const auto schedule = MakeSchedule(recipe, kPeak, steps);
    for (std::int64_t k = 0; k < steps + 20; ++k) {
      const double expected = reference::Rate(recipe, kPeak, steps, k);
      EXPECT_NEAR(schedule->LearningRate(), expected, 1e-15) << "step " << k;
      StateDict state;
      schedule->Save(state);
      const auto resumed = MakeSchedule(recipe, kPeak, steps);
      resumed->Load(k == 7 ? Stored(state) : state);
      resumed->Advance();
      EXPECT_NEAR(resumed->LearningRate(), reference::Rate(recipe, kPeak, steps, k + 1), 1e-15)
          << "step " << k << ", resumed";
      schedule->Advance();
    }
  }
}

NamedTensors WithGradients(const std::vector<std::vector<float>>& gradients) {
  NamedTensors parameters;
  for (const std::vector<float>& gradient : gradients) {
    const auto size = static_cast<std::int64_t>(gradient.size());
    parameters.emplace_back("p" + std::to_string(parameters.size()),
                            at::zeros({size}).set_requires_grad(true));
    if (size > 0) parameters.back().second.mutable_grad() = at::tensor(gradient);
  }
  return parameters;
}

std::vector<double> AllGradients(const NamedTensors& parameters) {
  std::vector<double> all;
  for (const auto& [name, matrix] : reference::GradientsOf(parameters)) {
    all.insert(all.end(), matrix.values.begin(), matrix.values.end());
  }
  return all;
}

// Gradients of size 1e-30 to 1e30, whose squares do not fit into fp32. After clipping, the norm is
// at most the allowed one; a smaller norm changes no bit.
TEST(ClippingReferenceTest, IsOfTheNormOverAllParameters) {
  std::mt19937_64 random(13);
  std::normal_distribution<float> normal;
  for (const float size : {1e-30f, 1e-6f, 1.0f, 1e30f}) {
    std::vector<std::vector<float>> gradients = {
        {0}, std::vector<float>(7), std::vector<float>(3000)};
    for (auto& gradient : gradients) {
      for (float& value : gradient) value = size * normal(random);
    }
    const double norm = reference::Norm(AllGradients(WithGradients(gradients)));
    for (const double part : {1e-3, 0.5, 0.999, 1.001, 10.0}) {
      NamedTensors parameters = WithGradients(gradients);
      parameters.emplace_back("unused", at::zeros({4}).set_requires_grad(true));
      const std::vector<double> before = AllGradients(parameters);
      const double measured = GlobalNorm(GradientStats(parameters));
      EXPECT_NEAR(measured, norm, 1e-12 * norm);
      const double max_norm = part * norm;
      EXPECT_EQ(ClipGradients(parameters, measured, max_norm), part < 1);
      const std::vector<double> after = AllGradients(parameters);
      const double factor = reference::ClipFactor(norm, max_norm);
      for (std::size_t i = 0; i < after.size(); ++i) {
        // The factor is rounded to fp32, and so is the product; below 2^-126 numbers lie apart.
        ASSERT_NEAR(after[i], factor * before[i],
                    2 * kHalfUlp * std::fabs(factor * before[i]) + 0x1p-149)
            << i;
        if (part > 1) {
          ASSERT_EQ(after[i], before[i]) << i;
        }
      }
      EXPECT_LE(reference::Norm(after), std::min(norm, max_norm) * (1 + 2 * kHalfUlp));
      EXPECT_FALSE(parameters.back().second.grad().defined());
    }
    NamedTensors parameters = WithGradients(gradients);
    const double measured = GlobalNorm(GradientStats(parameters));
    EXPECT_FALSE(ClipGradients(parameters, measured, measured)) << "exactly the largest norm";
  }
}

// As IEEE arithmetic has it, and as the header says.
TEST(ClippingReferenceTest, NonfiniteGradientsSpread) {
  for (const double bad : {kInfinity, -kInfinity, std::nan("")}) {
    NamedTensors parameters = WithGradients({{1, 2}, {static_cast<float>(bad), 3}});
    const double norm = GlobalNorm(GradientStats(parameters));
    EXPECT_TRUE(std::isnan(bad) ? std::isnan(norm) : norm == kInfinity);
    EXPECT_TRUE(ClipGradients(parameters, norm, 1));
    const std::vector<double> after = AllGradients(parameters);
    for (std::size_t i = 0; i < after.size(); ++i) {
      const bool was_bad = i == 2;
      EXPECT_TRUE(std::isnan(bad) || was_bad ? std::isnan(after[i]) : after[i] == 0) << bad << i;
    }
  }
}

// 400 steps with overflows now and then, saved and loaded in the middle of a good series.
TEST(ScalerReferenceTest, FollowsOverflowsAndUnscales) {
  for (const ScalerRecipe& recipe :
       {ScalerRecipe{.kind = ScalerKind::kDynamic, .init_scale = 1024, .growth_interval = 5},
        ScalerRecipe{.kind = ScalerKind::kDynamic,
        .init_scale = 3,
        .growth_factor = 8,
        .backoff_factor = 0.25,
        .growth_interval = 12},
        ScalerRecipe{.kind = ScalerKind::kDynamic, .init_scale = 4, .growth_interval = 1},
        ScalerRecipe{.kind = ScalerKind::kStatic, .init_scale = 1000}}) {
    std::mt19937_64 random(17);
    std::uniform_int_distribution<int> chance(0, 9);
    std::normal_distribution<float> normal;
    auto scaler = MakeLossScaler(recipe, at::kCPU);
    reference::LossScale expected{recipe.init_scale};
    for (int step = 0; step < 400; ++step) {
      ASSERT_EQ(scaler->scale(), expected.scale) << step;
      const float raw = normal(random);
      // Scaled in fp32 by the loss' backward pass.
      const auto scaled = static_cast<float>(raw * expected.scale);
      const auto other = static_cast<float>(chance(random) == 0 ? kInfinity : 0);
      const bool overflows = !std::isfinite(scaled) || !std::isfinite(other);
      const at::Tensor gradient = at::tensor({scaled, other});
      ASSERT_EQ(scaler->Unscale({gradient}), overflows) << step;
      if (std::isfinite(scaled)) {
        // Rounded: the product, the scale's inverse, their product; nothing by a power of two.
        const bool exact = std::exp2(std::round(std::log2(expected.scale))) == expected.scale;
        ASSERT_NEAR(gradient[0].item<double>(), raw, exact ? 0 : 4 * kHalfUlp * std::fabs(raw));
      }
      scaler->Update(overflows);
      if (recipe.kind == ScalerKind::kDynamic) {
        reference::FollowOverflow(recipe, overflows, expected);
      }
      if (step % 50 == 33) {
        StateDict state;
        scaler->Save(state);
        scaler = MakeLossScaler(recipe, at::kCPU);
        scaler->Load(Stored(state));
      }
    }
  }
}

}  // namespace
}  // namespace trainwreck
