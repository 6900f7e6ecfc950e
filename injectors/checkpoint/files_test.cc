// Faults of the files of checkpoints: what the store then says of each.
#include <ATen/ops/full.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "injectors/testing.h"
#include "trainer/checkpoints/checkpoint.h"
#include "trainer/ranks/forked_ranks.h"

namespace trainwreck {
namespace {

StateDict StateAt(int step) {
  return {{"loop.step", at::full({}, step, at::kLong)}, {"model.weight", at::full({4096}, step)}};
}

struct Disk {
  ScratchFolder folder;
  FaultBench bench;
  std::string why;  // of the last checkpoint that is not whole

  std::unique_ptr<CheckpointStore> Store() {
    return std::make_unique<FileCheckpointStore>(CheckpointOptions{
        .dir = folder.path(), .on_damaged = [this](int, int, auto& said) { why = said; }});
  }
  // Saves after 10, 20 and 30 steps under a fault that acts at 20.
  std::vector<int> WholeAfter(const std::string& fault, std::map<std::string, Json> with) {
    bench.checkpoint_dir = folder.path();
    const auto injector = bench.Make(fault, std::move(with), {.at = 20});
    const auto store = static_cast<PartWrapper&>(*injector).Wrap(Store());
    for (const int step : {10, 20}) store->Save(step, StateAt(step));
    return store->List();
  }
};

TEST(DamageFile, IsFoundByTheStoreInEachWay) {
  for (const auto& [how, why] : std::map<std::string, std::string>{
           {"truncated", "torn: "},
           {"bit_rot", "entry model.weight is damaged"},
           {"deleted", "No such file"},
           {"older", "it belongs to step 10 of rank 0"},
           {"other_world_size", "it was saved by 2 ranks and cannot be read by 1"}}) {
    Disk disk;
    EXPECT_EQ(disk.WholeAfter("checkpoint.damage_file", {{"how", how}}), std::vector<int>{10})
        << how;
    EXPECT_NE(disk.why.find(why), std::string::npos) << how << ": " << disk.why;
    ASSERT_EQ(disk.bench.fired().size(), 1U) << how;
    EXPECT_EQ(disk.bench.fired()[0]["steps_done"], 20) << how;
  }
}

TEST(DamageFile, OfAnotherModelIsWholeAndHasOtherShapes) {
  Disk disk;
  EXPECT_EQ(disk.WholeAfter("checkpoint.damage_file", {{"how", "other_model"}}),
            (std::vector<int>{10, 20}));
  EXPECT_EQ(disk.Store()->Load(20).at("model.weight").size(0), 8192);
}

TEST(CutWrite, FailsAsAFullDiskDoesAndLeavesNothing) {
  Disk disk;
  disk.bench.checkpoint_dir = disk.folder.path();
  const auto injector = disk.bench.Make("checkpoint.cut_write", {{"how", "full"}}, {.at = 20});
  const auto store = static_cast<PartWrapper&>(*injector).Wrap(disk.Store());
  store->Save(10, StateAt(10));
  EXPECT_THROW(store->Save(20, StateAt(20)), std::runtime_error);
  EXPECT_EQ(store->List(), std::vector<int>{10});
  EXPECT_EQ(disk.why, "") << "nothing is left of it";
  store->Save(30, StateAt(30));
  EXPECT_EQ(store->List(), (std::vector<int>{10, 30})) << "the limit is gone";
}

TEST(CutWrite, KillsInTheMiddleOfTheFile) {
  Disk disk;
  disk.bench.checkpoint_dir = disk.folder.path();
  disk.Store()->Save(10, StateAt(10));
  const pid_t child = ::fork();
  if (child == 0) {
    const auto injector = disk.bench.Make("checkpoint.cut_write", {{"share", 0.25}}, {.at = 20});
    const auto store = static_cast<PartWrapper&>(*injector).Wrap(disk.Store());
    store->Save(20, StateAt(20));
    ::_exit(42);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  const std::string torn = CheckpointPath(disk.folder.path(), 20, 0) + ".tmp";
  ASSERT_TRUE(std::filesystem::exists(torn));
  EXPECT_EQ(std::filesystem::file_size(torn), (4096 * 4 + 8) / 4);
  EXPECT_EQ(disk.Store()->List(), std::vector<int>{10});
}

}  // namespace
}  // namespace trainwreck
