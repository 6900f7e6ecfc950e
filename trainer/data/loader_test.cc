// Samples that are fetched ahead by workers: the same training as without, and fetching at the same
// time.
#include "trainer/data/loader.h"

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <latch>
#include <memory>
#include <stdexcept>

#include "trainer/data/data.h"
#include "trainer/data/sampler.h"
#include "trainer/data/shards.h"
#include "trainer/ranks/communicator.h"
#include "trainer/test_run.h"

namespace trainwreck {
namespace {

using Ids = std::vector<std::int64_t>;

constexpr std::int64_t kSamples = 22;

// Samples whose input is their id; tells who fetches what.
class Watched : public Dataset {
 public:
  std::int64_t size() const override { return kSamples; }
  std::int64_t input_limit() const override { return 0; }
  std::int64_t target_limit() const override { return 4; }
  Sample Get(std::int64_t id) const override {
    ++fetched;
    if (on_fetch) on_fetch(id);
    return {.id = id,
            .input = at::full({1}, static_cast<double>(id), at::kFloat),
            .target = at::full({}, id % 4, at::kLong),
            .weight = at::ones({})};
  }

  std::function<void(std::int64_t)> on_fetch;
  mutable std::atomic<int> fetched = 0;
};

class NoEvents : public EventSink {
 protected:
  void Write(const std::string& name, Json) override { ADD_FAILURE() << name; }
};

// A loader over all samples in their order, in batches of 4: an epoch is five of them and one of 2.
struct Bench {
  explicit Bench(std::int64_t workers, std::int64_t prefetch = 1, bool shuffle = false)
      : sampler(shards, *ranks, {.batch_size = 4, .seed = 5, .shuffle = shuffle}),
        loader(sampler, data, {.workers = workers, .prefetch = prefetch}, clock, events) {}

  // The ids of the next batch; empty: the epoch is over.
  Ids Next() {
    const std::optional<Batch> batch = loader.Next();
    ++clock.step;
    return batch ? batch->ids : Ids();
  }
  StateDict Saved() const {
    StateDict state;
    loader.Save(state);
    return state;
  }

  Watched data;
  EqualShards shards{kSamples, 1};
  std::unique_ptr<Communicator> ranks = MakeLocalCommunicator();
  EpochSampler sampler;
  Clock clock;
  NoEvents events;
  Loader loader;
};

TEST(LoaderWorkers, GiveTheBatchesAndSaveTheStateOfALoaderWithoutThem) {
  for (const auto& [workers, prefetch] : {std::pair{1, 1}, {1, 7}, {3, 1}, {4, 3}}) {
    Bench plain(0, 1, /*shuffle=*/true), ahead(workers, prefetch, /*shuffle=*/true);
    for (int i = 0; i < 30; ++i) {
      ASSERT_EQ(ahead.loader.epoch(), plain.loader.epoch()) << i;
      ASSERT_EQ(ahead.Next(), plain.Next()) << i;
      const StateDict expected = plain.Saved(), state = ahead.Saved();
      ASSERT_EQ(state.size(), expected.size());
      for (const auto& [name, tensor] : expected) {
        EXPECT_TRUE(state.at(name).equal(tensor)) << name << " after batch " << i;
      }
    }
  }
}

TEST(LoaderWorkers, GoOnFromASavedStateWhateverTheyFetchedAhead) {
  Bench bench(3, 2, /*shuffle=*/true);
  for (int i = 0; i < 4; ++i) bench.Next();
  const StateDict saved = bench.Saved();
  std::vector<Ids> first, again;
  for (int i = 0; i < 9; ++i) first.push_back(bench.Next());
  bench.loader.Load(saved);
  for (int i = 0; i < 9; ++i) again.push_back(bench.Next());
  EXPECT_EQ(again, first);
  bench.loader.Load({});  // of a checkpoint that lacks the position: training goes on where it is
  Bench plain(0, 1, /*shuffle=*/true);
  for (int i = 0; i < 13; ++i) plain.Next();
  EXPECT_EQ(bench.Next(), plain.Next());
}

// No batch is given before all workers are within a fetch.
TEST(LoaderWorkers, FetchAtTheSameTime) {
  Bench bench(4);
  std::latch all_fetch(4);
  bench.data.on_fetch = [&](std::int64_t id) {
    if (id < 16 && id % 4 == 0) all_fetch.arrive_and_wait();
  };
  EXPECT_EQ(bench.Next(), (Ids{0, 1, 2, 3}));
}

TEST(LoaderWorkers, KeepTheOrderWhenTheFirstBatchIsTheLastToCome) {
  Bench bench(3);
  std::latch others(2);
  bench.data.on_fetch = [&](std::int64_t id) {
    if (id == 0) others.wait();
    if (id == 7 || id == 11) others.count_down();
  };
  EXPECT_EQ(bench.Next(), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(bench.Next(), (Ids{4, 5, 6, 7}));
}

TEST(LoaderWorkers, FetchNoMoreThanIsTrainedOn) {
  Bench bench(2, 8);
  bench.loader.TrainUntil(3);
  for (int step = 0; step < 3; ++step) bench.Next();
  bench.loader.Stop();
  EXPECT_EQ(bench.data.fetched, 3 * 4);
}

TEST(LoaderWorkers, GiveAnErrorWhereItsBatchIsDue) {
  Bench bench(2, 2);
  bench.data.on_fetch = [](std::int64_t id) {
    if (id == 9) throw std::runtime_error("sample 9 cannot be read");
  };
  EXPECT_EQ(bench.Next(), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(bench.Next(), (Ids{4, 5, 6, 7}));
  EXPECT_THROW(bench.Next(), std::runtime_error);
  EXPECT_EQ(bench.Next(), (Ids{12, 13, 14, 15}));
}

TEST(LoaderWorkers, WorkForTheStepOfTheirBatch) {
  Bench bench(2, 2);
  std::mutex mutex;
  std::map<std::int64_t, int> steps;  // by the batch's first id
  bench.data.on_fetch = [&](std::int64_t id) {
    std::lock_guard lock(mutex);
    const int step = StepOfThread(Clock{.step = -1});  // another clock: workers read none
    EXPECT_EQ(steps.try_emplace(id / 4, step).first->second, step);
  };
  bench.loader.TrainUntil(5);
  for (int i = 0; i < 5; ++i) bench.Next();
  EXPECT_EQ(steps, (std::map<std::int64_t, int>{{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 4}}));
}

TEST(CachedData, FetchesEachSampleOnce) {
  auto watched = std::make_unique<Watched>();
  Watched& data = *watched;
  const auto cached = Cached(std::move(watched));
  for (int i = 0; i < 3; ++i) {
    for (std::int64_t id : {3, 5, 8}) {
      EXPECT_EQ(cached->Get(id).id, id);
      EXPECT_EQ(cached->Get(id).input.item<float>(), static_cast<float>(id));
    }
  }
  EXPECT_EQ(data.fetched, 3);
  EXPECT_EQ(cached->size(), kSamples);
}

// Memory is left out: workers use theirs when they please.
std::map<std::string, std::vector<double>> WithoutMemory(const Outcome& outcome) {
  auto bits = BitsOf(outcome);
  std::erase_if(bits, [](const auto& signal) { return signal.first.starts_with("memory_"); });
  return bits;
}

// Whole runs: every signal of every step, and every byte of the checkpoints.
TEST(LoaderWorkers, ChangeNoBitOfARun) {
  const Recipe guarded = With(Mlp(), {{"data.samples", 44},
                                      {"accumulation", 3},
                                      {"loader.guard", "skip_batch"},
                                      {"checkpoint.every", 7}});
  const Recipe text = With(Gpt(), {{"data.document_tokens", 20},
                                   {"data.samples", 30},
                                   {"model.dropout", 0.1},
                                   {"loader.trim_padding", true},
                                   {"checkpoint.every", 5}});
  for (const Recipe& recipe : {guarded, text}) {
    const Outcome plain = RunOnce(recipe, {"param_digest"});
    for (const Recipe& change :
         {Recipe{{"loader.workers", 1}}, Recipe{{"loader.workers", 4}, {"loader.prefetch", 3}},
          Recipe{{"loader.cache", true}}, Recipe{{"loader.workers", 2}, {"loader.cache", true}}}) {
      const Outcome other = RunOnce(With(recipe, change), {"param_digest"});
      EXPECT_EQ(other.code, 0);
      EXPECT_EQ(WithoutMemory(other), WithoutMemory(plain));
      EXPECT_EQ(other.checkpoints, plain.checkpoints);
    }
    EXPECT_FALSE(plain.checkpoints.empty());
  }
}

}  // namespace
}  // namespace trainwreck
