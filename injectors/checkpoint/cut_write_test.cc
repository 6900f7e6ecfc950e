#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "injectors/checkpoint/testing_disk.h"

namespace trainwreck {
namespace {

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
  EXPECT_EQ(std::filesystem::file_size(torn), (4096 * 8 + 8) / 4);
  EXPECT_EQ(disk.Store()->List(), std::vector<int>{10});
}

}  // namespace
}  // namespace trainwreck
