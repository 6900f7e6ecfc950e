// Numbers in 8 bits, by blocks (Dettmers et al. 2022, "8-bit optimizers via block-wise
// quantization"): each block of 256 has the fp32 scale that makes its largest magnitude 1, and a
// number is the code of the nearest value in a fixed table. The values of the table are dense
// around 0 (dynamic tree quantization): seven decades, with more values in the larger ones.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace trainwreck {

inline constexpr std::int64_t kCodesPerBlock = 256;

// Blocks of `elements` numbers; the last one may be shorter.
std::int64_t BlocksOf(std::int64_t elements);

class BlockCodes {
 public:
  // Signed: values in [-1, 1]. Else in [0, 1], with twice as many.
  explicit BlockCodes(bool is_signed);

  // Writes the codes of `values` (float [n]) into `codes` (uint8 [n]), and the blocks' scales into
  // `scales` (float [BlocksOf(n)]). A block that is not finite stays so: its scale is not finite.
  // Without a sign, what is not 0 becomes at least the smallest value that is not.
  void Encode(const at::Tensor& values, at::Tensor codes, at::Tensor scales) const;
  // float [n]
  at::Tensor Decode(const at::Tensor& codes, const at::Tensor& scales) const;

 private:
  bool is_signed_;
  at::Tensor values_;   // float [256], ascending
  at::Tensor borders_;  // float [255]: between each value and the next
};

}  // namespace trainwreck
