// The body of corrupt on a CPU: blocks of chosen elements are collected, changed by one loop that
// vectorizes, and put back. Included by one file for each instruction set, which defines
// CORRUPT_TARGET before.
#pragma once

#include <cstring>
#include <type_traits>

#include "kernels/corrupt_plan.h"

namespace trainwreck::kernels {
// Each file that includes this compiles it for another instruction set.
namespace {  // NOLINT(google-build-namespaces)

constexpr std::int64_t kBlock = 256;  // NOLINT(misc-definitions-in-headers)

// Copies bytes, since the elements need not lie at a multiple of their size.
template <typename Bits>
std::uint64_t Load(const char* data, std::int64_t index) {
  Bits bits;
  std::memcpy(&bits, data + index * static_cast<std::int64_t>(sizeof bits), sizeof bits);
  return bits;
}

template <typename Bits>
void Store(char* data, std::int64_t index, std::uint64_t wide) {
  const Bits bits = static_cast<Bits>(wide);
  std::memcpy(data + index * static_cast<std::int64_t>(sizeof bits), &bits, sizeof bits);
}

// `type`, `kind` and `is_region` are known when this is compiled, so that no loop decides.
template <DType type, Corruption::Kind kind, bool is_region>
CORRUPT_TARGET std::int64_t ChangeSelected(char* data, const Selection& selection, Change change) {
  using Bits = std::conditional_t<type == DType::kFloat32, std::uint32_t, std::uint16_t>;
  change.kind = kind;
  std::int64_t changed = 0;
  std::int64_t index[kBlock];
  std::uint64_t before[kBlock] = {};
  std::uint64_t after[kBlock];
  for (std::int64_t begin = 0; begin < selection.elements; begin += kBlock) {
    const std::int64_t left = selection.elements - begin;
    const std::int64_t count = left < kBlock ? left : kBlock;
    for (std::int64_t k = 0; k < kBlock; ++k) index[k] = selection.first + begin + k;
    if constexpr (!is_region) {
      for (std::int64_t k = 0; k < count; ++k) index[k] = selection.Index(begin + k);
    }
    char* region = data + index[0] * static_cast<std::int64_t>(sizeof(Bits));
    for (std::int64_t k = 0; k < count; ++k) {
      before[k] = is_region ? Load<Bits>(region, k) : Load<Bits>(data, index[k]);
    }
    for (std::int64_t k = 0; k < kBlock; ++k) {
      after[k] = CorruptBits(before[k], index[k], type, change);
    }
    for (std::int64_t k = 0; k < count; ++k) {
      is_region ? Store<Bits>(region, k, after[k]) : Store<Bits>(data, index[k], after[k]);
    }
    for (std::int64_t k = 0; k < count; ++k) changed += before[k] != after[k] ? 1 : 0;
  }
  return changed;
}

template <DType type, Corruption::Kind kind>
std::int64_t ChangeOf(char* data, const Selection& selection, const Change& change) {
  return selection.region ? ChangeSelected<type, kind, true>(data, selection, change)
                          : ChangeSelected<type, kind, false>(data, selection, change);
}

template <DType type>
std::int64_t ChangeAs(char* data, const Selection& selection, const Change& change) {
  using Kind = Corruption::Kind;
  switch (change.kind) {
    case Kind::kFlipBit:
      return ChangeOf<type, Kind::kFlipBit>(data, selection, change);
    case Kind::kSetValue:
      return ChangeOf<type, Kind::kSetValue>(data, selection, change);
    case Kind::kScale:
      return ChangeOf<type, Kind::kScale>(data, selection, change);
    case Kind::kAddNoise:
      return ChangeOf<type, Kind::kAddNoise>(data, selection, change);
    case Kind::kZero:
      return ChangeOf<type, Kind::kZero>(data, selection, change);
  }
  return 0;
}

// NOLINTNEXTLINE(misc-definitions-in-headers)
std::int64_t ChangeTensor(void* data, DType dtype, const Selection& selection,
                          const Change& change) {
  char* bytes = static_cast<char*>(data);
  switch (dtype) {
    case DType::kFloat16:
      return ChangeAs<DType::kFloat16>(bytes, selection, change);
    case DType::kBFloat16:
      return ChangeAs<DType::kBFloat16>(bytes, selection, change);
    default:
      return ChangeAs<DType::kFloat32>(bytes, selection, change);
  }
}

}  // namespace
}  // namespace trainwreck::kernels
