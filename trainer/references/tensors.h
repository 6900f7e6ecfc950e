// Converts between the references' matrices and LibTorch's tensors, for the tests that compare the
// two.
#pragma once

#include <ATen/core/Tensor.h>

#include <random>

#include "trainer/parts.h"
#include "trainer/references/formulas.h"

namespace trainwreck::reference {

// The sizes of the tests' random data.
inline constexpr int kClasses = 5;
inline constexpr int kLength = 4;
// The tolerance: a hundred roundings by 2^-24.
inline constexpr double kInFp32 = 100 * 6e-8;

// A matrix of draws from N(0, 1).
Matrix Noise(int rows, int cols, std::mt19937_64& random);

at::Tensor TensorOf(const Matrix& matrix, at::ScalarType dtype);
// A floating tensor as a matrix: the last dimension becomes the columns, all others the rows.
Matrix MatrixOf(const at::Tensor& tensor);

// The values of all parameters, or their gradients: zeros where there is none.
Parameters ValuesOf(const NamedTensors& tensors);
Parameters GradientsOf(const NamedTensors& tensors);
// N(0, 1) into all parameters, whatever they began with: norms' gains and biases among them.
void FillWithNoise(const NamedTensors& tensors, std::mt19937_64& random);

// The largest |a - b| / (1 + |b|); infinite where the shapes differ or only one is NaN.
double Apart(const Matrix& a, const Matrix& b);
// The largest difference for each name; both must have the same names.
double Apart(const Parameters& a, const Parameters& b);

}  // namespace trainwreck::reference
