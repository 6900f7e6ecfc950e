// The preflight run from outside: what it stops, and what it must let pass. Its diagnoses are in
// tests/mistakes/running.yaml.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "harness/cli/tests/cli_testing.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

const char kEnvironment[] = "TRAINWRECK_TARGET= TRAINWRECK_HISTORY=none";

// A program that evaluates each tenth step, and a scenario about that.
class PreflightTest : public testing::Test {
 protected:
  PreflightTest() {
    Declare("{}");
    folder.Write("train.py",
                 "import sys\n"
                 "weight, rate = 4.0, float(sys.argv[1])\n"
                 "open('starts', 'a').write('x')\n"
                 "for step in range(20):\n"
                 "    print(f'{step} loss {weight * weight + 0.01}', flush=True)\n"
                 "    if step % 10 == 9: print(f'{step} score {weight}', flush=True)\n"
                 "    weight -= 2 * rate * weight\n");
    Scenario("slow", "mean(loss[-5:]) > 0.9 * mean(loss[:3])");
  }

  void Declare(const std::string& score) const {
    folder.Write("trainwreck.yaml",
                 "apiVersion: trainwreck/v1\n"
                 "kind: Targets\n"
                 "targets:\n"
                 "  line:\n"
                 "    command: [python3, train.py, \"{lr}\"]\n"
                 "    recipe: {steps: 20, lr: 0.1}\n"
                 "    signals: {loss: {}, score: " +
                     score +
                     "}\n"
                     "    sources:\n"
                     "      - {stdout: '(?P<step>\\d+) loss (?P<loss>\\S+)'}\n"
                     "      - {stdout: '(?P<step>\\d+) score (?P<score>\\S+)'}\n");
  }

  void Scenario(const std::string& name, const std::string& symptom,
                const std::string& extra = "") const {
    folder.Write("scenarios/a/" + name + ".yaml",
                 "apiVersion: trainwreck/v1\n"
                 "kind: Scenario\n"
                 "name: a/" +
                     name +
                     "\n"
                     "title: A rate that is too low learns nothing\n"
                     "seeds: 1\n"
                     "inject:\n"
                     "  slow: {fault: recipe.scale_lr, with: {factor: 0.001}}\n"
                     "healthy:\n"
                     "  learns: mean(loss[-5:]) < 0.5 * mean(loss[:3])\n"
                     "symptoms:\n"
                     "  stuck: \"" +
                     symptom +
                     "\"\n"
                     "no_remedy: an example\n" +
                     extra);
  }

  Called Call(const std::string& arguments) const { return folder.Call(arguments, kEnvironment); }
  std::size_t Starts() const { return folder.Read("starts").size(); }

  CliFolder folder;
};

TEST_F(PreflightTest, IsOneMoreStartOfWhichNothingStays) {
  const Called called = Call("run --keep all --output out");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_EQ(Starts(), 3U);  // control and fault
  EXPECT_TRUE(Contains(called.out, "runs: 2")) << called.out;
  EXPECT_FALSE(folder.Has("out/preflight"));
  EXPECT_EQ(Call("run --no-preflight").status, 0);
  EXPECT_EQ(Starts(), 5U);
}

// What a killed harness leaves goes at the next start; what another one is using does not.
TEST_F(PreflightTest, LeavesNothingForGoodWhenItIsKilled) {
  folder.Shell("mkdir tmp; sed -i '3a import time; time.sleep(300)' train.py");
  const std::string environment = "TMPDIR='" + folder.path() + "/tmp' " + kEnvironment;
  const auto begin = [&] {
    const Called called = folder.Shell(
        "rm -f starts; '" + folder.program() +
            "' run >/dev/null 2>&1 & for i in $(seq 600); do [ -s starts ] && break; sleep 0.05; "
            "done; echo $!",
        environment);
    return called.out.substr(0, called.out.find('\n'));
  };
  const auto folders = [&] { return folder.Shell("ls cache/preflight | wc -l").out; };
  const std::string killed = begin();
  EXPECT_EQ(Starts(), 1U);
  EXPECT_EQ(folders(), "1\n");
  folder.Shell("kill -9 " + killed);
  // Its guard kills the program, and with it goes the last owner of the folder.
  const std::string other = begin();
  folder.Shell("sleep 1");
  folder.Shell("sed -i '4d' train.py");
  EXPECT_EQ(Call("run").status, 0);
  EXPECT_EQ(folders(), "1\n");  // that of the one that still runs
  folder.Shell("kill -TERM " + other + "; for i in $(seq 200); do kill -0 " + other +
               " 2>/dev/null || break; sleep 0.05; done");
  EXPECT_EQ(folders(), "0\n");
  EXPECT_EQ(folder.Shell("ls tmp | wc -l").out, "0\n");
}

TEST_F(PreflightTest, WarnsOfASignalThatNoFormulaMentions) {
  folder.Shell("sed -i 's/score {weight/points {weight/' train.py");
  const Called called = Call("run");
  EXPECT_NE(called.status, 3) << called.output();
  EXPECT_TRUE(Contains(called.err, "trainwreck.yaml:10:18: warning: ")) << called.err;
  EXPECT_TRUE(Contains(called.err, "'sparse: true'")) << called.err;
  Declare("{sparse: true}");
  EXPECT_FALSE(Contains(Call("run").err, "warning"));
  Declare("{optional: true}");
  EXPECT_FALSE(Contains(Call("run").err, "warning"));
}

// Score comes with the steps 9 and 19 alone: the run is as long as the recipe says.
TEST_F(PreflightTest, WaitsForASignalThatComesLate) {
  Scenario("slow", "at_end score > 1");
  const Called called = Call("run");
  EXPECT_NE(called.status, 3) << called.output();
  EXPECT_FALSE(Contains(called.err, "warning")) << called.err;
}

TEST_F(PreflightTest, StopsAtASignalThatAFormulaMentions) {
  Scenario("slow", "at_end score > 1");
  folder.Shell("sed -i 's/score {weight/points {weight/' train.py");
  const Called called = Call("run");
  EXPECT_EQ(called.status, 3) << called.output();
  EXPECT_TRUE(Contains(called.err, "trainwreck.yaml:10:18: error: ")) << called.err;
  EXPECT_EQ(Starts(), 1U);
}

TEST_F(PreflightTest, SaysThatARunWithoutSignalsHung) {
  folder.Write("train.py", "import time\ntime.sleep(600)\n");
  folder.Write("trainwreck.yaml",
               "apiVersion: trainwreck/v1\n"
               "kind: Targets\n"
               "targets:\n"
               "  line:\n"
               "    level: 1\n"
               "    start_seconds: 2\n"
               "    command: [python3, train.py, \"{lr}\"]\n"
               "    recipe: {steps: 20, lr: 0.1}\n"
               "    signals: {loss: {}}\n");
  Scenario("slow", "mean(loss[-5:]) > 0.9 * mean(loss[:3])");
  const Called called = Call("run");
  EXPECT_EQ(called.status, 3) << called.output();
  EXPECT_TRUE(Contains(called.err, "wrote no 'loss' into its trace")) << called.err;
  EXPECT_TRUE(Contains(called.err, "; the run was ended: ")) << called.err;
}

TEST_F(PreflightTest, PassesOverACaseThatIsToFail) {
  folder.Shell("sed -i '1a raise SystemExit(3)' train.py");
  Scenario("slow", "mean(loss[-5:]) > 0.9 * mean(loss[:3])",
           "expect: {verdict: error, class: crash, reason: it cannot start}\n");
  const Called called = Call("run");
  EXPECT_EQ(called.status, 0) << called.output();
  Scenario("well", "mean(loss[-5:]) > 0.9 * mean(loss[:3])");
  EXPECT_EQ(Call("run").status, 3);
}

TEST_F(PreflightTest, LetsARunJudgeWhatEndsLater) {
  folder.Shell(
      "sed -i 's/    weight -=/    if step == 15: raise SystemExit(3)\\n    weight -=/' train.py");
  const Called called = Call("run");
  EXPECT_EQ(called.status, 7) << called.output();
  // The cause stands first, and the table of arms has the last words.
  EXPECT_TRUE(Contains(called.out, "ended: seed 0: failed, rank 0 code 3")) << called.out;
  const auto verdicts =
      nlohmann::json::parse(folder.Read(".trainwreck/runs/latest/verdicts.json"))["verdicts"];
  EXPECT_EQ(verdicts[0]["checks"][0]["check"], "end");
}

TEST_F(PreflightTest, IsWhatTheDoctorDoes) {
  const Called well = Call("doctor");
  EXPECT_TRUE(Contains(well.out, "ok    preflight     control of a/slow")) << well.out;
  fs::remove_all(folder.path() + "/scenarios");
  folder.Shell("sed -i 's/step} loss/step} lost/' train.py");
  const Called ill = Call("doctor");
  EXPECT_EQ(ill.status, 3);
  EXPECT_TRUE(Contains(ill.out, "trainwreck.yaml:9:18: ")) << ill.out;
}

// Targets and shards.

TEST(TargetNoteTest, SaysThatNobodyNamedTheTarget) {
  CliFolder folder;
  folder.WritePassing("ok");
  const fs::path trainer = folder.path() + "/files/trainwreck/trainer/trainwreck-trainer";
  fs::create_directories(trainer.parent_path());
  fs::create_symlink(folder.target(), trainer);
  const std::string unnamed =
      "TRAINWRECK_TARGET= RUNFILES_DIR= TEST_SRCDIR='" + folder.path() + "/files'";
  const std::string note =
      "(no trainwreck.yaml in " + folder.path() + " or above: the built-in reference trainer)";
  Called called = folder.Call("run", unnamed);
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, note)) << called.out;
  EXPECT_TRUE(Contains(folder.Call("doctor", unnamed).out, note));
  folder.WritePassing("bad", "recipe: {lr: 3}\n");
  called = folder.Call("validate", unnamed);
  EXPECT_TRUE(Contains(called.err, "no trainwreck.yaml in ")) << called.err;
  const Called listed = folder.Call("list signals", unnamed);  // what programs read stays clean
  EXPECT_TRUE(Contains(listed.err, "no trainwreck.yaml in ")) << listed.err;
  EXPECT_FALSE(Contains(listed.out, "trainwreck.yaml")) << listed.out;
  const Called named = folder.Call("run fake/ok");
  EXPECT_FALSE(Contains(named.output(), "no trainwreck.yaml")) << named.output();
}

TEST(ShardTest, WithoutCasesIsLoudAndNoFailure) {
  CliFolder folder;
  folder.WritePassing("ok");
  const Called full = folder.Call("run --shard 1/3");
  EXPECT_EQ(full.status, 0) << full.output();
  EXPECT_FALSE(Contains(full.err, "EMPTY"));
  const Called empty = folder.Call("run --shard 2/3 --output out --report junit=out/j.xml");
  EXPECT_EQ(empty.status, 0) << empty.output();
  EXPECT_TRUE(Contains(empty.err, "SHARD 2/3 IS EMPTY: 1 case is fewer than 3 shards"))
      << empty.err;
  EXPECT_TRUE(Contains(folder.Read("out/j.xml"), "<testsuites"));
  // What was to run did not.
  EXPECT_EQ(folder.Call("run --shard 2/3 --require fake/ok").status, 6);
  EXPECT_EQ(folder.Call("run --shard 2/3 -k nothing").status, 4);
}

}  // namespace
}  // namespace trainwreck
