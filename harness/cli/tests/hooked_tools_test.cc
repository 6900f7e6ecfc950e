// checkup, lr-range, matrix, dose and calibrate on a target with hooks, as a user calls them, with
// scenarios that come with trainwreck. The program writes the records which the hooks would write.
// With real ones they are run by tests/stacks_test.py.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "harness/cli/tests/cli_testing.h"
#include "harness/protocol/json.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

// Learns at rates up to 2, where its loss begins to grow.
constexpr char kProgram[] =
    "import json, math, os, sys\n"
    "lr, steps = float(sys.argv[1]), int(sys.argv[2])\n"
    "with open(os.environ['TRAINWRECK_TRACE'] + '/rank0.jsonl', 'a', 1) as trace:\n"
    "    def write(**record): trace.write(json.dumps(record) + '\\n')\n"
    "    write(t='start', step=0, time=0)\n"
    "    for step in range(steps):\n"
    "        falls = lr if lr < 2 else -lr\n"
    "        loss = 4 * math.exp(min(50, max(-5, -falls * step)))\n"
    "        write(t='step', step=step, time=step, loss=loss, step_s=1, lr=lr)\n"
    "    write(t='end', why='completed', step=steps)\n";

class HookedToolsTest : public testing::Test {
 protected:
  HookedToolsTest() {
    folder.Write("train.py", kProgram);
    folder.Write("trainwreck.yaml",
                 "apiVersion: trainwreck/v1\nkind: Targets\ntargets:\n  mine:\n"
                 "    command: [python3, train.py, \"{lr}\", \"{steps}\"]\n"
                 "    adapter: python\n"
                 "    recipe:\n      steps: 30\n"
                 "      lr: {default: 0.2, role: learning_rate}\n");
    for (const char* name :
         {"portable/defaults", "portable/lr-too-high", "portable/lr-too-low", "portable/same-seed",
          "portable/no-clipping", "not-learning/lr-too-low", "not-learning/lr-oscillation",
          "nan/lr-too-high", "defaults"}) {
      const std::string file = std::string(name) + ".yaml";
      fs::create_directories(fs::path(folder.path() + "/suite/" + file).parent_path());
      fs::copy_file(fs::absolute("scenarios/" + file), folder.path() + "/suite/" + file);
    }
  }

  Called Call(const std::string& arguments) const {
    return folder.Call(arguments + " --suite --scenarios-root suite",
                       "TRAINWRECK_TARGET= TRAINWRECK_HISTORY=none");
  }

  CliFolder folder;
};

TEST_F(HookedToolsTest, CheckupNamesARateThatIsTooLow) {
  const Called called = Call("checkup portable/lr-too-low --arm fault");
  EXPECT_EQ(called.status, 1) << called.output();
  EXPECT_TRUE(Contains(called.out, "1. portable/lr-too-low")) << called.out;
  EXPECT_TRUE(Contains(called.out, "next:      lr_from_a_range_test (lr x 700)")) << called.out;
  // The rows of the reference trainer, and that which needs a clip norm; the twins of same-seed.
  EXPECT_TRUE(Contains(called.out,
                       "# rows that it cannot name: 4 need what this target lacks, 1 are twins"))
      << called.out;
}

TEST_F(HookedToolsTest, CheckupFindsNothingInAHealthyRecipe) {
  const Called called = Call("checkup portable/lr-too-low");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "# nothing found")) << called.out;
}

// What it advises can be run with this target.
TEST_F(HookedToolsTest, LrRangeNamesAScenarioThatTheTargetCanRun) {
  const Called good = Call("lr-range portable/same-seed --rates 16 --seeds 1");
  EXPECT_EQ(good.status, 0) << good.output();
  EXPECT_TRUE(Contains(good.out, "the recipe's rate, 0.2, is inside the range")) << good.out;
  const Called low = Call("lr-range portable/lr-too-low --arm fault --rates 7 --seeds 1");
  EXPECT_EQ(low.status, 1) << low.output();
  EXPECT_TRUE(Contains(low.out, "see:       trainwreck run portable/lr-too-low\n")) << low.out;
  EXPECT_TRUE(Contains(low.out, "or lr_from_a_range_test\n")) << low.out;
}

TEST_F(HookedToolsTest, MatrixReadsTheSymptoms) {
  const Called called = Call("matrix 'portable/*' --seeds 2 --output out");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "portable/lr-too-high")) << called.out;
  EXPECT_TRUE(Contains(called.out, "# false positives: 0 of ")) << called.out;
}

TEST_F(HookedToolsTest, CalibrateAndDoseAgreeOnWhereAHighRateShows) {
  const Called calibrated = Call("calibrate portable/lr-too-high --seeds 1");
  ASSERT_EQ(calibrated.status, 0) << calibrated.output();
  // From a rate of 2 on, ten times the recipe's: octaves 16, 32 and 64.
  EXPECT_TRUE(Contains(calibrated.out, "portable/lr-too-high  32  passes from 16 to 64"))
      << calibrated.out;
  const Called run = Call("run portable/lr-too-high");
  EXPECT_EQ(run.status, 0) << run.output();
  const std::string says = "strength: 32, calibrated; the scenario itself says 1000";
  EXPECT_TRUE(Contains(run.out, says)) << run.out;
  EXPECT_TRUE(Contains(Call("keys lr --recipe portable/lr-too-high").out, says));
  const Called dose =
      Call("dose portable/lr-too-high --param strength --from 2 --to 64 --levels 6 --output out");
  ASSERT_EQ(dose.status, 0) << dose.output();
  const Json json = Json::parse(folder.Read("out/dose.json"), nullptr, false);
  EXPECT_NEAR(json.at("answers")[0].at("limit").get<double>(), 16, 1e-9) << json.dump();
}

// Numbers of another recipe are used, and said to be those.
TEST_F(HookedToolsTest, ACalibrationOfAnotherRecipeIsStale) {
  ASSERT_EQ(Call("calibrate portable/lr-too-high --seeds 1").status, 0);
  folder.Shell("sed -i 's/default: 0.2/default: 0.25/' trainwreck.yaml");
  const Called run = Call("run portable/lr-too-high");
  EXPECT_TRUE(Contains(run.out, "says 1000; stale, when it was measured lr was 0.2")) << run.out;
  EXPECT_TRUE(Contains(run.err, "stale, when it was measured lr was 0.2")) << run.err;
  const Called again = Call("calibrate portable/lr-too-high --seeds 1");
  EXPECT_EQ(again.status, 0) << again.output();
  EXPECT_TRUE(Contains(again.out, "forgets 1 strength")) << again.out;
  EXPECT_FALSE(Contains(Call("run portable/lr-too-high").err, "stale"));
}

// A `min` above 0 says that it is not: no portable scenario needs it to be.
TEST_F(HookedToolsTest, AClipNormOf0NeedNotBeOff) {
  folder.Shell(
      "sed -i 's/lr: {/clip: {default: 1.0, min: 0.001, role: clip_norm}\\n      lr: {/' "
      "trainwreck.yaml");
  for (const char* name : {"gradients-kept", "gradient-scale"}) {
    const std::string file = std::string("portable/") + name + ".yaml";
    fs::copy_file(fs::absolute("scenarios/" + file), folder.path() + "/suite/" + file);
  }
  const Called called = Call("validate -v");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "portable/no-clipping: valid")) << called.out;
  EXPECT_TRUE(Contains(called.out, "portable/gradients-kept: valid")) << called.out;
  EXPECT_FALSE(Contains(called.out, "requires:value:clip")) << called.out;
}

}  // namespace
}  // namespace trainwreck
