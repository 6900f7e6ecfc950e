#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <list>
#include <set>
#include <string>

#include "harness/launch/fake_runs.h"
#include "harness/launch/launcher.h"

namespace trainwreck {
namespace {

TEST(LauncherEnvironmentTest, SetsTheEnvironmentOfEveryLauncher) {
  trainwreck::Run run = FakeRun("environment", "completes", {{"parallel.ranks", 2}});
  const auto results = RunFakes({run}, Isolation::kExec, [](LauncherOptions& options) {
    options.target.command = {
        "/bin/sh", "-c",
        "echo $RANK/$WORLD_SIZE/$LOCAL_RANK/$LOCAL_WORLD_SIZE $MASTER_ADDR "
        "$TRAINWRECK_RUN $OWN; test $MASTER_PORT -gt 0; test -f $TRAINWRECK_PLAN"};
    options.target.environment["OWN"] = "mine";
  });
  const RunResult& result = results.at("environment");
  ASSERT_EQ(result.exits.size(), 2u);
  EXPECT_EQ(result.exits[0].code, 0);
  EXPECT_EQ(result.exits[1].code, 0);
  std::ifstream file(result.folder + "/rank1.stdout");
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line, "1/2/1/2 127.0.0.1 environment mine");
}

// As a job of several machines says it.
TEST(LauncherEnvironmentTest, TheAddressOfRankZeroIsTheJobsWhereAnotherLauncherStartsRanks) {
  setenv("MASTER_ADDR", "n7", 1);
  const auto said = [](const std::string& launcher) {
    trainwreck::Run run = FakeRun("address", "completes", {{"parallel.ranks", 2}});
    run.launcher = launcher;
    const auto results = RunFakes({run}, Isolation::kExec, [](LauncherOptions& options) {
      options.target.command = {"/bin/sh", "-c", "echo $MASTER_ADDR"};
      options.target.launch_ranks = {"/bin/sh", "-c", "echo $MASTER_ADDR"};
    });
    std::ifstream file(results.at("address").folder + "/rank0.stdout");
    std::string line;
    std::getline(file, line);
    return line;
  };
  EXPECT_EQ(said("srun"), "n7");
  EXPECT_EQ(said(""), "127.0.0.1");
  unsetenv("MASTER_ADDR");
}

// Two runs at a time, on a machine with two GPUs.
TEST(LauncherEnvironmentTest, EachRunSeesTheGpuThatItHasGot) {
  std::list<trainwreck::Run> runs;
  for (const char* name : {"a", "b"}) {
    runs.push_back(FakeRun(name, "completes"));
    runs.back().device = "cuda";
  }
  const auto results = RunFakes(runs, Isolation::kExec, [](LauncherOptions& options) {
    options.cores = 2;
    options.target.devices = {{.kind = "cuda"}, {.kind = "cuda"}};
    options.target.device_limits.runs = 1;
    options.target.command = {"/bin/sh", "-c", "echo $CUDA_VISIBLE_DEVICES; sleep 1"};
  });
  std::set<std::string> seen;
  for (const auto& [name, result] : results) {
    std::ifstream file(result.folder + "/rank0.stdout");
    std::string line;
    std::getline(file, line);
    seen.insert(line);
  }
  EXPECT_EQ(seen, (std::set<std::string>{"0", "1"}));
}

}  // namespace
}  // namespace trainwreck
