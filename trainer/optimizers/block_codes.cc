#include "trainer/optimizers/block_codes.h"

#include <ATen/ops/bucketize.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace trainwreck {
namespace {

// Decade d, from (10^-(d+1), 10^-d], has twice as many values as the next smaller one: the middles
// of equal parts of it. 0 and 1 are values, too.
std::vector<float> TableOf(bool is_signed) {
  constexpr int kDecades = 7;
  std::vector<float> table = {0.0F, 1.0F};
  for (int decade = 0; decade < kDecades; ++decade) {
    const int parts = 1 << (kDecades - 1 - decade + (is_signed ? 0 : 1));
    const double scale = std::pow(10.0, -decade);
    for (int part = 0; part < parts; ++part) {
      const auto value = static_cast<float>(scale * (0.1 + 0.9 * (part + 0.5) / parts));
      table.push_back(value);
      if (is_signed) table.push_back(-value);
    }
  }
  std::sort(table.begin(), table.end());
  return table;
}

// float [blocks, 256], zeros behind the end.
at::Tensor InBlocks(const at::Tensor& values) {
  const std::int64_t missing = BlocksOf(values.numel()) * kCodesPerBlock - values.numel();
  return at::constant_pad_nd(values, {0, missing}).view({-1, kCodesPerBlock});
}

}  // namespace

std::int64_t BlocksOf(std::int64_t elements) {
  return (elements + kCodesPerBlock - 1) / kCodesPerBlock;
}

BlockCodes::BlockCodes(bool is_signed) : is_signed_(is_signed) {
  const std::vector<float> table = TableOf(is_signed);
  std::vector<float> borders;
  for (std::size_t i = 1; i < table.size(); ++i) borders.push_back((table[i - 1] + table[i]) / 2);
  values_ = at::tensor(table);
  borders_ = at::tensor(borders);
}

void BlockCodes::Encode(const at::Tensor& values, at::Tensor codes, at::Tensor scales) const {
  const at::Tensor blocks = InBlocks(values);
  const at::Tensor largest = blocks.abs().amax(1);
  const at::Tensor divisor = at::where(largest.eq(0), 1.0, largest).unsqueeze(1);
  const at::Tensor nearest =
      at::bucketize(blocks.div(divisor), borders_.to(values.device()), /*out_int32=*/true);
  // A second moment that became 0 would divide the first one by epsilon alone.
  const at::Tensor kept = is_signed_ ? nearest : nearest.maximum(blocks.gt(0));
  codes.copy_(kept.view({-1}).narrow(0, 0, values.numel()));
  scales.copy_(largest);
}

at::Tensor BlockCodes::Decode(const at::Tensor& codes, const at::Tensor& scales) const {
  const at::Tensor values =
      values_.to(codes.device()).index_select(0, codes.to(at::kInt));  // float [n]
  return InBlocks(values).mul(scales.unsqueeze(1)).view({-1}).narrow(0, 0, codes.numel());
}

}  // namespace trainwreck
