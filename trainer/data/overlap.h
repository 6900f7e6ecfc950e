// Which training samples are in the held-out data too, equal or near: what an evaluation of them
// measures is memory. As in checks for contamination by shared n-grams (Brown et al. 2020, "Language
// Models are Few-Shot Learners", appendix C) and in near-deduplication (Lee et al. 2022,
// "Deduplicating Training Data Makes Language Models Better").
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/parts.h"

namespace trainwreck {

struct Overlap {
  std::vector<std::int64_t> equal;  // ids of training samples, ascending
  std::vector<std::int64_t> near;   // the same, of those that are near and not equal
  std::int64_t held_out_seen = 0;   // held-out samples with an equal or near training sample

  // Ids of both, ascending.
  std::vector<std::int64_t> All() const;
};

// Tokens of an n-gram, and the share of a training sample's n-grams that one held-out sample must
// have to be near to it. By chance, two sequences of 64 tokens of the Markov source
// share less than a tenth; of many short ones some pairs share half.
inline constexpr std::int64_t kNearGram = 5;
inline constexpr double kNearShare = 0.5;
// The distance of two near feature vectors, as a share of the held-out one's length. By chance it
// is about 1.4, the distance of vectors at right angles.
inline constexpr double kNearDistance = 0.25;

// Reads all samples of both once: inputs int64 `[seq_len]`, or float `[features]`, which cost
// training.size() * held_out.size() * features.
Overlap FindOverlap(const Dataset& training, const Dataset& held_out);

}  // namespace trainwreck
