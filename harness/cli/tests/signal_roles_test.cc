// Signals that a program calls by names of its own, and scenarios and tools by their roles.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "harness/cli/tests/cli_testing.h"

namespace trainwreck {
namespace {

namespace fs = std::filesystem;

constexpr char kDescends[] =
    "import json, math, os, sys\n"
    "lr, steps = float(sys.argv[1]), int(sys.argv[2])\n"
    "def losses():\n"
    "    for step in range(steps):\n"
    "        falls = lr if lr < 2 else -lr\n"
    "        yield step, 4 * math.exp(min(50, max(-5, -falls * step)))\n";
constexpr char kPrints[] =
    "for step, loss in losses(): print(f'{step} train_loss {loss}', flush=True)\n";
// As a program of level 1 does; it writes what it is asked for, by the name that it knows.
constexpr char kWrites[] =
    "asked = json.load(open(os.environ['TRAINWRECK_PLAN']))['record']\n"
    "with open(os.environ['TRAINWRECK_TRACE'] + '/rank0.jsonl', 'a', 1) as trace:\n"
    "    def write(**record): trace.write(json.dumps(record) + '\\n')\n"
    "    write(t='start', step=0, time=0)\n"
    "    for step, loss in losses():\n"
    "        more = {'gnorm': 1} if 'gnorm' in asked else {}\n"
    "        write(t='step', step=step, time=step, train_loss=loss, **more)\n"
    "    write(t='end', why='completed', step=steps)\n";

class SignalRolesTest : public testing::Test {
 protected:
  void Declare(const std::string& program, const std::string& more) const {
    folder.Write("train.py", std::string(kDescends) + program);
    folder.Write("trainwreck.yaml",
                 "apiVersion: trainwreck/v1\nkind: Targets\ntargets:\n  mine:\n"
                 "    command: [python3, train.py, \"{lr}\", \"{steps}\"]\n"
                 "    recipe:\n      steps: 30\n"
                 "      lr: {default: 0.2, role: learning_rate}\n" +
                     more);
    for (const char* name : {"portable/defaults", "portable/lr-too-high", "defaults"}) {
      const std::string file = std::string(name) + ".yaml";
      fs::create_directories(fs::path(folder.path() + "/suite/" + file).parent_path());
      fs::copy_file(fs::absolute("scenarios/" + file), folder.path() + "/suite/" + file,
                    fs::copy_options::overwrite_existing);
    }
  }

  void DeclarePrinting(const std::string& role) const {
    Declare(kPrints, "    signals: {train_loss: {scale: log" + role +
                         "}}\n    sources:\n"
                         "      - {stdout: '(?P<step>\\d+) train_loss (?P<train_loss>\\S+)'}\n");
  }

  // One of the project's own: a name that the target lacks is an error, and not skipped.
  void WriteScenario(const std::string& name, const std::string& symptom) const {
    folder.Write("scenarios/a/" + name + ".yaml",
                 "apiVersion: trainwreck/v1\nkind: Scenario\nname: a/" + name +
                     "\ntitle: A rate far too high\nseeds: 1\n"
                     "inject: {hot: {fault: recipe.scale_lr, with: {factor: 1000}}}\n"
                     "symptoms: {blows_up: '" +
                     symptom + "'}\nremedies: {lower: {scale: {lr: 0.0007}}}\n");
  }

  Called Call(const std::string& arguments) const {
    return folder.Call(arguments, "TRAINWRECK_TARGET= TRAINWRECK_HISTORY=none");
  }

  CliFolder folder;
};

TEST_F(SignalRolesTest, LetAPortableScenarioReadThem) {
  const std::string run = "run portable/lr-too-high --suite --scenarios-root suite";
  DeclarePrinting(", role: loss");
  const Called called = Call(run);
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "PASS")) << called.out;
  EXPECT_TRUE(Contains(called.out, "loss is what the program calls train_loss")) << called.out;
  DeclarePrinting("");
  EXPECT_TRUE(Contains(Call(run).out, "requires:signal:loss"));
}

TEST_F(SignalRolesTest, LetOwnScenariosGoOnWithTheOwnNames) {
  DeclarePrinting(", role: loss");
  WriteScenario("own", "mean(train_loss[-10:]) > control.loss[0]");
  const Called called = Call("run a/own --keep all --output out");
  EXPECT_EQ(called.status, 0) << called.output();
  const Called shown = Call("show out --signal train_loss --no-pager");
  EXPECT_TRUE(Contains(shown.out, "loss of rank 0")) << shown.output();
  EXPECT_FALSE(Contains(shown.out, "train_loss of rank 0")) << shown.output();
  ASSERT_EQ(Call("export out --to csv --output csv --signal train_loss").status, 0);
  EXPECT_TRUE(Contains(folder.Read("csv/signals.csv"), ",loss,4\n"));
}

TEST_F(SignalRolesTest, AreReadByTheTools) {
  DeclarePrinting(", role: loss");
  WriteScenario("own", "mean(loss[-10:]) > control.loss[0]");
  const Called called = Call("lr-range a/own --rates 16 --seeds 1");
  EXPECT_TRUE(Contains(called.out, "the recipe's rate, 0.2, is inside the range"))
      << called.output();
}

TEST_F(SignalRolesTest, AreListedWithTheOwnNames) {
  DeclarePrinting(", role: loss");
  EXPECT_TRUE(Contains(Call("list signals").out, "train_loss of the program"));
  const std::string explained = Call("explain train_loss").out;
  EXPECT_TRUE(Contains(explained, "signal loss\n")) << explained;
  EXPECT_TRUE(Contains(explained, "train_loss by the program")) << explained;
}

TEST_F(SignalRolesTest, AreThoseOfATraceThatTheProgramWrites) {
  Declare(kWrites,
          "    level: 1\n    signals:\n      train_loss: {scale: log, role: loss}\n"
          "      gnorm: {scale: log, role: grad_norm}\n");
  WriteScenario("own", "mean(loss[-10:]) > control.loss[0] and mean(grad_norm[:]) > 0.5");
  const Called called = Call("run a/own --keep all --output out");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "grad_norm is what the program calls gnorm")) << called.out;
  // A stored trace is read in the same way.
  ASSERT_EQ(Call("export out --to json --output runs.jsonl").status, 0);
  const std::string lines = folder.Read("runs.jsonl");
  EXPECT_TRUE(Contains(lines, "\"grad_norm\"")) << lines.substr(0, 2000);
  EXPECT_FALSE(Contains(lines, "gnorm\"")) << lines.substr(0, 2000);
}

// Also the floor of a signal goes by the role.
TEST_F(SignalRolesTest, LetFormulasReadTheFloorOfTheLoss) {
  folder.Write("scenarios/a/crawls.yaml",
               "apiVersion: trainwreck/v1\nkind: Scenario\nname: a/crawls\n"
               "title: A rate that is too low leaves the loss above its floor\nseeds: 1\n"
               "inject: {low: {fault: recipe.scale_lr, with: {factor: 0.001}}}\n"
               "symptoms: {stays: 'mean(loss[-10:]) > 100 * mean(entropy_floor[-10:])'}\n"
               "remedies: {higher: {scale: {lr: 700}}}\n");
  DeclarePrinting(", role: loss, floor: 0.02");
  const Called called = Call("run a/crawls");
  EXPECT_EQ(called.status, 0) << called.output();
  DeclarePrinting(", role: loss");
  EXPECT_TRUE(Contains(Call("validate").output(), "unknown signal 'entropy_floor'"));
  // A program that writes its steps itself would have to write it as well.
  Declare(kWrites,
          "    level: 1\n    signals: {train_loss: {scale: log, role: loss, floor: 0.02}}\n");
  EXPECT_TRUE(Contains(Call("validate").output(), "unknown signal 'entropy_floor'"));
}

TEST_F(SignalRolesTest, LetAnInvariantHoldTheLossAboveItsFloor) {
  folder.Write(
      "scenarios/invariants.yaml",
      "apiVersion: trainwreck/v1\nkind: Invariants\ninvariants:\n  no_loss_below_its_floor:\n"
      "    title: no loss is below its floor\n    part: loss\n"
      "    assert: always loss >= entropy_floor\n");
  WriteScenario("own", "mean(loss[-10:]) > control.loss[0]");
  DeclarePrinting(", role: loss, floor: 0.02");  // the loss falls to 0.027
  EXPECT_EQ(Call("run a/own").status, 0);
  DeclarePrinting(", role: loss, floor: 0.03");
  const Called called = Call("run a/own");
  EXPECT_EQ(called.status, 1) << called.output();
  EXPECT_TRUE(Contains(called.out, "invariant_broken")) << called.out;
}

}  // namespace
}  // namespace trainwreck
