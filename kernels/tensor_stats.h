// Statistics of a list of tensors in one read: what telemetry and gradient clipping need.
//
//   std::vector<TensorStats> stats(views.size());
//   ComputeTensorStats(views, stats);
//   const double norm = stats[0].ieee_norm();
//
// The sums have a fixed order (below), so a result has the same bits with every instruction set and
// on a GPU. All of it runs on the calling thread and allocates nothing; any number of threads may
// call at once. The processor must be in the default floating-point mode (no flushing of
// subnormals).
//
// Order: a strip is 1024 elements. Element i of a strip belongs to lane i % 16, and each lane adds
// its elements in order. The 16 lanes are then added by halves (lane k takes lane k + 8, then k +
// 4, ...). 8 strips are a chunk and are added by halves as well. Chunk c of a tensor belongs to
// slot c % 256, each slot adds its chunks in order, and the slots are added by halves. Everything
// in double: the square of a float is exact there, so fused multiply-adds change nothing.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "kernels/tensor.h"

namespace trainwreck::kernels {

struct TensorStats {
  std::int64_t count = 0;
  std::int64_t nonfinite = 0;
  std::int64_t nan = 0;    // of the nonfinite; the others are infinite
  std::int64_t zeros = 0;  // +0 and -0
  // Over the finite elements:
  double max_abs = 0;
  double sum = 0;
  double sum_squares = 0;

  std::int64_t finite() const { return count - nonfinite; }
  double norm() const { return std::sqrt(sum_squares); }
  double mean() const { return finite() == 0 ? 0.0 : sum / static_cast<double>(finite()); }
  // The standard deviation of the population (divided by n). Cancellation makes it inexact where
  // |mean| >> stddev.
  double stddev() const {
    if (finite() == 0) return 0;
    const double variance = sum_squares / static_cast<double>(finite()) - mean() * mean();
    return variance > 0 ? std::sqrt(variance) : 0.0;
  }
  // The norm as plain arithmetic would give it: NaN or infinite where there is such an element.
  double ieee_norm() const {
    if (nan > 0) return std::numeric_limits<double>::quiet_NaN();
    return nonfinite > 0 ? std::numeric_limits<double>::infinity() : norm();
  }
};

// stats[i] becomes the statistics of tensors[i]; both have the same length. Floating types of up to
// 32 bits; throws std::invalid_argument for others.
void ComputeTensorStats(std::span<const TensorView> tensors, std::span<TensorStats> stats);
TensorStats ComputeTensorStats(const TensorView& tensor);

struct ChangeStats {
  double now_squares = 0;     // sum of now^2
  double change_squares = 0;  // sum of (now - before)^2
  std::int64_t changed = 0;   // elements whose bits differ
};

// The change of a float32 tensor by an update, in plain arithmetic: non-finite elements make the
// sums non-finite. The result has the same bits with every instruction set.
ChangeStats CompareTensors(const float* now, const float* before, std::int64_t count);

}  // namespace trainwreck::kernels
