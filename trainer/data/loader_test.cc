// Samples that are fetched ahead by workers: the same training as without, and fetching at the same
// time.
#include "trainer/data/loader.h"

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <memory>
#include <stdexcept>
#include <thread>

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
            .target = at::full({}, id == bad_id ? 4 : id % 4, at::kLong),
            .weight = at::ones({})};
  }

  std::function<void(std::int64_t)> on_fetch;
  std::int64_t bad_id = -1;  // its target is out of range
  mutable std::atomic<int> fetched = 0;
};

class Rejections : public EventSink {
 public:
  Ids rejected;

 protected:
  void Write(const std::string& name, Json fields) override {
    EXPECT_EQ(name, "sample_rejected");
    rejected.push_back(fields.value("sample", -1));
  }
};

// A loader over all samples in their order, in batches of 4: an epoch is five of them and one of 2.
struct Bench {
  explicit Bench(std::int64_t workers, std::int64_t prefetch = 1, bool shuffle = false,
                 LoaderGuard guard = LoaderGuard::kNone)
      : sampler(shards, *ranks, {.batch_size = 4, .seed = 5, .shuffle = shuffle}),
        loader(sampler, data, {.guard = guard, .workers = workers, .prefetch = prefetch}, clock,
               events) {}

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
  Rejections events;
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

TEST(LoaderWorkers, ShowTheBatchThatTheyWillGive) {
  Bench plain(0), ahead(2, 2);
  EXPECT_EQ(plain.loader.Peek(), nullptr) << "nothing is fetched ahead";
  EXPECT_EQ(ahead.loader.Peek(), nullptr);
  for (int i = 0; i < 12; ++i) {  // two epochs
    const StateDict state = plain.Saved();
    const Ids due = plain.Next();
    const Batch* next = nullptr;
    for (int tries = 0; i > 0 && !due.empty() && next == nullptr && tries < 1000; ++tries) {
      next = ahead.loader.Peek();
      if (next == nullptr) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    const at::Tensor inputs = next != nullptr ? next->inputs : at::Tensor();
    EXPECT_EQ(next != nullptr, i > 0 && !due.empty()) << i;
    if (next != nullptr) {
      EXPECT_EQ(next->ids, due);
    }
    for (const auto& [name, tensor] : ahead.Saved()) EXPECT_TRUE(tensor.equal(state.at(name)));
    const std::optional<Batch> batch = ahead.loader.Next();
    ++ahead.clock.step;
    EXPECT_EQ(batch ? batch->ids : Ids(), due) << i;
    if (inputs.defined()) {
      EXPECT_TRUE(batch->inputs.is_same(inputs)) << "and no other copy of it";
    }
  }
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

// The guard reports a bad sample in the step that it belongs to.
TEST(LoaderWorkers, ShowNoBatchThatTheGuardWillLookAt) {
  Bench bench(2, 2, /*shuffle=*/false, LoaderGuard::kDropSample);
  std::latch fetched(12);
  bench.data.on_fetch = [&](std::int64_t id) {
    if (id < 12) fetched.count_down();
  };
  bench.data.bad_id = 5;
  EXPECT_EQ(bench.Next(), (Ids{0, 1, 2, 3}));
  fetched.wait();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(bench.loader.Peek(), nullptr);
  EXPECT_TRUE(bench.events.rejected.empty());
  EXPECT_EQ(bench.Next(), (Ids{4, 6, 7}));
  EXPECT_EQ(bench.events.rejected, (Ids{5}));
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
      EXPECT_EQ(BitsWithoutMemory(other), BitsWithoutMemory(plain));
      EXPECT_EQ(other.checkpoints, plain.checkpoints);
    }
    EXPECT_FALSE(plain.checkpoints.empty());
  }
}

}  // namespace
}  // namespace trainwreck
