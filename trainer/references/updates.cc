#include "trainer/references/updates.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace trainwreck::reference {

void SgdStep(const OptimizerRecipe& recipe, double lr, double gradient, Element& element) {
  gradient += recipe.weight_decay * element.value;
  element.first = recipe.momentum * element.first + gradient;
  element.value -= lr * element.first;
}

void SutskeverStep(const OptimizerRecipe& recipe, double lr, double gradient, Element& element) {
  gradient += recipe.weight_decay * element.value;
  element.first = recipe.momentum * element.first - lr * gradient;
  element.value += element.first;
}

void AdamWStep(const OptimizerRecipe& recipe, double lr, std::int64_t t, double gradient,
               Element& element) {
  element.first = recipe.beta1 * element.first + (1 - recipe.beta1) * gradient;
  element.second = recipe.beta2 * element.second + (1 - recipe.beta2) * gradient * gradient;
  const double steps = static_cast<double>(t);
  const double first = element.first / (1 - std::pow(recipe.beta1, steps));
  const double second = element.second / (1 - std::pow(recipe.beta2, steps));
  element.value -=
      lr * (first / (std::sqrt(second) + recipe.eps) + recipe.weight_decay * element.value);
}

double Rate(const ScheduleRecipe& recipe, double peak, std::int64_t steps, std::int64_t k) {
  if (recipe.kind == ScheduleKind::kConstant) return peak;
  if (k < recipe.warmup_steps) {
    return peak * (static_cast<double>(k) + 1) / static_cast<double>(recipe.warmup_steps);
  }
  // The period that k is in: its first and its last step, and the rate that it begins with.
  std::int64_t first = recipe.warmup_steps, last = steps - 1;
  double highest = peak;
  if (recipe.restart_step > 0 && k < recipe.restart_step) last = recipe.restart_step - 1;
  if (recipe.restart_step > 0 && k >= recipe.restart_step) {
    first = recipe.restart_step;
    highest = peak * recipe.restart_ratio;
  }
  const double lowest = highest * recipe.final_ratio;
  if (k == first) return highest;
  if (k >= last) return lowest;
  const double part = static_cast<double>(k - first) / static_cast<double>(last - first);
  return recipe.kind == ScheduleKind::kWarmupCosine
             ? lowest + 0.5 * (highest - lowest) * (1 + std::cos(part * std::numbers::pi))
             : highest + part * (lowest - highest);
}

double RewarmedRate(double rate, std::int64_t k, std::int64_t from, std::int64_t rewarm_steps) {
  if (rewarm_steps == 0) return rate;
  return rate *
         std::min(1.0, static_cast<double>(k - from + 1) / static_cast<double>(rewarm_steps));
}

double Norm(const std::vector<double>& values) {
  double norm = 0;
  for (const double value : values) norm = std::hypot(norm, value);
  return norm;
}

double ClipFactor(double norm, double max_norm) {
  return norm > max_norm ? max_norm / (norm + 1e-6) : 1;
}

void FollowOverflow(const ScalerRecipe& recipe, bool overflowed, LossScale& scale) {
  if (overflowed) {
    scale.scale *= recipe.backoff_factor;
    scale.good_steps = 0;
  } else if (++scale.good_steps == recipe.growth_interval) {
    const double grown = scale.scale * recipe.growth_factor;
    if (grown <= std::numeric_limits<float>::max()) scale.scale = grown;
    scale.good_steps = 0;
  }
}

double Spacing(double value, int fraction_bits, int min_exponent) {
  const int exponent = value == 0 ? min_exponent : std::ilogb(value);
  return std::ldexp(1.0, std::max(exponent, min_exponent) - fraction_bits);
}

}  // namespace trainwreck::reference
