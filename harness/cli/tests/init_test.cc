// trainwreck init from outside, with a program that writes the records which the hooks would write.
// With real ones it is run by tests/stacks_test.py.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "harness/cli/tests/cli_testing.h"

namespace trainwreck {
namespace {

const char kEnvironment[] = "TRAINWRECK_TARGET= TRAINWRECK_HISTORY=none";

class InitTest : public testing::Test {
 protected:
  InitTest() {
    folder.Write(
        "train.py",
        "import json, os, sys\n"
        "words = ' '.join(sys.argv[1:]).replace('-s ', '--speed ').replace('--speed ', "
        "'--speed=')\n"
        "options = dict(word.split('=') for word in words.split())\n"
        "trace = open(os.environ['TRAINWRECK_TRACE'] + '/rank0.jsonl', 'a', 1)\n"
        "def write(**record): trace.write(json.dumps(record) + '\\n')\n"
        "if 'TRAINWRECK_ADAPTER_TELL' in os.environ:\n"
        "    write(t='event', event='program', step=0, time=0, optimizer='SGD', groups=1,\n"
        "          tensors=4, model='Net', loaders=[], schedulers=['StepLR'],\n"
        "          precision=['float32 parameters', 'autocast to bfloat16 on cpu'],\n"
        "          scaler=False, ranks=1, command=['train.py'] + sys.argv[1:],\n"
        "          options=json.loads(os.environ.get('DECLARED', '[]')),\n"
        "          **json.loads(os.environ.get('TOLD', '{}')))\n"
        "    write(t='event', event='checkpoint_saved', step=9, time=0, file='last.pt',\n"
        "          steps_done=10, entries=4)\n"
        "if '--logs' in options: os.makedirs(options['--logs'], exist_ok=True)\n"
        "if '--mebibytes' in options:\n"
        "    with open(options['--out'] + '/big', 'wb') as big:\n"
        "        for _ in range(int(options['--mebibytes'])): big.write(bytes(1 << 20))\n"
        "# An epoch has 50 steps. What no option says, the hooks do.\n"
        "steps = int(options.get('--max-steps') or 50 * int(options['--epochs']))\n"
        "steps = min(steps, int(os.environ.get('TRAINWRECK_ADAPTER_STEPS', steps)))\n"
        "steps = steps // int(options.get('--each', 1)) + int(options.get('--more', 0))\n"
        "if steps < 7 and '--fails' in options: sys.exit('too short')\n"
        "for step in range(steps):\n"
        "    late = float(options.get('--pause', 0)) if step > 2 else 0\n"
        "    write(t='step', step=step, time=step + late, loss=1 / (step + 1), step_s=1,\n"
        "          lr=float(options['--speed']), memory_bytes=1)\n");
  }

  Called Init(const std::string& arguments) const {
    return folder.Call("init " + arguments, kEnvironment);
  }

  CliFolder folder;
};

TEST_F(InitTest, DeclaresWhatItSaw) {
  const Called called =
      Init("--name net -- python3 train.py --max-steps=20 --speed=0.25 --depth=3 --out=here");
  ASSERT_EQ(called.status, 0) << called.output();
  const std::string text = folder.Read("trainwreck.yaml");
  EXPECT_TRUE(Contains(text, "#   optimizer: SGD, 4 tensors in 1 group\n")) << text;
  EXPECT_TRUE(Contains(text, "#   schedulers: StepLR\n")) << text;
  EXPECT_TRUE(Contains(text, "#   data loaders: no DataLoader of torch is there")) << text;
  EXPECT_FALSE(Contains(text, "{newest:")) << text;
  EXPECT_TRUE(Contains(text, "#   precision: float32 parameters, autocast to bfloat16 on cpu\n"))
      << text;
  EXPECT_TRUE(Contains(text, "#   checkpoints: the first one is last.pt, after 10 steps\n"))
      << text;
  EXPECT_TRUE(Contains(text, "when_exists: \"{run.checkpoints}/last.pt\"}")) << text;
  EXPECT_TRUE(Contains(text, "write {run.until} for {steps}, too:\n")) << text;
  EXPECT_TRUE(Contains(text, "#   steps: asked for 6, it made 6\n")) << text;
  EXPECT_TRUE(Contains(text, "the seed: no option has it")) << text;
  EXPECT_TRUE(Contains(text, "#   options for clip_norm, warmup_steps, weight_decay,")) << text;
  EXPECT_TRUE(Contains(text, "  net:\n")) << text;
  EXPECT_TRUE(Contains(text, "\"--max-steps={steps}\"")) << text;
  EXPECT_TRUE(Contains(text, "\"--out={run.checkpoints}\"")) << text;
  EXPECT_TRUE(Contains(text, "      depth: 3\n")) << text;
  // No name says so: it has the value of the optimizer's rate.
  EXPECT_TRUE(Contains(text, "speed: {type: number, default: 0.25, role: learning_rate}")) << text;
  EXPECT_FALSE(Contains(text, "TRAINWRECK_ADAPTER_TELL")) << text;
}

TEST_F(InitTest, CallsShortOptionsByTheNamesThatTellTheirRoles) {
  const Called called =
      folder.Call("init -- python3 train.py --max-steps=20 -s 0.25",
                  std::string(kEnvironment) + R"( TOLD='{"long": {"-s": ["--speed"]}}')");
  ASSERT_EQ(called.status, 0) << called.output();
  const std::string text = folder.Read("trainwreck.yaml");
  EXPECT_TRUE(Contains(text, "Called by their long names: --speed for -s\n")) << text;
  EXPECT_TRUE(Contains(text, "      - \"--speed\"\n      - \"{speed}\"\n")) << text;
  EXPECT_TRUE(Contains(text, "speed: {type: number, default: 0.25, role: learning_rate}")) << text;
  EXPECT_TRUE(Contains(text, "#   steps: asked for 6, it made 6\n")) << text;
}

// Loops that count up to their number of steps inclusive, and other numbers than those of updates.
TEST_F(InitTest, CountsTheStepsOfAShortRun) {
  const auto text_with = [&](const std::string& options) {
    std::filesystem::remove(folder.path() + "/trainwreck.yaml");
    const Called called = Init("-- python3 train.py --max-steps=20 --speed=0.25 " + options);
    EXPECT_EQ(called.status, 0) << called.output();
    return folder.Read("trainwreck.yaml");
  };
  std::string text = text_with("--more=1 '--name={steps}'");
  EXPECT_TRUE(Contains(text, "#   steps: asked for 6, it made 7, so it gets {steps-1}\n")) << text;
  EXPECT_TRUE(Contains(text, "      - \"--max-steps={steps-1}\"\n")) << text;
  EXPECT_TRUE(Contains(text, "--name={{steps}}")) << text;
  EXPECT_TRUE(Contains(text, "write {run.until-1} for {steps-1}, too:\n")) << text;
  EXPECT_TRUE(Contains(text, "      steps: 21\n")) << text;
  text = text_with("--each=2");
  EXPECT_TRUE(Contains(text, "#   what --max-steps counts: with 6, it made 3 updates\n")) << text;
  EXPECT_TRUE(Contains(text, "\"--max-steps={steps}\"")) << text;
  text = text_with("--fails=1");
  EXPECT_TRUE(Contains(text, "--max-steps counts: with 6, a run did not end well\n")) << text;
}

// The hooks tell which options the program has besides.
TEST_F(InitTest, AddsWhatTheProgramDeclares) {
  const std::string number = R"("takes_value": true, "default": )";
  const std::string declared =
      R"([{"names": ["--seed"], )" + number + R"("0"}, {"names": ["-b", "--batch-size"], )" +
      number + R"("8"}, {"names": ["--clip-norm"], "takes_value": true}, {"names": ["--decay", )" +
      R"("--weight-decay"], )" + number + R"("5e-05"}, {"names": ["--workers"], )" + number +
      R"("0"}, {"names": ["--num-workers"], )" + number +
      R"("0"}, {"names": ["--resume-from"], "takes_value": true}])";
  const Called called = folder.Call("init -- python3 train.py --max-steps=20 --speed=0.25",
                                    std::string(kEnvironment) + " DECLARED='" + declared + "'");
  ASSERT_EQ(called.status, 0) << called.output();
  const std::string text = folder.Read("trainwreck.yaml");
  EXPECT_TRUE(Contains(text, "      - \"--seed={run.seed}\"\n")) << text;
  EXPECT_TRUE(Contains(text, "      - \"--batch-size={batch_size}\"\n")) << text;
  EXPECT_TRUE(Contains(text, "      batch_size: {default: 8, role: batch_size}\n")) << text;
  EXPECT_TRUE(Contains(text, "weight_decay: {type: number, default: 5e-05, role: weight_decay}\n"))
      << text;
  EXPECT_TRUE(Contains(text,
                       "# Added to your command, which did not give these options of the program: "
                       "--batch-size (batch_size), --seed (seed), --weight-decay (weight_decay)\n"))
      << text;
  EXPECT_TRUE(Contains(text, "your command did not give: --clip-norm (clip_norm).\n")) << text;
  EXPECT_TRUE(Contains(text, "none was added: --workers or --num-workers (loader_workers)\n"))
      << text;
  EXPECT_TRUE(Contains(text, "The program has --resume-from. If")) << text;
  EXPECT_TRUE(Contains(text,
                       "resume: {arguments: [\"--resume-from={run.checkpoints}/last.pt\"], "
                       "when_exists: \"{run.checkpoints}/last.pt\"}\n"))
      << text;
  EXPECT_FALSE(Contains(text, "the seed: ")) << text;
  const Called list = folder.Call("list recipe", kEnvironment);
  EXPECT_EQ(list.status, 0) << list.output();
  EXPECT_TRUE(Contains(list.out, "batch_size")) << list.output();
}

TEST_F(InitTest, WritesThePromisesThatWereSeen) {
  const Called called =
      folder.Call("init -- python3 train.py --max-steps=20 --speed=0.25",
                  std::string(kEnvironment) +
                      R"( TOLD='{"promises": {"optimizer:adam": "AdamW, eps 1e-08"}}')");
  ASSERT_EQ(called.status, 0) << called.output();
  const std::string text = folder.Read("trainwreck.yaml");
  EXPECT_TRUE(Contains(text, "#   optimizer:adam: AdamW, eps 1e-08\n")) << text;
  EXPECT_TRUE(Contains(text, "    features: [optimizer:adam]\n")) << text;
  folder.Shell("rm trainwreck.yaml; sed -i s/last.pt/optimizer.pt/ train.py");
  ASSERT_EQ(Init("-- python3 train.py --max-steps=20 --speed=0.25").status, 0);
  EXPECT_TRUE(Contains(folder.Read("trainwreck.yaml"), "features: [checkpoint:optimizer-file]\n"));
  EXPECT_EQ(folder.Call("list recipe", kEnvironment).status, 0);
}

TEST_F(InitTest, WarnsOfFoldersThatAllRunsShare) {
  const std::string told =
      R"( TOLD='{"writes": ["out", "/data/runs"]}' DECLARED='[{"names": ["--save-dir"]}]')";
  const Called called = folder.Call("init -- python3 train.py --max-steps=20 --speed=0.25",
                                    std::string(kEnvironment) + told);
  ASSERT_EQ(called.status, 0) << called.output();
  const std::string text = folder.Read("trainwreck.yaml");
  EXPECT_TRUE(Contains(text, "# Warning: all runs share what follows")) << text;
  EXPECT_TRUE(Contains(text, "#   made or written in the first step: out, /data/runs\n")) << text;
  EXPECT_TRUE(Contains(text, "that your command did not give: --save-dir\n")) << text;
  folder.Shell("rm trainwreck.yaml");
  ASSERT_EQ(Init("-- python3 train.py --max-steps=20 --speed=0.25").status, 0);
  EXPECT_FALSE(Contains(folder.Read("trainwreck.yaml"), "Warning")) << text;
}

TEST_F(InitTest, GivesEachRunTheFolderThatTheFirstOneMade) {
  const std::string command = "-- python3 train.py --max-steps=20 --speed=0.25 --logs=own";
  ASSERT_EQ(Init(command).status, 0);
  std::string text = folder.Read("trainwreck.yaml");
  EXPECT_TRUE(Contains(text, "\"--logs={run.checkpoints}\"")) << text;
  EXPECT_TRUE(Contains(text, "# Each run has its own folder for --logs\n")) << text;
  folder.Shell("rm trainwreck.yaml");  // it is there now, and may be one that is read
  ASSERT_EQ(Init(command).status, 0);
  text = folder.Read("trainwreck.yaml");
  EXPECT_TRUE(Contains(text, "\"--logs=own\"")) << text;
}

TEST_F(InitTest, NamesEnvironmentVariablesThatMayBeOptions) {
  const std::string told =
      std::string(kEnvironment) + R"( TOLD='{"variables": ["HOME", "LR", "SEED"]}')";
  const std::string command = "python3 train.py --max-steps=20 --speed=0.25";
  ASSERT_EQ(folder.Call("init -- " + command, told).status, 0);
  std::string text = folder.Read("trainwreck.yaml");
  EXPECT_TRUE(Contains(text, "the program reads: LR (learning_rate), SEED (seed).\n")) << text;
  folder.Shell("rm trainwreck.yaml");
  ASSERT_EQ(folder.Call("init -- env LR=0.25 " + command, told).status, 0);
  text = folder.Read("trainwreck.yaml");
  EXPECT_TRUE(Contains(text, "the program reads: SEED (seed).\n")) << text;
  EXPECT_TRUE(Contains(text, "\"LR={lr}\"")) << text;
}

TEST_F(InitTest, SaysWhatToDoWithNumbersThatStandInTheProgram) {
  folder.Write("own.py",
               "import sys\nsys.argv += ['--epochs=2', '--speed=0.25']\n"
               "exec(open('train.py').read())\n");
  ASSERT_EQ(Init("-- python3 own.py").status, 0);
  const std::string text = folder.Read("trainwreck.yaml");
  EXPECT_TRUE(Contains(text, R"(#     lr = float(os.environ.get("LR", "0.25")))")) << text;
}

TEST_F(InitTest, LetsARunPauseForAnEvaluation) {
  ASSERT_EQ(Init("-- python3 train.py --max-steps=20 --speed=0.25 --pause=11").status, 0);
  const std::string text = folder.Read("trainwreck.yaml");
  EXPECT_TRUE(Contains(text, "#   a pause of 12 s between two steps, so a run may pause for 5"))
      << text;
  EXPECT_TRUE(Contains(text, "    budget: {stall_seconds: 60}\n")) << text;
  folder.Shell("rm trainwreck.yaml");
  ASSERT_EQ(Init("-- python3 train.py --max-steps=20 --speed=0.25 --pause=2").status, 0);
  EXPECT_FALSE(Contains(folder.Read("trainwreck.yaml"), "pause of")) << text;
}

TEST_F(InitTest, WritesAFileThatWorks) {
  ASSERT_EQ(Init("-- python3 train.py --max-steps=20 --speed=0.25").status, 0);
  const Called called = folder.Call("list recipe", kEnvironment);
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "speed")) << called.output();
}

// The program has the rate of the first, and not that of the second.
TEST_F(InitTest, GivesNewScenariosThatFit) {
  folder.Shell("rm -rf scenarios; mkdir scenarios");
  ASSERT_EQ(Init("-- python3 train.py --max-steps=20 --speed=0.25").status, 0);
  Called called = folder.Call("new scenario a/rate", kEnvironment);
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(folder.Read("scenarios/a/rate.yaml"), "role.learning_rate"));
  folder.Shell("sed -i 's/, role: learning_rate//' trainwreck.yaml");
  called = folder.Call("new scenario a/killed", kEnvironment);
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(folder.Read("scenarios/a/killed.yaml"), "process.crash_rank"));
}

// That is no mistake of the user.
TEST_F(InitTest, SaysWhichScenariosDoNotFitItsValues) {
  const std::string head = "apiVersion: trainwreck/v1\nkind: Scenario\ntitle: A test\nseeds: 1\n";
  const std::string dies = "symptoms: {dies: not ended(rank=0)}\nno_remedy: none\n";
  folder.Write("suite/a/early.yaml",
               head + "inject: {killed: {fault: process.crash_rank, at: 5}}\n" + dies);
  folder.Write("suite/a/late.yaml",
               head + "inject: {killed: {fault: process.crash_rank, at: 30}}\n" + dies);
  const Called called =
      Init("--scenarios-root suite -- python3 train.py --max-steps=20 --speed=0.25");
  EXPECT_EQ(called.status, 0) << called.output();
  EXPECT_TRUE(Contains(called.out, "1 scenario applies to it:\n  a/early\n")) << called.out;
  EXPECT_TRUE(Contains(called.out,
                       "1 more does not fit the value of 'steps': trainwreck validate --suite "
                       "says why\n"))
      << called.out;
  const Called validated = folder.Call("validate --suite --scenarios-root suite", kEnvironment);
  EXPECT_EQ(validated.status, 0) << validated.output();
  EXPECT_TRUE(Contains(validated.out,
                       "a/late: will be skipped, requires:value:steps: 'at' is after the run's "
                       "last step, 19\n"))
      << validated.out;
  const Called run = folder.Call("run a/late --suite --scenarios-root suite", kEnvironment);
  EXPECT_TRUE(Contains(run.out,
                       "# 1 case does not fit the value of 'steps' in the recipe of the target: "
                       "trainwreck validate says why\n"))
      << run.output();
}

TEST_F(InitTest, LeavesAFileAlone) {
  folder.Write("trainwreck.yaml", "mine");
  const Called called = Init("-- python3 train.py --max-steps=20 --speed=0.25");
  EXPECT_EQ(called.status, 2);
  EXPECT_TRUE(Contains(called.err, "trainwreck.yaml is there already")) << called.err;
  EXPECT_EQ(folder.Read("trainwreck.yaml"), "mine");
}

TEST_F(InitTest, SaysWhatACommandLacks) {
  EXPECT_TRUE(Contains(Init("").err, "no command: say trainwreck init -- python3"));
  const Called called = Init("-- python3 train.py --steps=1.5");
  EXPECT_EQ(called.status, 2);
  EXPECT_TRUE(Contains(called.err, "--steps 1.5: the number of steps must be a whole number"))
      << called.err;
  EXPECT_FALSE(folder.Has("trainwreck.yaml"));
}

// Its length is in epochs, or in a file.
TEST_F(InitTest, LetsTheHooksEndARunWhoseLengthNoOptionSays) {
  const Called called =
      Init("--steps 40 -- python3 train.py --epochs=9 --speed=0.25 --config=conf.yaml");
  ASSERT_EQ(called.status, 0) << called.output();
  const std::string text = folder.Read("trainwreck.yaml");
  EXPECT_TRUE(Contains(text, "      steps: 40\n      epochs: 9\n")) << text;
  EXPECT_TRUE(Contains(text, "#   how many steps it trains: no option says it.")) << text;
  EXPECT_TRUE(Contains(text, "#   what is in --config=conf.yaml.")) << text;
  folder.Shell("mkdir -p scenarios");
  folder.Write("scenarios/a/rate.yaml",
               "apiVersion: trainwreck/v1\nkind: Scenario\ntitle: A test\nseeds: 1\n"
               "inject: {killed: {fault: recipe.scale_speed, with: {factor: 2}}}\n"
               "symptoms: {is_twice: 'last(lr[:]) > 0.4'}\n"
               "no_remedy: none\n");
  const Called run = folder.Call("run a/rate --keep all --output out", kEnvironment);
  EXPECT_EQ(run.status, 0) << run.output();
  const std::string trace = folder.Read("out/a/rate/control/0/rank0.jsonl");
  EXPECT_TRUE(Contains(trace, "\"step\":39") || Contains(trace, "\"step\": 39")) << trace;
  EXPECT_FALSE(Contains(trace, "\"step\": 40, \"time\"")) << trace;
}

TEST_F(InitTest, LetsARunWriteMoreThanTheDefault) {
  ASSERT_EQ(
      Init("-- python3 train.py --max-steps=20 --speed=0.25 --out=here --mebibytes=300").status, 0);
  const std::string text = folder.Read("trainwreck.yaml");
  EXPECT_TRUE(Contains(text, "#   300 MiB written in its first steps, so a run may write more"))
      << text;
  EXPECT_TRUE(Contains(text, "    budget: {disk: 3GiB}\n")) << text;
  folder.Shell("rm trainwreck.yaml");
  ASSERT_EQ(
      Init("-- python3 train.py --max-steps=20 --speed=0.25 --out=here --mebibytes=20").status, 0);
  EXPECT_FALSE(Contains(folder.Read("trainwreck.yaml"), "budget")) << text;
}

// torchrun reports at length, and last.
TEST_F(InitTest, ShowsTheErrorOfTheProgramItselfBelowALauncher) {
  folder.Write(
      "run.py",
      "import subprocess, sys\n"
      "print('W1101 10:00:00.000 77 torch/distributed/run.py:900] a warning', file=sys.stderr)\n"
      "code = subprocess.run(['python3', *sys.argv[2:]]).returncode\n"
      "sys.exit(code and 'E1101 10:00:00.100 77 api.py:874] failed (exitcode: 1) local_rank: "
      "0\\n'\n"
      "         'Traceback (most recent call last):\\n  File \"torchrun\", line 8\\n'\n"
      "         'torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \\n' +\n"
      "         60 * '=' + '\\nRoot Cause (first observed failure):\\n[0]:\\n'\n"
      "         '  rank      : 0 (local_rank: 0)\\n  exitcode  : 1 (pid: 79)\\n'\n"
      "         '  error_file: <N/A>\\n  traceback : To enable traceback see: ...\\n')\n");
  for (const std::string ranks : {"--nproc_per_node=1", "--nproc_per_node=gpu"}) {
    const Called called = Init("-- python3 run.py " + ranks + " train.py --max-steps=20");
    EXPECT_EQ(called.status, 3);
    EXPECT_TRUE(Contains(called.err, "    | KeyError: '--speed'\n")) << called.err;
    EXPECT_TRUE(Contains(called.err, "    | Traceback (most recent call last):\n")) << called.err;
    EXPECT_FALSE(Contains(called.err, "Root Cause")) << called.err;
    EXPECT_FALSE(Contains(called.err, "ChildFailedError")) << called.err;
  }
}

TEST_F(InitTest, WritesNothingForACommandThatFails) {
  const Called called = Init("-- python3 train.py --max-steps=20");
  EXPECT_EQ(called.status, 3);
  EXPECT_TRUE(Contains(called.err, "KeyError: '--speed'")) << called.err;
  EXPECT_TRUE(Contains(called.err, "so nothing was written")) << called.err;
  EXPECT_FALSE(folder.Has("trainwreck.yaml"));
}

// What the hooks do not have. A loss that they have is not read twice.
TEST_F(InitTest, GivesPrintedMetricsTheRolesThatTheirNamesMakePlain) {
  folder.Write("loud.py",
               "import json\n"
               "for step in (1, 2): print(f'step {step}: loss {3 / step}, val/loss: {4 / step}')\n"
               "exec(open('train.py').read())\n");
  const Called called = Init("-- python3 loud.py --max-steps=20 --speed=0.25");
  ASSERT_EQ(called.status, 0) << called.output();
  const std::string text = folder.Read("trainwreck.yaml");
  EXPECT_TRUE(
      Contains(text,
               "#   printed, with the role that the name makes plain: val/loss (eval_loss), as in\n"
               "#     step 1: loss 3.0, val/loss: 4.0\n"))
      << text;
  EXPECT_TRUE(Contains(text, "    adapter: python\n")) << text;
  EXPECT_TRUE(Contains(
      text,
      "    signals:\n      val_loss: {scale: log, role: eval_loss, sparse: true, optional: true}\n"
      "    sources:\n      - stdout: '"))
      << text;
  EXPECT_TRUE(Contains(text, "        first_step: 1\n")) << text;
  const Called list = folder.Call("list signals", kEnvironment);
  EXPECT_TRUE(Contains(list.out, "val_loss of the program")) << list.output();
}

// A program that no hook knows, at level 0.
TEST_F(InitTest, ReadsWhatAProgramWithoutPyTorchPrints) {
  folder.Write("plain.py",
               "import sys\n"
               "options = dict(word.split('=') for word in sys.argv[1:])\n"
               "for step in range(int(options['--steps'])):\n"
               "    print(f'[{step}] ' if '--silent' in options else f'step={step} Train_Loss={1 / "
               "(step + 1)} lr=0.5')\n");
  const Called called = Init("-- python3 plain.py --steps=20 --rate=0.5");
  ASSERT_EQ(called.status, 0) << called.output();
  const std::string text = folder.Read("trainwreck.yaml");
  EXPECT_FALSE(Contains(text, "adapter")) << text;
  EXPECT_FALSE(Contains(text, "data loaders:")) << text;  // nobody has looked
  EXPECT_TRUE(Contains(text, "{newest:checkpoint-*} in place of")) << text;
  EXPECT_TRUE(
      Contains(text, "    signals:\n      train_loss: {scale: log, role: loss}\n      lr: {}\n"))
      << text;
  EXPECT_TRUE(Contains(
      text,
      R"(      - stdout: '\bstep=(?P<step>\d+).*?\bTrain_Loss=(?P<train_loss>\S+).*?\blr=(?P<lr>\S+)')"))
      << text;
  EXPECT_TRUE(Contains(text, "rate: {type: number, default: 0.5, role: learning_rate}")) << text;
  folder.Shell("rm trainwreck.yaml");
  const Called silent = Init("-- python3 plain.py --steps=20 --silent=1");
  EXPECT_EQ(silent.status, 3) << silent.output();
  EXPECT_FALSE(folder.Has("trainwreck.yaml"));
}

}  // namespace
}  // namespace trainwreck
