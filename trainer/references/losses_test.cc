// The losses against their formulas in double: values, and gradients of all logits as difference
// quotients, with weights, masks, means of each sequence, guards and every form.
#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <cmath>

#include "trainer/models/layers.h"
#include "trainer/references/formulas.h"
#include "trainer/references/tensors.h"

namespace trainwreck {
namespace {

using reference::kClasses;
using reference::kLength;
using reference::Matrix;
using reference::Targets;

constexpr int kSequences = 3;

struct Losses {
  std::vector<Matrix> logits;
  std::vector<Targets> targets;
};

// Weights of sequence `s` at position `t`.
using Weight = double (*)(int s, int t);

Losses Draw(Weight weight, double size) {
  std::mt19937_64 random(19);
  std::uniform_int_distribution<int> any(0, kClasses - 1);
  Losses losses;
  for (int s = 0; s < kSequences; ++s) {
    losses.logits.push_back(reference::Noise(kLength, kClasses, random));
    for (double& value : losses.logits.back().values) value *= size;
    Targets& targets = losses.targets.emplace_back();
    for (int t = 0; t < kLength; ++t) {
      targets.classes.push_back(any(random));
      targets.weights.push_back(weight(s, t));
    }
  }
  return losses;
}

struct InTensors {
  at::Tensor logits, targets, weights;
};

InTensors TensorsOf(const Losses& losses, at::ScalarType dtype) {
  std::vector<double> logits, weights;
  std::vector<std::int64_t> classes;
  for (std::size_t s = 0; s < kSequences; ++s) {
    const auto& values = losses.logits[s].values;
    logits.insert(logits.end(), values.begin(), values.end());
    const Targets& targets = losses.targets[s];
    classes.insert(classes.end(), targets.classes.begin(), targets.classes.end());
    weights.insert(weights.end(), targets.weights.begin(), targets.weights.end());
  }
  return {at::tensor(logits, at::kDouble)
              .to(dtype)
              .view({kSequences, kLength, kClasses})
              .set_requires_grad(true),
          at::tensor(classes).view({kSequences, kLength}),
          at::tensor(weights, at::kDouble).to(dtype).view({kSequences, kLength})};
}

// Whether a gradient belongs to a target of weight 0.
bool IsMasked(const Losses& losses, std::size_t s, std::size_t element) {
  return losses.targets[s].weights[element / kClasses] == 0;
}

void Check(const LossRecipe& recipe, Losses losses, at::ScalarType dtype, double tolerance) {
  const InTensors tensors = TensorsOf(losses, dtype);
  const at::Tensor loss =
      WeightedCrossEntropy(recipe).Forward(tensors.logits, tensors.targets, tensors.weights);
  const auto expected = [&] {
    return reference::CrossEntropy(losses.logits, losses.targets, recipe);
  };
  if (std::isnan(expected())) {
    EXPECT_TRUE(std::isnan(loss.item<double>()));
    return;
  }
  EXPECT_NEAR(loss.item<double>(), expected(), tolerance * (1 + expected()));
  loss.backward();
  for (std::size_t s = 0; s < kSequences; ++s) {
    const auto gradient = reference::MatrixOf(tensors.logits.grad()[static_cast<int>(s)]).values;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const double quotient = reference::Derivative(expected, losses.logits[s].values[i]);
      EXPECT_NEAR(gradient[i], quotient, tolerance * (1 + std::fabs(quotient))) << s << " " << i;
      if (IsMasked(losses, s, i)) {
        EXPECT_EQ(gradient[i], 0) << s << " " << i;
      }
    }
  }
}

TEST(LossReferenceTest, FollowsItsFormula) {
  const Weight kinds[] = {
      [](int, int) { return 1.0; },                                  // all alike
      [](int s, int t) { return t <= s ? 1.0 : 0.0; },               // masks of unequal length
      [](int s, int t) { return 0.25 * (s + 1) * (t + 2); },         // of classes, say
      [](int s, int t) { return s == 1 || t == 0 ? 0.0 : 1.0 + t; }  // one sequence all masked
  };
  const LossRecipe recipes[] = {
      {},
      {.weight = 0.25},
      {.label_smoothing = 0.1},
      {.label_smoothing = 1, .weight = 2},
      {.per_sequence = true},
      {.per_sequence = true, .guard_denominator = true},
      {.label_smoothing = 0.3, .per_sequence = true, .guard_denominator = true},
      {.z_loss = 0.1},
      {.label_smoothing = 0.1, .weight = 2, .per_sequence = true, .z_loss = 0.5},
      {.form = LossForm::kPlainLogSumExp, .z_loss = 0.01},
      {.form = LossForm::kLogOfSoftmax},
      {.form = LossForm::kLogOfSoftmax, .eps = 0.05},
      {.form = LossForm::kPlainSoftmax},
      {.form = LossForm::kPlainSoftmax, .eps = 0.05, .weight = 3},
      {.form = LossForm::kPlainLogSumExp},
      {.form = LossForm::kPlainLogSumExp, .eps = 0.5, .guard_denominator = true},
  };
  for (const Weight& weight : kinds) {
    for (const LossRecipe& recipe : recipes) {
      SCOPED_TRACE("weights " + std::to_string(&weight - kinds) + ", recipe " +
                   std::to_string(&recipe - recipes));
      // Forms that are not fused compute in fp32 whatever they are given. Logits of size 2: sums
      // of some hundreds, so some ten roundings of fp32 by 2^-24, magnified as much.
      const bool fused = recipe.form == LossForm::kFused;
      Check(recipe, Draw(weight, 2), at::kDouble, fused ? 1e-9 : 1e-5);
      Check(recipe, Draw(weight, 2), at::kFloat, 1e-5);
    }
  }
  // Far from each other, where only the fused form is exact.
  Check({}, Draw(kinds[1], 200), at::kDouble, 1e-9);
  Check({.label_smoothing = 0.1}, Draw(kinds[1], 200), at::kDouble, 1e-9);
}

TEST(LossReferenceTest, AMeanOverNothingIsNanOrZero) {
  const Weight none = [](int, int) { return 0.0; };
  for (const bool per_sequence : {false, true}) {
    LossRecipe recipe{.per_sequence = per_sequence};
    Check(recipe, Draw(none, 2), at::kDouble, 0);
    recipe.guard_denominator = true;
    Check(recipe, Draw(none, 2), at::kDouble, 1e-15);
  }
}

// An evaluation judges by the nll alone.
TEST(LossReferenceTest, TheZLossIsOfTraining) {
  const Losses losses = Draw([](int, int t) { return 1.0 + t; }, 2);
  const InTensors tensors = TensorsOf(losses, at::kDouble);
  WeightedCrossEntropy loss({.z_loss = 0.1});
  loss.eval();
  EXPECT_NEAR(loss.Forward(tensors.logits, tensors.targets, tensors.weights).item<double>(),
              reference::CrossEntropy(losses.logits, losses.targets, {}), 1e-9);
}

// No class is passed over in silence: what other stacks take as "ignore" is an error here, where
// weights of 0 do that.
TEST(LossReferenceTest, ATargetOutOfRangeThrows) {
  for (const auto form : {LossForm::kFused, LossForm::kLogOfSoftmax, LossForm::kPlainSoftmax,
                          LossForm::kPlainLogSumExp}) {
    for (const int target : {-100, -1, kClasses, 1000}) {
      Losses losses = Draw([](int, int) { return 1.0; }, 1);
      losses.targets[1].classes[2] = target;
      const InTensors tensors = TensorsOf(losses, at::kFloat);
      EXPECT_THROW(WeightedCrossEntropy({.form = form})
                       .Forward(tensors.logits, tensors.targets, tensors.weights),
                   c10::Error)
          << static_cast<int>(form) << " " << target;
    }
  }
}

}  // namespace
}  // namespace trainwreck
