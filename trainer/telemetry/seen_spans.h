// Whether an evaluation is of text that training has read: the spans of input that both contain, as
// in checks of a data set for contamination (Brown et al. 2020, "Language Models are Few-Shot
// Learners", appendix C: shared n-grams).
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "trainer/parts.h"

namespace trainwreck {

class SeenSpans {
 public:
  // Tokens of a span. A row that is shorter, and a row of features, is one span.
  static constexpr std::int64_t kSpan = 48;

  // Remembers all spans of a batch that is trained on. Inputs: `[rows, tokens]` or
  // `[rows, features]`.
  void Add(const Batch& batch);

  // Of a batch that is evaluated: its spans, and those of them that were added before.
  struct Count {
    double spans = 0;
    double seen = 0;
    Count& operator+=(const Count& more) {
      spans += more.spans;
      seen += more.seen;
      return *this;
    }
  };
  Count CountIn(const Batch& batch) const;

 private:
  std::unordered_set<std::size_t> hashes_;
};

}  // namespace trainwreck
