#include "trainer/data/elastic.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/scalar_tensor.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "trainer/checkpoints/checkpoint.h"
#include "trainer/devices/rng.h"
#include "trainer/ranks/forked_ranks.h"

namespace trainwreck {
namespace {

// Of a rank that has drawn `drawn` samples of the epoch, whose ids add up to `id_sum`.
StateDict StateOf(int rank, int drawn, double id_sum) {
  at::manual_seed(rank);
  StateDict state = {{"model.weight", at::full({2}, 0.5)},
                     {"sampler.position", at::scalar_tensor(drawn, at::kLong)},
                     {"loop.epoch_samples", at::scalar_tensor(drawn, at::kDouble)},
                     {"loop.epoch_id_sum", at::scalar_tensor(id_sum, at::kDouble)}};
  SaveTorchRng(state);
  return state;
}

std::vector<StateDict> StatesOf(int ranks, int drawn) {
  std::vector<StateDict> states;
  for (int rank = 0; rank < ranks; ++rank) states.push_back(StateOf(rank, drawn, 10 * rank));
  return states;
}

double NumberIn(const StateDict& state, const char* name) { return state.at(name).item<double>(); }

TEST(Elastic, KeepsWhatAllRanksHaveDrawn) {
  const auto saved = StatesOf(4, 6);
  for (const int ranks : {1, 2, 3, 8, 12}) {
    double samples = 0, id_sum = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const StateDict state = Reshard(saved, rank, ranks);
      EXPECT_EQ(NumberIn(state, "sampler.position"), 24.0 / ranks);
      EXPECT_TRUE(at::equal(state.at("model.weight"), saved[0].at("model.weight")));
      samples += NumberIn(state, "loop.epoch_samples");
      id_sum += NumberIn(state, "loop.epoch_id_sum");
    }
    EXPECT_EQ(samples, 24);
    EXPECT_EQ(id_sum, 60);
  }
}

TEST(Elastic, RefusesSamplesThatDoNotDivide) {
  EXPECT_THROW(Reshard(StatesOf(4, 6), 0, 5), std::runtime_error);
}

TEST(Elastic, DoesNotInventWhatACheckpointLacks) {
  auto saved = StatesOf(4, 6);
  saved[2].erase("sampler.position");
  saved[3]["loop.epoch_samples"] = at::scalar_tensor(-1.0, at::kDouble);
  const StateDict state = Reshard(saved, 0, 2);
  EXPECT_FALSE(state.contains("sampler.position"));
  EXPECT_EQ(NumberIn(state, "loop.epoch_samples"), -1);
}

TEST(Elastic, EachRankHasAGeneratorOfItsOwn) {
  const auto saved = StatesOf(2, 6);
  std::vector<at::Tensor> generators;
  for (int rank = 0; rank < 6; ++rank) {
    const StateDict state = Reshard(saved, rank, 6);
    LoadTorchRng(state);  // it is one
    for (const at::Tensor& other : generators) {
      EXPECT_FALSE(at::equal(state.at("rng.torch"), other)) << "rank " << rank;
    }
    generators.push_back(state.at("rng.torch"));
    EXPECT_TRUE(at::equal(generators.back(), Reshard(saved, rank, 6).at("rng.torch")));
  }
  for (const int rank : {0, 1}) {
    EXPECT_TRUE(at::equal(generators[rank], saved[rank].at("rng.torch")));
  }
}

FileCheckpointStore StoreOf(const ScratchFolder& folder, int rank, int world_size,
                            bool elastic = true) {
  CheckpointOptions options{.dir = folder.path(),
                            .rank = rank,
                            .world_size = world_size,
                            .writer = "train." + std::to_string(world_size)};
  if (elastic) {
    options.reshard = [rank, world_size](const std::vector<StateDict>& saved) {
      return Reshard(saved, rank, world_size);
    };
  }
  return FileCheckpointStore(options);
}

void SaveAll(const ScratchFolder& folder, int steps_done, int world_size, int drawn) {
  for (int rank = 0; rank < world_size; ++rank) {
    StoreOf(folder, rank, world_size).Save(steps_done, StateOf(rank, drawn, 0));
  }
}

TEST(Elastic, AnyNumberOfRanksListsAndLoadsTheSame) {
  ScratchFolder folder;
  SaveAll(folder, 10, 4, 6);
  for (const int ranks : {1, 2, 4, 8}) {
    for (int rank = 0; rank < ranks; ++rank) {
      const FileCheckpointStore store = StoreOf(folder, rank, ranks);
      EXPECT_EQ(store.List(), (std::vector<int>{10})) << rank << " of " << ranks;
      EXPECT_EQ(NumberIn(store.Load(10), "sampler.position"), 24.0 / ranks);
    }
  }
  EXPECT_TRUE(StoreOf(folder, 0, 2, /*elastic=*/false).List().empty());
}

TEST(Elastic, OneMissingOrForeignFileSpoilsTheWhole) {
  ScratchFolder folder;
  SaveAll(folder, 10, 4, 6);
  SaveAll(folder, 20, 4, 12);
  std::filesystem::remove(CheckpointPath(folder.path(), 20, 3));
  EXPECT_EQ(StoreOf(folder, 1, 2).List(), (std::vector<int>{10}));
  // Two ranks save the step again, and one is killed before it has.
  SaveAll(folder, 20, 4, 12);
  StoreOf(folder, 0, 2).Save(20, StateOf(0, 24, 0));
  for (const int ranks : {2, 4}) {
    EXPECT_EQ(StoreOf(folder, 0, ranks).List(), (std::vector<int>{10}));
  }
  StoreOf(folder, 1, 2).Save(20, StateOf(1, 24, 0));
  EXPECT_EQ(StoreOf(folder, 0, 4).List(), (std::vector<int>{10, 20}));
}

TEST(Elastic, FilesOfRanksThatAreNoMoreAreRemoved) {
  ScratchFolder folder;
  SaveAll(folder, 10, 4, 6);
  for (const int step : {20, 30, 40}) SaveAll(folder, step, 2, 3 * step);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    EXPECT_FALSE(entry.path().filename().string().starts_with("step-00000010")) << entry.path();
  }
}

}  // namespace
}  // namespace trainwreck
