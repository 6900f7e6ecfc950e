// Damages a tensor in a chosen, repeatable way and says what it did: the tool of faults that
// corrupt weights, gradients or results of collectives.
//
//   Corruption flip{.kind = Corruption::Kind::kFlipBit, .bit = 30, .seed = 7};
//   CorruptionReport report = Corrupt(MutableTensorView{data, count, DType::kFloat32}, flip);
//
// The chosen elements and their new values depend only on (corruption, count), by arithmetic that
// CPU and GPU share (corrupt_element.h): the same seed gives the same bits in the same elements on
// both.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/tensor.h"

namespace trainwreck::kernels {

struct Corruption {
  enum class Kind {
    kFlipBit,   // bit `bit`, 0 = lowest of the mantissa
    kSetValue,  // to `value`, rounded to the tensor's type
    kScale,     // by `value`
    kAddNoise,  // of mean 0 and standard deviation `value`, near normal, never beyond 6 of them
    kZero,      // to +0
  };
  enum class Where {
    kScattered,  // `elements` different ones, anywhere
    kRegion,     // `elements` that follow each other
  };
  Kind kind = Kind::kFlipBit;
  Where where = Where::kScattered;
  std::int64_t elements = 1;  // at most all are taken
  // The (first) element, else chosen by the seed. Implies kRegion.
  std::optional<std::int64_t> first = std::nullopt;
  int bit = 0;
  double value = 0;
  std::uint64_t seed = 0;
};

struct CorruptedElement {
  std::int64_t index = 0;
  std::uint64_t before_bits = 0, after_bits = 0;
  double before = 0, after = 0;
};

struct CorruptionReport {
  static constexpr std::int64_t kShown = 16;
  std::int64_t elements = 0;            // chosen
  std::int64_t changed = 0;             // of these, whose bits differ now
  std::vector<CorruptedElement> shown;  // the first kShown chosen
};

// Damages a tensor of float32, float16 or bfloat16. Throws std::invalid_argument for other types, a
// bit outside the type, or an element outside the tensor. A tensor without elements is left alone.
CorruptionReport Corrupt(const MutableTensorView& tensor, const Corruption& corruption);

}  // namespace trainwreck::kernels
