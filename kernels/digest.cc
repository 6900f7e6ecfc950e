#include "kernels/digest.h"

#include <bit>
#include <cstring>
#include <stdexcept>
#include <string>

#include "kernels/digest_mix.h"
#include "kernels/versions.h"

namespace trainwreck::kernels {

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

namespace {

DigestFunction FunctionOf(InstructionSet set) {
  switch (set) {
    case InstructionSet::kAvx512:
      return Avx512Digest();
    case InstructionSet::kAvx2:
      return Avx2Digest();
    case InstructionSet::kPortable:
      break;
  }
  return PortableDigest();
}

}  // namespace

std::uint64_t DigestPart(const void* data, std::int64_t bytes, std::int64_t first_word,
                         InstructionSet set) {
  const std::int64_t words = bytes / 8;
  const std::int64_t rest = bytes % 8;
  const std::uint64_t first = static_cast<std::uint64_t>(first_word);
  std::uint64_t terms = FunctionOf(set)(data, words, first);
  if (rest > 0) {
    std::uint64_t word = 0;
    std::memcpy(&word, static_cast<const char*>(data) + words * 8, rest);
    terms += DigestTerm(word, first + static_cast<std::uint64_t>(words));
  }
  return terms;
}

std::uint64_t DigestPart(const void* data, std::int64_t bytes, std::int64_t first_word) {
  return DigestPart(data, bytes, first_word, ChosenInstructionSet());
}

std::uint64_t FinishDigest(std::uint64_t parts, std::int64_t bytes, DType dtype) {
  return DigestEnd(parts, bytes, dtype);
}

std::uint64_t TensorDigest(const TensorView& tensor) {
  return FinishDigest(DigestPart(tensor.data, tensor.bytes(), 0), tensor.bytes(), tensor.dtype);
}

void ComputeDigests(std::span<const TensorView> tensors, std::span<std::uint64_t> digests) {
  if (tensors.size() != digests.size()) {
    throw std::invalid_argument("digests: " + std::to_string(tensors.size()) +
                                " tensors, room for " + std::to_string(digests.size()));
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) digests[i] = TensorDigest(tensors[i]);
}

std::uint64_t CombineDigests(std::span<const std::uint64_t> digests) {
  std::uint64_t terms = 0;
  for (std::size_t i = 0; i < digests.size(); ++i) terms += DigestTerm(digests[i], i);
  return DigestMix(terms + DigestMix(digests.size() + 1));
}

std::uint64_t ListDigest(std::span<const TensorView> tensors) {
  std::uint64_t terms = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) terms += DigestTerm(TensorDigest(tensors[i]), i);
  return DigestMix(terms + DigestMix(tensors.size() + 1));
}

}  // namespace trainwreck::kernels
