// Version 1, and the only one: a fault acts once and on few elements, so there is nothing to gain
// from doing several at a time.
#include "kernels/corrupt.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "kernels/corrupt_element.h"
#include "kernels/corrupt_plan.h"

namespace trainwreck::kernels {

Selection PlanCorruption(const TensorView& tensor, const Corruption& corruption) {
  const DType dtype = tensor.dtype;
  if (dtype != DType::kFloat32 && dtype != DType::kFloat16 && dtype != DType::kBFloat16) {
    throw std::invalid_argument("corrupt: only float32, float16 and bfloat16, not type " +
                                std::to_string(static_cast<int>(dtype)));
  }
  const int bits = static_cast<int>(8 * ItemBytes(dtype));
  if (corruption.kind == Corruption::Kind::kFlipBit &&
      (corruption.bit < 0 || corruption.bit >= bits)) {
    throw std::invalid_argument("corrupt: bit " + std::to_string(corruption.bit) +
                                " of a type of " + std::to_string(bits) + " bits");
  }
  if (corruption.elements < 0)
    throw std::invalid_argument("corrupt: a negative number of elements");
  Selection selection;
  selection.count = tensor.count;
  selection.seed = corruption.seed;
  selection.region = corruption.where == Corruption::Where::kRegion || corruption.first.has_value();
  selection.elements = std::min(corruption.elements, tensor.count);
  if (tensor.count == 0) return selection;
  if (corruption.first) {
    selection.first = *corruption.first;
    if (selection.first < 0 || selection.first >= tensor.count) {
      throw std::invalid_argument("corrupt: element " + std::to_string(selection.first) + " of " +
                                  std::to_string(tensor.count));
    }
    selection.elements = std::min(selection.elements, tensor.count - selection.first);
  } else if (selection.region) {
    const std::int64_t starts = tensor.count - selection.elements + 1;
    selection.first = ShuffledIndex(0, starts, corruption.seed);
  }
  return selection;
}

CorruptionReport Corrupt(const MutableTensorView& tensor, const Corruption& corruption) {
  const Selection selection = PlanCorruption(tensor, corruption);
  const std::size_t item_bytes = static_cast<std::size_t>(ItemBytes(tensor.dtype));
  CorruptionReport report;
  report.elements = selection.elements;
  for (std::int64_t j = 0; j < selection.elements; ++j) {
    const std::int64_t index = selection.Index(j);
    char* at = static_cast<char*>(tensor.data) + index * static_cast<std::int64_t>(item_bytes);
    std::uint64_t before = 0;
    std::memcpy(&before, at, item_bytes);
    const std::uint64_t after = CorruptBits(before, index, tensor.dtype, corruption.kind,
                                            corruption.bit, corruption.value, corruption.seed);
    std::memcpy(at, &after, item_bytes);
    report.changed += before != after;
    if (j < CorruptionReport::kShown) {
      report.shown.push_back(
          {index, before, after, Decode(before, tensor.dtype), Decode(after, tensor.dtype)});
    }
  }
  return report;
}

}  // namespace trainwreck::kernels
