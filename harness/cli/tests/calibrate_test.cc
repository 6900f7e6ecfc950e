// calibrate from end to end, with the fake target, whose loss is 4 exp(-lr * step). Where the
// claims turn is known exactly.
#include <gtest/gtest.h>

#include <string>

#include "harness/cli/tests/cli_testing.h"
#include "harness/protocol/json.h"

namespace trainwreck {
namespace {

class CalibrateTest : public testing::Test {
 protected:
  CalibrateTest() {
    WriteTarget(folder.target());
    WriteScenario("{default: 0.01, from: 0.5, to: 0.001}");
  }

  void WriteTarget(const std::string& program) const {
    folder.Write(
        "trainwreck.yaml",
        "apiVersion: trainwreck/v1\nkind: Targets\ntargets:\n  mine: {level: 2, command: [" +
            program + "]}\n");
  }

  // lr = 0.2, last step 19: `stuck` holds where the factor is below 0.365. The decoy keeps it below
  // 0.243, and the remedy makes the rate nearly what it was.
  void WriteScenario(const std::string& strength) const {
    folder.Write("scenarios/fake/slow.yaml",
                 "apiVersion: trainwreck/v1\n"
                 "kind: Scenario\n"
                 "title: A slow descent\n"
                 "strength: " +
                     strength +
                     "\n"
                     "recipe: {steps: 20, optimizer.lr: 0.2}\n"
                     "inject:\n"
                     "  slow: {fault: fake.slow_descent, with: {factor: $strength}}\n"
                     "symptoms:\n"
                     "  stuck: at_end loss > 1\n"
                     "remedies:\n"
                     "  faster: {scale: {optimizer.lr: 0.9 / $strength}}\n"
                     "decoys:\n"
                     "  slightly_faster: {scale: {optimizer.lr: 1.5}}\n"
                     "seeds: 2\n");
  }

  Called Call(const std::string& arguments) const {
    return folder.Call(arguments, "TRAINWRECK_TARGET= TRAINWRECK_HISTORY=none");
  }

  CliFolder folder;
};

constexpr char kFile[] = "trainwreck.calibration.yaml";

// At 0.5 it does not show, at 0.25 the decoy helps: the three weakest are 0.125, 0.0625, 0.03125.
TEST_F(CalibrateTest, ChoosesTheMiddleOfThreeOctavesThatPass) {
  const Called called = Call("calibrate fake/slow");
  ASSERT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out,
                       "fake/slow  0.0625  passes from 0.125 to 0.03125; the scenario "
                       "itself says 0.01"))
      << called.out;
  EXPECT_TRUE(
      Contains(folder.Read(kFile), "fake/slow: {strength: 0.0625, passed: [0.125, 0.03125]}"))
      << folder.Read(kFile);
}

TEST_F(CalibrateTest, IsUsedAndSaidFromThenOn) {
  const auto digest = [&](const std::string& output) {
    return Json::parse(folder.Read(output + "/verdicts.json"))["verdicts"][0]["scenario_digest"];
  };
  const Called before = Call("run fake/slow --output before");
  EXPECT_EQ(before.status, 0) << before.output();
  EXPECT_FALSE(Contains(before.out, "calibrated")) << before.out;
  ASSERT_EQ(Call("calibrate fake/slow").status, 0);
  const std::string says = "strength: 0.0625, calibrated; the scenario itself says 0.01";
  const Called after = Call("run fake/slow --keep all --output out");
  EXPECT_EQ(after.status, 0) << after.output();
  EXPECT_TRUE(Contains(after.out, says + "\n")) << after.out;
  EXPECT_TRUE(Contains(folder.Read("out/verdicts.json"), "0.0625, calibrated")) << after.out;
  EXPECT_NE(digest("before"), digest("out")) << "it is another claim";
  const Called dry = Call("run fake/slow --dry-run");
  EXPECT_TRUE(Contains(dry.out, "optimizer.lr 0.2 -> 0.0125")) << dry.output();
  EXPECT_TRUE(Contains(Call("explain fake/slow").out, "0.0625, calibrated"));
  // The runs that were made with it are judged with it, whatever the file says by then.
  folder.Shell(std::string("rm ") + kFile);
  const Called judged = Call("judge out");
  EXPECT_EQ(judged.status, 0) << judged.output();
  EXPECT_TRUE(Contains(judged.out, says)) << judged.out;
}

TEST_F(CalibrateTest, IsSaidToBeStaleForAnotherCommand) {
  ASSERT_EQ(Call("calibrate fake/slow").status, 0);
  folder.Shell("cp \"$TRAINWRECK_TARGET\" other");
  WriteTarget(folder.path() + "/other");
  const Called stale = Call("run fake/slow --dry-run");
  EXPECT_EQ(stale.status, 0) << stale.output();
  EXPECT_TRUE(Contains(stale.err, "stale, when it was measured the command was another one"))
      << stale.err;
}

// A fault that never shows cannot be made to pass: nothing is written, and a run still fails.
TEST_F(CalibrateTest, CannotMakeAClaimTrue) {
  WriteScenario("{default: 0.8, from: 0.9, to: 0.4}");
  const Called called = Call("calibrate fake/slow");
  EXPECT_EQ(called.status, 5) << called.output();
  EXPECT_TRUE(Contains(called.out, "fake/slow  none: 0.8, its own, stays")) << called.out;
  EXPECT_TRUE(Contains(called.out, "0.45, fault: too weak, symptom_absent 'stuck' in fault"))
      << called.out;
  EXPECT_FALSE(Contains(folder.Read(kFile), "fake/slow")) << folder.Read(kFile);
  const Called run = Call("run fake/slow");
  EXPECT_EQ(run.status, 1);
  EXPECT_TRUE(Contains(run.out, "symptom_absent")) << run.out;
}

TEST_F(CalibrateTest, SaysWhenNoStrengthCanTell) {
  folder.Shell(
      "sed -i 's/^symptoms:/healthy: {learns: at_end loss < 0.01}\\nsymptoms:/' "
      "scenarios/fake/slow.yaml");
  const Called called = Call("calibrate fake/slow");
  EXPECT_EQ(called.status, 5) << called.output();
  EXPECT_TRUE(Contains(called.out, "no strength can tell, control_unhealthy 'learns' in control"))
      << called.out;
}

// With the strength goes the remedy, so that its limit is its own.
TEST_F(CalibrateTest, GivesDoseAParameter) {
  const Called called = Call("dose fake/slow --param strength --output out --levels 10");
  ASSERT_EQ(called.status, 0) << called.output();
  const Json json = Json::parse(folder.Read("out/dose.json"), nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json.at("doses").front(), 0.5);
  EXPECT_LE(json.at("answers")[0].at("limit"), 0.365);
  EXPECT_TRUE(json.at("answers")[1].at("limit").is_null()) << "it holds at each";
}

TEST_F(CalibrateTest, SaysWhatIsWrongWithTheCommandLine) {
  const Called undeclared = folder.Call("calibrate fake/slow", "TRAINWRECK_HISTORY=none");
  EXPECT_EQ(undeclared.status, 2) << undeclared.output();
  folder.WritePassing("plain");
  const Called nothing = Call("calibrate fake/plain");
  EXPECT_EQ(nothing.status, 4) << nothing.output();
  folder.Write(kFile, "x");
  EXPECT_EQ(Call("run fake/slow").status, 3);
}

}  // namespace
}  // namespace trainwreck
