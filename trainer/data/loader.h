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

// Batches padded to their longest row: the positions behind the last target that counts in any
// sample are cut off. At least one position stays.
std::vector<Sample> WithoutPadding(std::vector<Sample> samples);

struct LoaderOptions {
  LoaderGuard guard = LoaderGuard::kNone;
  std::int64_t max_len = 0;   // sequences are cut off there; 0: they are not
  bool trim_padding = false;  // pad to the longest row of the batch
};

class Loader {
 public:
  // The references must outlive the loader.
  Loader(Sampler& sampler, const Dataset& data, LoaderOptions options, EventSink& events);

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
  LoaderOptions options_;
  EventSink& events_;
  std::int64_t skipped_ = 0;
};

}  // namespace trainwreck
