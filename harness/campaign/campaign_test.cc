// Below the verbs: claims as they are shown, arms that are asked for, batches of the fake target.
#include "harness/campaign/campaign.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "harness/campaign/batches.h"
#include "harness/campaign/claims.h"
#include "harness/campaign/readings.h"
#include "harness/judge/test_support.h"
#include "harness/launch/fake_runs.h"
#include "harness/session/session.h"

namespace trainwreck {
namespace campaign_test {

using testing::Bench;
namespace fs = std::filesystem;

const ArmPlan& Arm(const Case& one, const std::string& name) {
  for (const ArmPlan& arm : one.arms) {
    if (arm.name == name) return arm;
  }
  throw std::runtime_error("no arm " + name);
}

TEST(Claims, AnArmNeedsThoseThatItsFormulasName) {
  Bench bench;
  bench.scenario().symptoms.push_back(
      testing::MakeCheck("worse", "mean(loss[:5]) > 2 * reference.mean(loss[:5])"));
  bench.scenario().has_reference = true;
  bench.MakeRuns();
  const Case& one = bench.cases.front();
  using Names = std::vector<std::string>;
  EXPECT_EQ(ArmsNeeded(one, Arm(one, "fault")), (Names{"fault", "reference"}));
  EXPECT_EQ(ArmsNeeded(one, Arm(one, "lower_lr")), (Names{"control", "lower_lr", "reference"}));
  EXPECT_EQ(ArmsNeeded(one, Arm(one, "reference")), (Names{"reference"}));
  EXPECT_EQ(CountRuns(bench.cases), 5 * testing::kSeeds);
}

TEST(Claims, AMarginIsShownAsAnIntervalOnlyWhereItIsOne) {
  formula::Reading reading;
  EXPECT_EQ(MarginText(reading), "");
  reading.main_unit = formula::Unit::kStep;
  auto& margin = reading.margins[static_cast<int>(reading.main_unit)];
  margin = formula::Interval{10, 10};
  EXPECT_EQ(MarginText(reading), "+10 steps");
  margin = formula::Interval{-2, 10};
  EXPECT_EQ(MarginText(reading), "-2 steps to +10 steps");
}

TEST(Readings, AnArmThatNobodyHasIsRefusedWithTheNearest) {
  Bench bench;
  bench.MakeRuns();
  EXPECT_NO_THROW(CheckArmNames(bench.cases, {"control", "decay"}));
  try {
    CheckArmNames(bench.cases, {"lower_rl"});
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'lower_lr'?"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("control, decay, fault, lower_lr"), std::string::npos);
  }
}

Batch MakeBatch(const std::string& name, int seeds) {
  Batch batch;
  for (int seed = 0; seed < seeds; ++seed) {
    batch.push_back(FakeRun(name + "/control/" + std::to_string(seed), "completes"));
    batch.back().seed = seed;
  }
  return batch;
}

TEST(Batches, EachIsGivenOnceWithAllItsRunsAndItsFoldersGo) {
  LauncherOptions launcher;
  launcher.target = FakeTarget();
  launcher.cores = 2;
  launcher.output_dir = FreshFolder("batches");
  std::map<std::size_t, std::size_t> given;
  const BatchesEnd end = RunBatches({MakeBatch("a", 3), MakeBatch("b", 1), {}}, launcher,
                                    /*keep=*/false, [&](std::size_t index, BatchResults& results) {
                                      EXPECT_FALSE(given.contains(index));
                                      given[index] = results["control"].size();
                                      EXPECT_EQ(TracesOf(results)["control"].size(), given[index]);
                                      EXPECT_TRUE(fs::exists(results["control"][0].folder));
                                    });
  EXPECT_EQ(given, (std::map<std::size_t, std::size_t>{{0, 3}, {1, 1}}));
  EXPECT_EQ(end.runs, 4);
  EXPECT_TRUE(end.troubles.empty());
  EXPECT_FALSE(end.interrupted);
  EXPECT_FALSE(fs::exists(launcher.output_dir + "/a"));
}

TEST(Batches, RunsThatAreKeptCanBeReadAgain) {
  LauncherOptions launcher;
  launcher.target = FakeTarget();
  launcher.output_dir = FreshFolder("kept");
  RunBatches({MakeBatch("a", 1)}, launcher, /*keep=*/true, [](std::size_t, BatchResults&) {});
  EXPECT_TRUE(fs::exists(launcher.output_dir + "/a/control/0/run.json"));
}

TEST(Batches, AProgramThatCannotBeStartedIsTrouble) {
  LauncherOptions launcher;
  launcher.target.command = {"/gone/program"};
  launcher.isolation = Isolation::kExec;
  launcher.output_dir = FreshFolder("trouble");
  const BatchesEnd end =
      RunBatches({MakeBatch("a", 1)}, launcher, false, [](std::size_t, BatchResults&) {});
  ASSERT_EQ(end.troubles.size(), 1u);
  EXPECT_EQ(end.troubles[0].rfind("a/control/0: ", 0), 0u) << end.troubles[0];
}

}  // namespace campaign_test
}  // namespace trainwreck
