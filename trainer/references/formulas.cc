#include "trainer/references/formulas.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>

namespace trainwreck::reference {
namespace {

double MeanOf(const Matrix& x, int row) {
  double sum = 0;
  for (int c = 0; c < x.cols; ++c) sum += x(row, c);
  return sum / x.cols;
}

double VarianceOf(const Matrix& x, int row) {
  const double mean = MeanOf(x, row);
  double sum = 0;
  for (int c = 0; c < x.cols; ++c) sum += (x(row, c) - mean) * (x(row, c) - mean);
  return sum / x.cols;
}

double SumOfSquares(const Matrix& x, int row) {
  double sum = 0;
  for (int c = 0; c < x.cols; ++c) sum += x(row, c) * x(row, c);
  return sum;
}

Matrix EachElement(Matrix x, const std::function<double(double)>& f) {
  for (double& value : x.values) value = f(value);
  return x;
}

double Dot(const Matrix& a, int row_of_a, const Matrix& b, int row_of_b) {
  double sum = 0;
  for (int c = 0; c < a.cols; ++c) sum += a(row_of_a, c) * b(row_of_b, c);
  return sum;
}

// log sum exp of a row, less its largest first.
double LogSumExp(const Matrix& z, int row) {
  double largest = -std::numeric_limits<double>::infinity();
  for (int c = 0; c < z.cols; ++c) largest = std::max(largest, z(row, c));
  double sum = 0;
  for (int c = 0; c < z.cols; ++c) sum += std::exp(z(row, c) - largest);
  return largest + std::log(sum);
}

double NegativeLogLikelihood(const Matrix& z, int row, int target, const LossRecipe& recipe) {
  const double log_sum = LogSumExp(z, row);
  switch (recipe.form) {
    case LossForm::kFused: {
      double all = 0;
      for (int c = 0; c < z.cols; ++c) all += log_sum - z(row, c);
      const double smoothing = recipe.label_smoothing;
      return (1 - smoothing) * (log_sum - z(row, target)) + smoothing * all / z.cols;
    }
    case LossForm::kLogOfSoftmax:
    case LossForm::kPlainSoftmax:
      return -std::log(std::exp(z(row, target) - log_sum) + recipe.eps);
    case LossForm::kPlainLogSumExp:
      return std::log(std::exp(log_sum) + recipe.eps) - z(row, target);
  }
  throw std::logic_error("no such form");
}

}  // namespace

Matrix Added(const Matrix& a, const Matrix& b) {
  Matrix sum = a;
  for (std::size_t i = 0; i < sum.values.size(); ++i) sum.values[i] += b.values[i];
  return sum;
}

Matrix Linear(const Matrix& x, const Parameters& parameters, const std::string& name) {
  const Matrix& weight = parameters.at(name + ".weight");
  const auto bias = parameters.find(name + ".bias");
  Matrix y(x.rows, weight.rows);
  for (int r = 0; r < x.rows; ++r) {
    for (int o = 0; o < weight.rows; ++o) {
      y(r, o) = (bias == parameters.end() ? 0 : bias->second(0, o)) + Dot(x, r, weight, o);
    }
  }
  // Hu et al. 2021, eq. 3, without their factor.
  const auto down = parameters.find(name + ".lora_a");
  if (down == parameters.end()) return y;
  const Matrix& up = parameters.at(name + ".lora_b");
  for (int r = 0; r < x.rows; ++r) {
    for (int o = 0; o < weight.rows; ++o) {
      for (int k = 0; k < up.cols; ++k) y(r, o) += up(o, k) * Dot(x, r, down->second, k);
    }
  }
  return y;
}

Matrix LayerNorm(const Matrix& x, const Parameters& parameters, const std::string& name) {
  const Matrix& gain = parameters.at(name + ".weight");
  const Matrix& bias = parameters.at(name + ".bias");
  Matrix y(x.rows, x.cols);
  for (int r = 0; r < x.rows; ++r) {
    const double mean = MeanOf(x, r), deviation = std::sqrt(VarianceOf(x, r) + 1e-5);
    for (int c = 0; c < x.cols; ++c) {
      y(r, c) = gain(0, c) * (x(r, c) - mean) / deviation + bias(0, c);
    }
  }
  return y;
}

Matrix BatchNorm(const Matrix& x, const Parameters& parameters, const std::string& name,
                 RunningMeans& running, bool training) {
  Matrix y(x.rows, x.cols);
  for (int c = 0; c < x.cols; ++c) {
    const auto unit = static_cast<std::size_t>(c);
    double mean = running.mean[unit], variance = running.variance[unit];
    if (training) {
      mean = variance = 0;
      for (int r = 0; r < x.rows; ++r) mean += x(r, c) / x.rows;
      for (int r = 0; r < x.rows; ++r) variance += (x(r, c) - mean) * (x(r, c) - mean) / x.rows;
      const double unbiased = variance * x.rows / (x.rows - 1);
      running.mean[unit] = 0.9 * running.mean[unit] + 0.1 * mean;
      running.variance[unit] = 0.9 * running.variance[unit] + 0.1 * unbiased;
    }
    for (int r = 0; r < x.rows; ++r) {
      y(r, c) =
          parameters.at(name + ".weight")(0, c) * (x(r, c) - mean) / std::sqrt(variance + 1e-5) +
          parameters.at(name + ".bias")(0, c);
    }
  }
  return y;
}

Matrix Activated(const Matrix& x, Activation kind) {
  return EachElement(x, [kind](double value) {
    switch (kind) {
      case Activation::kRelu:
        return value > 0 ? value : 0.0;
      case Activation::kLeakyRelu:
        return value > 0 ? value : 0.01 * value;
      case Activation::kTanh:
        return std::tanh(value);
      case Activation::kSigmoid:
        return 1 / (1 + std::exp(-value));
    }
    throw std::logic_error("no such activation");
  });
}

Matrix Gelu(const Matrix& x) {
  return EachElement(x, [](double v) {
    return 0.5 * v * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v)));
  });
}

Matrix Rotated(const Matrix& x, double scale) {
  Matrix y(x.rows, x.cols);
  const int half = x.cols / 2;
  for (int position = 0; position < x.rows; ++position) {
    for (int i = 0; i < half; ++i) {
      const double angle = position * scale * std::pow(10000.0, -2.0 * i / x.cols);
      const double a = x(position, i), b = x(position, i + half);
      y(position, i) = a * std::cos(angle) - b * std::sin(angle);
      y(position, i + half) = a * std::sin(angle) + b * std::cos(angle);
    }
  }
  return y;
}

Matrix MeanSquareOne(const Matrix& x) {
  Matrix y(x.rows, x.cols);
  for (int r = 0; r < x.rows; ++r) {
    const double root = std::sqrt(SumOfSquares(x, r) / x.cols + 1e-6);
    for (int c = 0; c < x.cols; ++c) y(r, c) = x(r, c) / root;
  }
  return y;
}

Matrix RmsNorm(const Matrix& x, const Parameters& parameters, const std::string& name) {
  const Matrix& gain = parameters.at(name + ".weight");
  Matrix y = MeanSquareOne(x);
  for (int r = 0; r < y.rows; ++r) {
    for (int c = 0; c < y.cols; ++c) y(r, c) *= gain(0, c);
  }
  return y;
}

Matrix Attention(const Matrix& q, const Matrix& k, const Matrix& v,
                 const std::function<bool(int, int)>& hidden) {
  Matrix mixed(q.rows, v.cols);
  for (int i = 0; i < q.rows; ++i) {
    double sum = 0;
    for (int j = 0; j < k.rows; ++j) {
      if (hidden(i, j)) continue;
      const double share = std::exp(Dot(q, i, k, j) / std::sqrt(static_cast<double>(q.cols)));
      sum += share;
      for (int c = 0; c < v.cols; ++c) mixed(i, c) += share * v(j, c);
    }
    for (int c = 0; c < v.cols; ++c) mixed(i, c) /= sum;
  }
  return mixed;
}

Matrix Standardised(const Matrix& x, InputNorm form) {
  if (form == InputNorm::kNone) return x;
  Matrix y(x.rows, x.cols);
  for (int r = 0; r < x.rows; ++r) {
    const double eps = form == InputNorm::kOnePass ? 0 : 1e-5;
    const double mean = MeanOf(x, r), deviation = std::sqrt(VarianceOf(x, r) + eps);
    for (int c = 0; c < x.cols; ++c) y(r, c) = (x(r, c) - mean) / deviation;
  }
  return y;
}

Matrix Normalised(const Matrix& x, NormaliseForm form) {
  constexpr double kEps = 1e-8;
  Matrix y(x.rows, x.cols);
  for (int r = 0; r < x.rows; ++r) {
    const double squares = SumOfSquares(x, r);
    double norm = std::sqrt(squares);
    if (form == NormaliseForm::kClamped) norm = std::max(norm, kEps);
    if (form == NormaliseForm::kEpsInside) norm = std::sqrt(squares + kEps);
    if (form == NormaliseForm::kEpsOutside) norm += kEps;
    for (int c = 0; c < x.cols; ++c) y(r, c) = x(r, c) / norm;
  }
  return y;
}

double CrossEntropy(const std::vector<Matrix>& logits, const std::vector<Targets>& targets,
                    const LossRecipe& recipe) {
  const auto mean = [&recipe](double sum, double count) {
    return recipe.guard_denominator && count == 0 ? 0 : sum / count;
  };
  double all = 0, all_weights = 0, of_sequences = 0;
  for (std::size_t s = 0; s < logits.size(); ++s) {
    double sum = 0, weights = 0;
    for (int t = 0; t < logits[s].rows; ++t) {
      const auto i = static_cast<std::size_t>(t);
      const double weight = targets[s].weights[i];
      double denominator = 0;
      for (int c = 0; c < logits[s].cols; ++c) denominator += std::exp(logits[s](t, c));
      const double z = recipe.z_loss == 0 ? 0 : std::log(denominator);
      sum += weight * (NegativeLogLikelihood(logits[s], t, targets[s].classes[i], recipe) +
                       recipe.z_loss * z * z);
      weights += weight;
    }
    all += sum;
    all_weights += weights;
    of_sequences += mean(sum, weights) / static_cast<double>(logits.size());
  }
  return recipe.weight * (recipe.per_sequence ? of_sequences : mean(all, all_weights));
}

double Derivative(const std::function<double()>& f, double& x) {
  constexpr double kStep = 1e-4;
  const double at = x;
  const auto quotient = [&](double step) {
    x = at + step;
    const double above = f();
    x = at - step;
    const double below = f();
    x = at;
    return (above - below) / (2 * step);
  };
  const double whole = quotient(kStep), half = quotient(kStep / 2);
  if (std::fabs(whole - half) > 1e-5 * (1 + std::fabs(half))) {
    throw std::runtime_error("no derivative: " + std::to_string(whole) + " and " +
                             std::to_string(half) + " at " + std::to_string(at));
  }
  return (4 * half - whole) / 3;
}

Parameters Gradient(const std::function<double()>& f, Parameters& parameters) {
  Parameters gradient = parameters;
  for (auto& [name, matrix] : parameters) {
    for (std::size_t i = 0; i < matrix.values.size(); ++i) {
      gradient.at(name).values[i] = Derivative(f, matrix.values[i]);
    }
  }
  return gradient;
}

}  // namespace trainwreck::reference
