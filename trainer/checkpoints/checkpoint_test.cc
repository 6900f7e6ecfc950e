#include "trainer/checkpoints/checkpoint.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "trainer/ranks/forked_ranks.h"

namespace trainwreck {
namespace {

StateDict SmallState(double value) {
  return {{"loop.step", at::full({}, static_cast<std::int64_t>(value), at::kLong)},
          {"model.weight", at::full({2, 3}, value, at::kFloat)},
          {"optimizer.momentum", at::zeros({0})}};
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void WriteAll(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc).write(bytes.data(), bytes.size());
}

std::string PathIn(const ScratchFolder& folder, const std::string& step, int rank = 0) {
  return folder.File("step-000000" + step + ".rank" + std::to_string(rank) + ".ckpt");
}

std::set<std::string> FilesIn(const ScratchFolder& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    names.insert(entry.path().filename());
  }
  return names;
}

bool SameBits(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() &&
         (a.nbytes() == 0 || std::memcmp(a.contiguous().const_data_ptr(),
                                         b.contiguous().const_data_ptr(), a.nbytes()) == 0);
}

TEST(Checkpoint, BringsBackEveryDtypeAndShapeBitForBit) {
  ScratchFolder folder;
  StateDict state;
  for (at::ScalarType dtype :
       {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kShort,
        at::kChar, at::kByte, at::kBool, at::kComplexFloat, at::kComplexDouble}) {
    const std::string name = c10::toString(dtype);
    state[name] = (at::rand({3, 4}) * 100).to(dtype);
    state[name + ".scalar"] = (at::rand({}) * 100).to(dtype);
    state[name + ".empty"] = at::zeros({0, 5}, dtype);
  }
  state["transposed"] = at::rand({3, 4}).t();
  state["slice"] = at::arange(10).narrow(0, 3, 4);
  state["nan"] = at::full({2}, std::nan(""));
  state["parameter"] = at::rand({2}).requires_grad_(true);
  state["odd \"name\"\n"] = at::rand({1});

  FileCheckpointStore store({.dir = folder.File("new/folder")});
  store.Save(7, state);
  const StateDict loaded = store.Load(7);
  ASSERT_EQ(loaded.size(), state.size());
  for (const auto& [name, tensor] : state) {
    EXPECT_TRUE(SameBits(loaded.at(name), tensor.detach())) << name;
    EXPECT_FALSE(loaded.at(name).requires_grad()) << name;
  }
}

TEST(Checkpoint, KeepsTheNewestWholeOnes) {
  ScratchFolder folder;
  FileCheckpointStore store({.dir = folder.path(), .keep = 2});
  EXPECT_TRUE(store.List().empty());
  for (int step : {10, 20, 30, 40}) store.Save(step, SmallState(step));
  EXPECT_EQ(store.List(), (std::vector<int>{30, 40}));
  EXPECT_EQ(FilesIn(folder).size(), 2u);
  EXPECT_TRUE(SameBits(store.Load(30).at("model.weight"), SmallState(30).at("model.weight")));
  EXPECT_THROW(store.Load(10), std::runtime_error);
}

TEST(Checkpoint, SavingAgainReplaces) {
  ScratchFolder folder;
  FileCheckpointStore store({.dir = folder.path()});
  store.Save(10, SmallState(1));
  store.Save(10, SmallState(2));
  EXPECT_TRUE(SameBits(store.Load(10).at("model.weight"), SmallState(2).at("model.weight")));
}

// Every length that a save can leave behind, had it not been atomic: the damage is seen, and the
// previous checkpoint is still there.
TEST(Checkpoint, ATornFileOfAnyLengthIsSeen) {
  ScratchFolder folder;
  FileCheckpointStore store({.dir = folder.path()});
  store.Save(10, SmallState(1));
  store.Save(20, SmallState(2));
  const std::string bytes = ReadAll(PathIn(folder, "20"));
  ASSERT_GT(bytes.size(), 100u);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    WriteAll(PathIn(folder, "20"), bytes.substr(0, length));
    EXPECT_THROW(store.Load(20), std::runtime_error) << length;
    EXPECT_EQ(store.List(), std::vector<int>{10}) << length;
  }
  WriteAll(PathIn(folder, "20"), bytes + "x");
  EXPECT_THROW(store.Load(20), std::runtime_error);
  WriteAll(PathIn(folder, "20"), bytes);
  EXPECT_EQ(store.List(), (std::vector<int>{10, 20}));
}

TEST(Checkpoint, AFlippedBitAnywhereIsSeen) {
  ScratchFolder folder;
  FileCheckpointStore store({.dir = folder.path()});
  store.Save(10, SmallState(1));
  const std::string bytes = ReadAll(PathIn(folder, "10"));
  for (std::size_t position = 0; position < bytes.size(); ++position) {
    std::string damaged = bytes;
    damaged[position] ^= static_cast<char>(1 << position % 8);
    WriteAll(PathIn(folder, "10"), damaged);
    EXPECT_THROW(store.Load(10), std::runtime_error) << position;
    EXPECT_TRUE(store.List().empty()) << position;
  }
  std::string damaged = bytes;
  damaged.back() ^= 1;  // the last entry with bytes is the weight
  WriteAll(PathIn(folder, "10"), damaged);
  try {
    store.Load(10);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("entry model.weight is damaged"), std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find(PathIn(folder, "10")), std::string::npos);
  }
}

TEST(Checkpoint, AFileOfAnotherStepOrRankIsRefused) {
  ScratchFolder folder;
  FileCheckpointStore store({.dir = folder.path()});
  store.Save(10, SmallState(1));
  std::filesystem::copy_file(PathIn(folder, "10"), PathIn(folder, "20"));
  EXPECT_THROW(store.Load(20), std::runtime_error);
  EXPECT_EQ(store.List(), std::vector<int>{10});
}

TEST(Checkpoint, IsWholeOnlyWithTheFilesOfAllRanks) {
  ScratchFolder folder;
  const auto rank = [&](int rank, const std::string& writer) {
    return FileCheckpointStore(
        {.dir = folder.path(), .keep = 1, .rank = rank, .world_size = 2, .writer = writer});
  };
  rank(0, "train.0").Save(10, SmallState(0));
  EXPECT_TRUE(rank(0, "train.0").List().empty());
  rank(1, "train.0").Save(10, SmallState(1));
  EXPECT_EQ(rank(0, "train.0").List(), std::vector<int>{10});
  EXPECT_EQ(rank(1, "train.0").Load(10).at("loop.step").item<std::int64_t>(), 1);

  // One rank is ahead: what is whole must stay, though only one checkpoint is kept.
  rank(0, "train.0").Save(20, SmallState(0));
  EXPECT_EQ(rank(0, "train.0").List(), std::vector<int>{10});
  // The next attempt saves its half of step 20 and dies: no mixture of two attempts.
  rank(1, "train.1").Save(20, SmallState(1));
  EXPECT_EQ(rank(1, "train.1").List(), std::vector<int>{10});
  rank(0, "train.1").Save(20, SmallState(0));
  EXPECT_EQ(rank(1, "train.1").List(), std::vector<int>{20});
  // A rank removes only its own files: rank 1's of step 10 goes with its next save.
  rank(1, "train.1").Save(20, SmallState(1));
  EXPECT_EQ(FilesIn(folder),
            (std::set<std::string>{"step-00000020.rank0.ckpt", "step-00000020.rank1.ckpt"}));
  FileCheckpointStore alone({.dir = folder.path(), .rank = 0, .world_size = 1});
  EXPECT_TRUE(alone.List().empty());
  EXPECT_THROW(alone.Load(20), std::runtime_error);
}

// A full disk at every byte of the file: the save throws and leaves everything as it was.
TEST(Checkpoint, AFullDiskLeavesTheLastOneWhole) {
  ScratchFolder folder;
  FileCheckpointStore store({.dir = folder.path()});
  store.Save(10, SmallState(1));
  const auto size = std::filesystem::file_size(PathIn(folder, "10"));
  const auto ends = RunForked(1, [&](int) {
    signal(SIGXFSZ, SIG_IGN);
    for (rlim_t limit = 0; limit < size; limit += limit < 40 ? 1 : 37) {
      const rlimit limits = {limit, size};
      setrlimit(RLIMIT_FSIZE, &limits);
      try {
        store.Save(20, SmallState(2));
        return "saved with room for " + std::to_string(limit);
      } catch (const std::runtime_error&) {
      }
      if (FilesIn(folder).size() != 1) return "left a file at " + std::to_string(limit);
      if (store.List() != std::vector<int>{10}) return "lost it at " + std::to_string(limit);
      // Nor does a second save of the same step harm the first.
      EXPECT_THROW(store.Save(10, SmallState(2)), std::runtime_error);
      if (!SameBits(store.Load(10).at("model.weight"), SmallState(1).at("model.weight"))) {
        return "changed it at " + std::to_string(limit);
      }
    }
    return std::string("fine");
  });
  EXPECT_EQ(ends[0].output, "fine");
}

// SIGKILL at moments spread over a loop of saves: there is always a whole checkpoint, and what it
// says is what was saved.
TEST(Checkpoint, SurvivesSigkillAtAnyMoment) {
  for (int round = 0; round < 15; ++round) {
    ScratchFolder folder;
    FileCheckpointStore store({.dir = folder.path()});
    StateDict state = SmallState(0);
    state["large"] = at::full({200000}, 0.0);
    store.Save(0, state);
    RunForked(
        1,
        [&](int) {
          for (int step = 1;; ++step) {
            state["large"].fill_(step);
            store.Save(step, state);
          }
          return std::string();
        },
        /*limit_s=*/0.02 + 0.0017 * round);
    const std::vector<int> whole = store.List();
    ASSERT_FALSE(whole.empty());
    const at::Tensor large = store.Load(whole.back()).at("large");
    EXPECT_TRUE(at::equal(large, at::full({200000}, static_cast<double>(whole.back()))));
  }
}

TEST(Checkpoint, ManyRanksSaveAtTheSameTime) {
  ScratchFolder folder;
  const auto ends = RunForked(4, [&](int rank) {
    FileCheckpointStore store({.dir = folder.path(), .keep = 2, .rank = rank, .world_size = 4});
    for (int step = 1; step <= 10; ++step) store.Save(step, SmallState(step));
    return std::string("done");
  });
  for (const RankEnd& end : ends) EXPECT_EQ(end.output, "done");
  const std::vector<int> whole =
      FileCheckpointStore({.dir = folder.path(), .keep = 2, .rank = 2, .world_size = 4}).List();
  ASSERT_GE(whole.size(), 2u);
  EXPECT_EQ(whole.back(), 10);
}

}  // namespace
}  // namespace trainwreck
