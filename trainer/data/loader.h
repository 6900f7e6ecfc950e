// From sample ids to batches: draws ids from the sampler, fetches and collates the samples, and
// applies the loader's guard (loader.guard) to them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trainer/parts.h"
#include "trainer/recipe/recipe.h"

namespace trainwreck {

// The defect of a sample: a non-finite number, an index out of range, or no target that counts.
struct SampleDefect {
  std::int64_t sample = 0;
  std::string field;  // "input", "target", "weight"
  std::int64_t position = 0;
  double value = 0;
  std::string why;  // "not finite", "out of range [0, 64)", "all 0"
};

// The first defect, in the order input, target, weight; empty when the sample is fine.
std::optional<SampleDefect> FindDefect(const Sample& sample, const Dataset& data);

Batch Collate(const std::vector<Sample>& samples);

// Ends a run whose guard says `stop`; the message names the sample.
class GuardStop : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Loader {
 public:
  // The references must outlive the loader. Sequences are cut off at `max_len`; 0: they are not.
  Loader(Sampler& sampler, const Dataset& data, LoaderGuard guard, std::int64_t max_len,
         EventSink& events);

  // The next batch; empty: the sampler's epoch is over, and the next call starts a new epoch. A
  // batch without samples is a shadow: this rank ran out of data, and only takes part in the
  // others' collectives (sampler.uneven: join). Throws GuardStop.
  std::optional<Batch> Next();

  std::int64_t skipped() const {
    return skipped_;
  }  // samples kept from training so far, by the guard

 private:
  // The samples that the guard accepts; empty: draw another batch.
  std::vector<Sample> Guard(std::vector<Sample> samples);

  Sampler& sampler_;
  const Dataset& data_;
  LoaderGuard guard_;
  std::int64_t max_len_;
  EventSink& events_;
  std::int64_t skipped_ = 0;
};

}  // namespace trainwreck
