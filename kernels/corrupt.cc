#include "kernels/corrupt.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "kernels/corrupt_element.h"
#include "kernels/corrupt_plan.h"
#include "kernels/versions.h"

namespace trainwreck::kernels {
namespace {

CorruptFunction FunctionOf(InstructionSet set) {
  switch (set) {
    case InstructionSet::kAvx512:
      return Avx512Corrupt();
    case InstructionSet::kAvx2:
      return Avx2Corrupt();
    case InstructionSet::kPortable:
      break;
  }
  return PortableCorrupt();
}

std::uint64_t BitsAt(const MutableTensorView& tensor, std::int64_t index) {
  const std::int64_t bytes = ItemBytes(tensor.dtype);
  std::uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const char*>(tensor.data) + index * bytes,
              static_cast<std::size_t>(bytes));
  return bits;
}

}  // namespace

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

CorruptionReport Corrupt(const MutableTensorView& tensor, const Corruption& corruption,
                         InstructionSet set) {
  const Selection selection = PlanCorruption(tensor, corruption);
  CorruptionReport report;
  report.elements = selection.elements;
  for (std::int64_t j = 0; j < std::min(selection.elements, CorruptionReport::kShown); ++j) {
    const std::int64_t index = selection.Index(j);
    const std::uint64_t before = BitsAt(tensor, index);
    report.shown.push_back(
        {.index = index, .before_bits = before, .before = Decode(before, tensor.dtype)});
  }
  report.changed =
      FunctionOf(set)(tensor.data, tensor.dtype, selection,
                      {corruption.kind, corruption.bit, corruption.value, corruption.seed});
  for (CorruptedElement& element : report.shown) {
    element.after_bits = BitsAt(tensor, element.index);
    element.after = Decode(element.after_bits, tensor.dtype);
  }
  return report;
}

CorruptionReport Corrupt(const MutableTensorView& tensor, const Corruption& corruption) {
  return Corrupt(tensor, corruption, ChosenInstructionSet());
}

}  // namespace trainwreck::kernels
