// From sample ids to batches: draws ids from the sampler, fetches and collates the samples, and
// applies the loader's guard (loader.guard) to them. With workers, ids are drawn and samples are
// fetched ahead of training. What is trained on, in which order, and what a checkpoint has, does
// not depend on that: ids are drawn in one thread, and batches are taken in the order of their ids.
#pragma once

#include <deque>
#include <future>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "trainer/parts.h"
#include "trainer/ranks/worker_threads.h"
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

// What the loss of a batch is a mean over: the weights of its targets, or its sequences.
double CountOf(const Batch& batch, bool per_sequence);

// Bytes of text that the targets stand for which count in the loss.
double BytesOfTargets(const std::vector<Sample>& samples, const Tokenizer& tokenizer);

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
  std::int64_t max_len = 0;        // sequences are cut off there; 0: they are not
  bool trim_padding = false;       // pad to the longest row of the batch
  std::int64_t workers = 0;        // threads that fetch; 0: Next() does
  std::int64_t prefetch = 1;       // batches that each of them fetches ahead
  std::int64_t micro_batches = 1;  // of a step
};

class Loader {
 public:
  // The references must outlive the loader.
  Loader(Sampler& sampler, const Dataset& data, LoaderOptions options, const Clock& clock,
         EventSink& events);

  // Nothing is fetched ahead for this step and later ones.
  void TrainUntil(int end) { end_ = end; }
  // No more batches are taken: waits for what is being fetched.
  void Stop() { workers_.reset(); }

  // The next batch; empty: the sampler's epoch is over, and the next call starts a new epoch. A
  // batch without samples is a shadow: this rank ran out of data, and only takes part in the
  // others' collectives (sampler.uneven: join). Throws GuardStop, and what fetching threw.
  std::optional<Batch> Next();

  // The batch that Next() will give, where it was fetched ahead and is there; null: it is not, or
  // the guard will have something to say of it. Valid until Next() or Load().
  const Batch* Peek();

  // Of the sampler, as if no batch had been drawn ahead.
  std::int64_t epoch() const;  // of the next batch
  void Save(StateDict& state) const;
  void Load(const StateDict& state);  // what was fetched ahead is dropped

  std::int64_t skipped() const {
    return skipped_;
  }  // samples kept from training so far, by the guard

 private:
  // One answer of the sampler, and the samples on their way.
  struct Drawn {
    std::int64_t epoch = 0;  // the sampler's before it was asked, as is the state
    StateDict sampler;
    std::vector<std::int64_t> ids;
    bool is_shadow = false;
    std::shared_future<std::vector<Sample>> samples;
    std::optional<Batch> batch;  // of the samples, if somebody has peeked
  };
  Drawn Draw();
  Drawn Take();
  // The step of a batch that is drawn now, if the guard skips none before it.
  int StepOfDraw() const;
  Batch BatchOf(std::vector<Sample> samples) const;
  // The samples that the guard accepts; empty: draw another batch.
  std::vector<Sample> Guard(std::vector<Sample> samples);

  Sampler& sampler_;
  const Dataset& data_;
  LoaderOptions options_;
  const Clock& clock_;
  EventSink& events_;
  std::int64_t skipped_ = 0;
  int end_ = std::numeric_limits<int>::max();
  int step_ = -1;                         // in which the last batch was given,
  std::int64_t given_ = 0;                // and how many were in that step
  std::deque<Drawn> ahead_;               // in the order of training
  std::optional<WorkerThreads> workers_;  // last: they end before what they use
};

}  // namespace trainwreck
