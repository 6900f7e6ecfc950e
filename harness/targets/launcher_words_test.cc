#include "harness/targets/launcher_words.h"

#include <gtest/gtest.h>

namespace trainwreck {
namespace launcher_words_test {

using Words = std::vector<std::string>;

TEST(LauncherWords, KnowsNoneInAPlainCommand) {
  EXPECT_EQ(FindLauncher({"python3", "train.py", "-n", "4"}).count, 0u);
  EXPECT_EQ(FindLauncher({"python3", "train.py", "torchrun"}).count, 0u);
  EXPECT_EQ(FindLauncher({"srun", "-N2", "./train.sh"}).count, 0u);
}

TEST(LauncherWords, KnowsTheRanksOfOneTorchrun) {
  const Words command = {"torchrun", "--standalone", "--nproc-per-node", "2", "train.py"};
  const LauncherWords found = FindLauncher(command);
  EXPECT_EQ(found.count, 4u);
  EXPECT_EQ(found.launcher, "torchrun");
  EXPECT_EQ(found.ranks, 2);
  EXPECT_EQ(found.ranks_at, 3u);
  EXPECT_FALSE(found.is_over_nodes);
  const LauncherWords module = FindLauncher(
      {"python3", "-m", "torch.distributed.run", "--nproc_per_node=2", "train.py", "--x=3"});
  EXPECT_EQ(module.count, 4u);
  EXPECT_EQ(module.ranks_at, 3u);
}

TEST(LauncherWords, KnowsTorchrunOnEachNode) {
  const LauncherWords found =
      FindLauncher({"/usr/bin/srun", "-N2", "--ntasks-per-node=1", "torchrun", "--nnodes=2",
                    "--nproc_per_node=8", "train.py", "--nproc_per_node=1"});
  EXPECT_EQ(found.count, 6u);
  EXPECT_EQ(found.launcher, "torchrun");
  EXPECT_EQ(found.ranks, 16);
  EXPECT_EQ(found.ranks_at, 0u);
  EXPECT_TRUE(found.is_over_nodes);
  EXPECT_TRUE(found.runs_python);
  EXPECT_FALSE(
      FindLauncher({"srun", "torchrun", "--no-python", "python3", "train.py"}).runs_python);
}

TEST(LauncherWords, KnowsTheTasksOfSrunAndMpirun) {
  const LauncherWords srun = FindLauncher({"srun", "-N", "2", "-n", "4", "python3", "train.py"});
  EXPECT_EQ(srun.launcher, "srun");
  EXPECT_EQ(srun.count, 5u);
  EXPECT_EQ(srun.ranks, 4);
  EXPECT_EQ(srun.ranks_at, 4u);
  EXPECT_TRUE(srun.is_over_nodes);
  EXPECT_FALSE(srun.runs_python);
  EXPECT_EQ(FindLauncher({"srun", "-n3", "python3", "train.py"}).ranks_at, 1u);
  const LauncherWords each = FindLauncher({"srun", "-N2", "--ntasks-per-node=4", "a.py"});
  EXPECT_EQ(each.ranks, 8);
  EXPECT_EQ(each.ranks_at, 0u);
  const LauncherWords mpirun = FindLauncher({"mpiexec", "-np", "2", "python3", "train.py"});
  EXPECT_EQ(mpirun.launcher, "mpirun");
  EXPECT_EQ(mpirun.ranks, 2);
  EXPECT_FALSE(FindLauncher({"srun", "python3", "train.py"}).ranks.has_value());
}

}  // namespace launcher_words_test
}  // namespace trainwreck
