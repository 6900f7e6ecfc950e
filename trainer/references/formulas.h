// The layers and the losses of the trainer a second time, in plain double arithmetic. Tests compare
// the trainer with them. Written from the papers and not from the trainer's code; no LibTorch.
// Gradients are difference quotients of these, so no derivative is written down anywhere.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "trainer/recipe/recipe.h"

namespace trainwreck::reference {

// Row-major; a vector is one row.
struct Matrix {
  int rows = 0, cols = 0;
  std::vector<double> values;

  Matrix() = default;
  Matrix(int rows, int cols, double fill = 0)
      : rows(rows), cols(cols), values(static_cast<std::size_t>(rows) * cols, fill) {}
  double& operator()(int r, int c) { return values[static_cast<std::size_t>(r) * cols + c]; }
  double operator()(int r, int c) const { return values[static_cast<std::size_t>(r) * cols + c]; }
};

// Parameters by the names of the trainer's modules.
using Parameters = std::map<std::string, Matrix>;

Matrix Added(const Matrix& a, const Matrix& b);
// x W^T + b for W [out, in]; without a bias where there is none of that name.
Matrix Linear(const Matrix& x, const Parameters& parameters, const std::string& name);
// Ba, Kiros and Hinton 2016, eq. 3; epsilon 1e-5 inside the root.
Matrix LayerNorm(const Matrix& x, const Parameters& parameters, const std::string& name);

// Ioffe and Szegedy 2015: algorithm 1 on a batch, whose mean and unbiased variance go into running
// means (a tenth of them); algorithm 2 in evaluation.
struct RunningMeans {
  std::vector<double> mean, variance;
};
Matrix BatchNorm(const Matrix& x, const Parameters& parameters, const std::string& name,
                 RunningMeans& running, bool training);

// Rectifier (Nair and Hinton 2010), leaky with slope 0.01 (Maas et al. 2013), tanh, logistic.
Matrix Activated(const Matrix& x, Activation kind);
// Hendrycks and Gimpel 2016, section 2: the approximation by tanh.
Matrix Gelu(const Matrix& x);

// Su et al. 2021, eq. 34, with the features of a pair half a width apart (as in GPT-NeoX); the row
// is the position.
Matrix Rotated(const Matrix& x, double scale);
// Zhang and Sennrich 2019, eq. 4, without gain; epsilon 1e-6 inside the root.
Matrix MeanSquareOne(const Matrix& x);
// The same with gain.
Matrix RmsNorm(const Matrix& x, const Parameters& parameters, const std::string& name);
// Vaswani et al. 2017, eq. 1, for one head; `hidden(i, j)` says that position i does not see j.
Matrix Attention(const Matrix& q, const Matrix& k, const Matrix& v,
                 const std::function<bool(int, int)>& hidden);

// Rows with mean 0 and variance 1 (of the population), with epsilon 1e-5 inside the root except in
// the form one_pass.
Matrix Standardised(const Matrix& x, InputNorm form);
// Rows divided by their 2-norm; epsilon 1e-8 as the form says.
Matrix Normalised(const Matrix& x, NormaliseForm form);

// One sequence of targets, or a batch of labels: a row of logits for each.
struct Targets {
  std::vector<int> classes;
  std::vector<double> weights;
};
// sum(w * nll) / sum(w) over all, or that of each sequence and then their mean; nll is the cross
// entropy of the softmax (Bridle 1990), with label smoothing as in Szegedy et al. 2016, section 7,
// and with z-loss added as in training (Chowdhery et al. 2022, section 5).
double CrossEntropy(const std::vector<Matrix>& logits, const std::vector<Targets>& targets,
                    const LossRecipe& recipe);

// The derivative of `f` with respect to `x`, whose value is restored at the end: central
// differences at two steps, extrapolated (Richardson 1911). Near a kink the two differ: throws
// std::runtime_error.
double Derivative(const std::function<double()>& f, double& x);
// The derivatives with respect to all of `parameters`, which `f` reads.
Parameters Gradient(const std::function<double()>& f, Parameters& parameters);

}  // namespace trainwreck::reference
