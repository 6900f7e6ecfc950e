// 64-bit digests of tensors: equality of ranks, of checkpoints, of resumed runs.
//
//   const std::uint64_t digest = TensorDigest(view);
//   const std::uint64_t all = CombineDigests(digests_of_the_parameters_in_order);
//
// Definition. A tensor's bytes are read as little-endian 64-bit words, the last one padded with
// zeros. With mix() a bijection of 64-bit words, G odd, and everything modulo 2^64,
//
//   digest = mix( sum over words i of mix(word_i + i * G) + mix(bytes * G + dtype + 1) )
//
// The order and the pieces of a sum do not matter: every chunking, instruction set and device gives
// the same value. (DigestPart gives the terms of a piece.)
//
// What it sees:
// - Always: any change confined to one word, thus every flipped bit: mix is a bijection, so exactly
//   one term of the sum changes.
// - With probability 1 - 2^-64 (mix taken as random): any other change that was not constructed
//   from mix, such as exchanged or permuted elements, several flipped signs, a moved or truncated
//   piece. Words enter with their position, so equal words at other positions have unrelated terms.
// It is no cryptographic digest: whoever wants to can construct collisions.
//
// mix is two rounds of xor-shift by 32 and multiply, and a last xor-shift (a variant of the
// finalizers of MurmurHash3 and SplitMix64 by "degski"). The shifts by 32 cost one instruction on a
// GPU; fewer rounds would let pairs of flipped signs cancel, because a sum lets differences of the
// top bit through unmixed.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/tensor.h"

namespace trainwreck::kernels {

// The digest of a tensor's values, their number and their type; the shape does not count.
std::uint64_t TensorDigest(const TensorView& tensor);

// digests[i] becomes TensorDigest(tensors[i]); both have the same length.
void ComputeDigests(std::span<const TensorView> tensors, std::span<std::uint64_t> digests);

// One digest of a list; the order counts.
std::uint64_t CombineDigests(std::span<const std::uint64_t> digests);
std::uint64_t ListDigest(std::span<const TensorView> tensors);

// The terms of `bytes` bytes that begin at word `first_word` of a tensor. A piece ends at a
// multiple of 8 bytes, unless it is the tensor's last. FinishDigest(sum of the parts, ...) ==
// TensorDigest(whole).
std::uint64_t DigestPart(const void* data, std::int64_t bytes, std::int64_t first_word);
std::uint64_t FinishDigest(std::uint64_t parts, std::int64_t bytes, DType dtype);

}  // namespace trainwreck::kernels
