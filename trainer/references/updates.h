// The trainer's work after the backward pass a second time, in double scalars: update rules,
// learning rates, clipping, loss scales. Written from the papers and from the texts of the recipe's
// keys; no LibTorch.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/recipe/recipe.h"

namespace trainwreck::reference {

// One element of a parameter, with its momentum or its two moments.
struct Element {
  double value = 0, first = 0, second = 0;
};

// Momentum as in Sutskever et al. 2013, eq. 1, with the rate outside of the velocity (the form of
// PyTorch's documentation; with a constant rate the two are the same): v = mu v + g + wd p,
// p = p - lr v. Weight decay is the gradient of an L2 term.
void SgdStep(const OptimizerRecipe& recipe, double lr, double gradient, Element& element);
// The paper's own form, for rates that do not change.
void SutskeverStep(const OptimizerRecipe& recipe, double lr, double gradient, Element& element);
// Loshchilov and Hutter 2019, algorithm 2, lines 6 to 12, where alpha is 1 and eta_t, the rate, is
// also the factor on the decay; step t counts from 1.
void AdamWStep(const OptimizerRecipe& recipe, double lr, std::int64_t t, double gradient,
               Element& element);

// The rate of step k: Goyal et al. 2017, section 2.2 (warmup); Loshchilov and Hutter 2017, eq. 5
// (cosine and restart); a straight line.
double Rate(const ScheduleRecipe& recipe, double peak, std::int64_t steps, std::int64_t k);
// The rate after a resume at step `from`, with so many steps of a ramp.
double RewarmedRate(double rate, std::int64_t k, std::int64_t from, std::int64_t rewarm_steps);

// Pascanu et al. 2013, algorithm 1; with PyTorch's 1e-6 beside the norm.
double Norm(const std::vector<double>& values);
double ClipFactor(double norm, double max_norm);

// Micikevicius et al. 2018, section 3.2, with the rule of PyTorch's GradScaler: a scale that fp32
// does not have is not taken.
struct LossScale {
  double scale = 1;
  std::int64_t good_steps = 0;
};
void FollowOverflow(const ScalerRecipe& recipe, bool overflowed, LossScale& scale);

// Distance from a number of this size to the next in a format of so many bits behind the point,
// whose smallest normal number is 2^min_exponent: IEEE 754-2019, section 3.3.
double Spacing(double value, int fraction_bits, int min_exponent);

}  // namespace trainwreck::reference
