#!/usr/bin/env python3
"""Real training stacks, not written here: scikit-learn, PyTorch with TensorBoard, torchrun, MPI. (srun_test.py has Slurm.) They are found with
the Python that TRAINWRECK_STACKS_PYTHON names (`ci/test.sh --with-python-stacks` makes one), else with python3 and in the folder of packages
that TRAINWRECK_STACKS_PACKAGES names (ci/test.sh makes it), and mpirun on PATH. What is not there is skipped, and without
TRAINWRECK_STACKS_PYTHON what takes long, too.

Usage: stacks_test.py TRAINWRECK FOLDER [unittest options]
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

import unittest_xml
from stacks_case import PACKAGE, PYTHON, SUITE, TRAINWRECK, StacksCase, block_of, needs, takes_long

PACKAGES = os.environ.get("TRAINWRECK_STACKS_PACKAGES", "")

# No option says how many steps it trains: an epoch has 8.
EPOCHS = """
import argparse
import torch
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int)
parser.add_argument("--lr", type=float)
options = parser.parse_args()
torch.manual_seed(0)
inputs = torch.randn(128, 8)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs, inputs.sum(1, keepdim=True)), 16)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
for epoch in range(options.epochs):
    for batch, target in loader:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(batch), target).backward()
        optimizer.step()
"""


class StacksTest(StacksCase):
    def records(self, run):
        with open(f"{self.folder}/out/{run}/rank0.jsonl", encoding="utf-8") as file:
            return list(map(json.loads, file))

    def steps(self, run):
        return [record for record in self.records(run) if record["t"] == "step"]

    @needs("sklearn")
    def test_scikit_learn(self):
        self.run_scenario("rate/digits", "digits")
        self.assertEqual([record["step"] for record in self.steps("rate/digits/control/0")], list(range(15)))

    @needs("torch", "tensorboard")
    def test_pytorch_with_tensorboard(self):
        self.run_scenario("rate/board", "board")
        steps = self.steps("rate/board/control/0")
        self.assertEqual([record["step"] for record in steps], list(range(30)))
        self.assertEqual([record["step"] for record in steps if "norm" in record], list(range(0, 30, 3)))

    # torchrun gives its workers sessions of their own.
    @needs("torch", "tensorboard")
    def test_torchrun(self):
        self.run_scenario("rate/killed", "torchrun")
        self.assert_second_rank_was_killed("rate/killed")

    # Twins: changes that must not matter. Each log has 6 digits, which round by less than 1e-5 of a value: a tenth of what is let go.

    @takes_long
    @needs("torch")
    def test_micro_batches_train_as_one_batch(self):
        self.run_scenario("twins/micro-batches", "counted")

    @needs("torch")
    def test_ranks_of_torchrun_train_as_one(self):
        self.run_scenario("twins/ranks", "counted-torchrun")

    @takes_long
    @needs("torch")
    def test_a_resumed_run_is_the_run_in_one_piece(self):
        self.run_scenario("twins/resume", "images")

    @takes_long
    @needs("torch")
    def test_the_number_of_workers_changes_nothing(self):
        self.run_scenario("twins/workers", "images")

    @takes_long
    @needs("torch")
    def test_the_same_seed_is_the_same_run(self):
        self.run_scenario("twins/again", "images")

    # Scenarios that come with trainwreck, as they are.

    def test_portable_scenarios_are_valid_with_hooks(self):
        said = self.trainwreck("validate", "--suite", "--scenarios-root", self.suite, "--target", "hooked").stdout
        self.assertIn("all valid", said)
        self.replace("../suite/portable/corrupt-sample.yaml", "what: nan", "what: not_a_number")
        self.trainwreck("validate", "--suite", "--scenarios-root", self.suite, "--target", "hooked", status=3)

    @takes_long
    @needs("torch")
    def test_portable_scenarios(self):
        for scenario in ("lr-too-high", "same-seed", "micro-batches"):
            done = self.run_scenario("portable/" + scenario, "images", suite=True)
            self.assertRegex(done.stdout, rf"PASS .* portable/{scenario}")
        self.run_scenario("portable/generator-lost", "hooked", suite=True)

    # `adapter: python`: no pattern reads anything.

    @needs("torch")
    def test_hooks(self):
        self.run_scenario("portable/crashed", "hooked", suite=True)
        fired, = [record for record in self.records("portable/crashed/fault/0") if record.get("event") == "fired"]
        self.assertEqual((fired["step"], fired["after"]), (5, "thrown"))
        self.run_scenario("portable/resume", "hooked", suite=True)
        self.assertEqual([r["step"] for r in self.steps("portable/resume/resumed/0")], list(range(30)))
        self.replace("images.py", '("optimizer", optimizer.load_state_dict), ', "")
        said = self.run_scenario("portable/resume", "hooked", status=1, suite=True).stdout
        self.assertIn("twins_differ: 'loss' in resumed\n", said)
        self.assertRegex(said, r"at step 6\b")

    # What the portable scenarios are there for, in a program with the defect. Each file of its checkpoint that is missing is left out.

    @needs("torch")
    @takes_long
    def test_a_lost_file_that_is_passed_over_is_found(self):
        said = self.run_scenario("portable/damaged-checkpoint", "hooked", status=1, suite=True).stdout
        self.assertIn("twins_differ: 'is_refused_or_unused' in gone\n", said)
        self.assertNotIn("in half\n", said)

    @needs("torch")
    @takes_long
    def test_a_checkpoint_that_is_written_over_is_found(self):
        said = self.run_scenario("portable/killed-saving", "hooked", status=1, suite=True).stdout
        self.assertRegex(said, r"(?m)^(FAIL|ERROR) .* portable/killed-saving\[in_the_first_file\]$")
        fired, = [r for r in self.records("portable/killed-saving/in_the_first_file/fault/0") if r.get("event") == "fired"]
        self.assertEqual((fired["fault"], fired["signal"]), ("checkpoint.kill_writer", 9))
        self.assertTrue(fired["file"].endswith(".pt"), fired["file"])

    def assert_found(self, scenario, planted, message):
        """The scenario passes in images.py as it is, and says this when (old, new) is planted there."""
        said = self.run_scenario("portable/" + scenario, "hooked", suite=True).stdout
        self.assertRegex(said, "PASS .* portable/" + scenario)
        self.replace("images.py", *planted)
        said = self.run_scenario("portable/" + scenario, "hooked", status=1, suite=True).stdout
        self.assertIn(message + "\n", said)

    @needs("torch")
    @takes_long
    def test_a_restart_without_the_optimizer_is_found(self):
        # Its steps take 1 ms, and a kill from outside comes some steps late: it must not come as late as the next checkpoint.
        self.replace("images.py", "    optimizer.zero_grad()\n", "    optimizer.zero_grad()\n    __import__('time').sleep(0.05)\n")
        self.assert_found("killed-and-resumed", ('("optimizer", optimizer.load_state_dict), ', ""),
                          "remedy_ineffective: 'is_the_same' in supervisor")

    @needs("torch")
    @takes_long
    def test_a_clip_norm_without_effect_is_found(self):
        self.assert_found("no-clipping", ("        if options.clip:\n", "        if False:\n"), "remedy_ineffective: 'no_good' in clip")

    @needs("torch")
    @takes_long
    def test_workers_without_effect_are_found(self):
        self.assert_found("slow-data", ("num_workers=options.workers,", "num_workers=0,"), "remedy_ineffective: 'waits' in workers")

    @needs("torch")
    @takes_long
    def test_a_warmup_without_effect_is_found(self):
        self.assert_found("schedule-frozen", ("if update < options.warmup:\n        return (update + 1) / options.warmup",
                                              "if update < 10:\n        return (update + 1) / 10"), "remedy_ineffective: 'stays_low' in no_warmup")

    @needs("torch")
    @takes_long
    def test_an_update_that_follows_the_size_of_gradients_is_found(self):
        self.assert_found("gradient-scale", ("weight_decay=options.weight_decay)", "weight_decay=options.weight_decay, eps=0.1)"),
                          "twins_differ: 'loss' in larger")

    @needs("torch")
    @takes_long
    def test_a_second_resume_without_the_optimizer_is_found(self):
        self.assert_found("resume-twice", ('("optimizer", optimizer.load_state_dict), ', ""), "twins_differ: 'loss' in resumed")

    @needs("torch")
    @takes_long
    def test_a_save_over_the_only_checkpoint_is_found(self):
        said = self.run_scenario("portable/save-breaks", "hooked", status=7, suite=True).stdout
        for by in ("kill", "full_disk"):
            self.assertRegex(said, rf"(?m)^ERROR .* portable/save-breaks\[{by}\]$")
        fired, = [r for r in self.records("portable/save-breaks/full_disk/fault/0") if r.get("event") == "fired"]
        self.assertEqual((fired["step"], fired["after"]), (10, fired["before"] // 2))

    @needs("torch")
    def test_a_program_that_ends_itself_when_its_loss_is_nan(self):
        """As many do: with an error, or with exit code 0. Both are the symptom."""
        loss = "        loss.backward()\n"
        self.replace("images.py", loss, "        if not math.isfinite(loss.item()):\n            raise SystemExit(1)\n" + loss)
        rows = ["portable/nan-gradient", "portable/nan-unnoticed"]
        for code in (1, 0):
            said = self.trainwreck("run", *rows, "--target", "hooked", "--suite", "--scenarios-root", self.suite).stdout
            self.assertIn("# 2 cases: 2 pass;", said)
            self.replace("images.py", f"raise SystemExit({code})", "raise SystemExit(0)")

    @needs("torch")
    def test_a_program_that_refuses_a_setting_shows_no_symptom(self):
        rows = ["lr-too-high", "nan-rate", "nan-unnoticed"]
        self.replace("images.py", "seed = torch.seed()", "assert options.lr <= 1, 'too much'\nseed = torch.seed()")
        said = self.trainwreck("run", *("portable/" + row for row in rows), "--target", "hooked", "--suite", "--scenarios-root", self.suite, status=7).stdout
        self.assertEqual(sorted(re.findall(r"(?m)^ERROR +crash .* portable/([\w-]+)", said)), rows)
        self.assertEqual(said.count("note: the fault arm ended before its first step"), len(rows))

    # From a command to the first verdict, as a new user goes.

    @needs("torch")
    def test_init(self):
        os.remove(self.folder + "/trainwreck.yaml")
        command = ["python3", "images.py", "--steps=40", "--seed=0", "--batch=32", "--lr=0.01", "--clip=1.0", "--checkpoints=saved",
                   "--save-every=2"]
        said = self.trainwreck("init", "--scenarios-root", self.suite, "--", *command).stdout
        self.assertRegex(said, r"optimizer: \w+, \d+ tensors")
        self.assertIn("  data loaders: batches of its own size, 0 workers\n", said)
        self.assertIn("  checkpoints: the first one is model.pt, after 2 steps\n", said)
        self.assertIn("  checkpoint:optimizer-file: optimizer.pt was saved\n", said)
        self.assertIn("--batch (batch_size), --lr (learning_rate), --clip (clip_norm)", said)
        self.assertRegex(said, r"Added to your command, .*--accumulation \(accumulation\), --workers \(loader_workers\)")
        self.assertIn("portable/lr-too-high", said)
        with open("docs/measured/stacks.md", encoding="utf-8") as file:
            self.assertEqual(re.search(r"(?m)^(\d+) scenarios apply", said)[1], re.search(r"scenarios that apply \((\d+)", file.read())[1])
        said = self.trainwreck("run", "portable/crashed", "--suite", "--scenarios-root", self.suite).stdout
        self.assertRegex(said, "PASS .* portable/crashed")
        os.makedirs(self.folder + "/new/scenarios")
        self.trainwreck("new", "scenario", "rate/mine", "--scenarios-root", "new/scenarios")
        said = self.trainwreck("run", "rate/mine", "--scenarios-root", "new/scenarios").stdout
        self.assertRegex(said, "PASS .* rate/mine")

    @needs("torch")
    def test_init_of_ranks(self):
        os.remove(self.folder + "/trainwreck.yaml")
        command = ["python3", "-m", "torch.distributed.run", "--rdzv_backend=c10d", "--rdzv_endpoint=localhost:0", "--nproc_per_node=2",
                   "counted.py", "--steps=20", "--seed=0"]
        said = self.trainwreck("init", "--scenarios-root", self.suite, "--", *command).stdout
        self.assertIn("  ranks: 2\n", said)
        self.assertIn("  ranks:whole-model: DistributedDataParallel over 2 ranks\n", said)
        with open(self.folder + "/trainwreck.yaml", encoding="utf-8") as file:
            self.assertIn("    ranks: {default: 2, launcher: torchrun}\n", file.read())

    @needs("torch", "lightning", "jsonargparse")
    @takes_long
    def test_init_of_lightnings_command_line(self):
        """Options that the command leaves out are read from the program, whose parser is not argparse's."""
        command = ["python3", "lightning_cli.py", "fit", "--trainer.max_steps=30", "--trainer.accelerator=cpu", "--trainer.default_root_dir=out",
                   "--model.lr=0.02"]
        os.remove(self.folder + "/trainwreck.yaml")
        said = self.trainwreck("init", "--scenarios-root", self.suite, "--", *command).stdout
        added, = re.findall(r"(?m)^Added to your command, .*: (--.*)", said)
        self.assertEqual(set(added.split(", ")), {"--trainer.accumulate_grad_batches (accumulation)", "--data.batch_size (batch_size)",
                                                  "--seed_everything (seed)", "--model.warmup_steps (warmup_steps)",
                                                  "--model.weight_decay (weight_decay)"})
        self.assertIn("--trainer.gradient_clip_val (clip_norm)", said)  # which has no number: it is named
        said = self.trainwreck("run", "portable/same-seed", "portable/micro-batches", "--suite", "--scenarios-root", self.suite).stdout
        self.assertIn("# 2 cases: 2 pass;", said)

    @needs("torch", "hydra")
    @takes_long
    def test_init_of_hydras_settings(self):
        """Words `key=value` for what the settings hold, and a folder of Hydra's for each run."""
        os.remove(self.folder + "/trainwreck.yaml")
        program = EPOCHS[:EPOCHS.index("import argparse")] + "import torch\n" + EPOCHS[EPOCHS.index("torch.manual_seed"):].replace(
            "manual_seed(0)", "manual_seed(options.seed)").replace("options.lr", "options.optimizer.lr").replace("range(options.epochs)", "range(5)")
        with open(self.folder + "/settings.py", "w", encoding="utf-8") as file:
            file.write("import hydra\n@hydra.main(version_base=None, config_path='.', config_name='conf')\ndef main(options):" +
                       program.replace("\n", "\n    ") + "\nmain()\n")
        with open(self.folder + "/conf.yaml", "w", encoding="utf-8") as file:
            file.write("seed: 3\noptimizer: {lr: 0.05}\n")
        said = self.trainwreck("init", "--scenarios-root", self.suite, "--", "python3", "settings.py").stdout
        self.assertRegex(said, r"Added to your command, .*: optimizer.lr \(learning_rate\), seed \(seed\)\n")
        self.assertRegex(said, r"optimizer:adam: Adam, betas 0.9 and 0.999")
        self.assertIn("Each run has its own folder for hydra.run.dir\n", said)
        self.assertNotIn("Warning", said)
        shutil.rmtree(self.folder + "/outputs")  # of that run, which nothing told of it
        said = self.run_scenario("portable/same-seed", "mine", suite=True).stdout
        self.assertRegex(said, "PASS .* portable/same-seed")
        self.assertFalse(os.path.exists(self.folder + "/outputs"))

    @needs("torch")
    def test_init_of_a_program_whose_length_is_in_epochs(self):
        os.remove(self.folder + "/trainwreck.yaml")
        with open(self.folder + "/epochs.py", "w", encoding="utf-8") as file:
            file.write(EPOCHS)
        said = self.trainwreck("init", "--scenarios-root", self.suite, "--", "python3", "epochs.py", "--epochs=20", "--lr=0.05").stdout
        self.assertIn("how many steps it trains: no option says it", said)
        self.assertIn("--lr (learning_rate)", said)
        said = self.run_scenario("portable/lr-too-low", "mine", suite=True).stdout
        self.assertRegex(said, "PASS .* portable/lr-too-low")
        self.assertEqual([record["step"] for record in self.steps("portable/lr-too-low/control/0")], list(range(30)), "of 160")

    # The tools that look at many runs. Without torch they are tried by harness/cli/tests/hooked_tools_test.cc.

    def tool(self, *arguments, status=0):
        return self.trainwreck(*arguments, "--target", "hooked", "--suite", "--scenarios-root", self.suite, status=status).stdout

    def keep_scenarios(self, *names):
        for file in glob.glob(self.suite + "/portable/*.yaml"):
            if os.path.basename(file)[:-5] not in ("defaults", *names):
                os.remove(file)

    @needs("torch")
    @takes_long
    def test_calibrate(self):
        said = self.tool("calibrate", "portable/lr-too-low", "--seeds=1")
        found = float(re.search(r"portable/lr-too-low  (\S+)  passes from", said)[1])
        self.assertTrue(0.01 < found < 0.5, said)  # a thousandth is far beyond the edge
        said = self.run_scenario("portable/lr-too-low", "hooked", suite=True).stdout
        self.assertRegex(said, "PASS .* portable/lr-too-low")
        self.assertIn(f"strength: {found:g}, calibrated; the scenario itself says 0.001", said)

    @needs("torch")
    @takes_long
    def test_checkup(self):
        self.keep_scenarios("lr-too-low", "nan-gradient", "same-seed", "rank-killed")
        said = self.tool("checkup", "portable/lr-too-low", "--arm=fault", status=1)
        self.assertRegex(said, r"(?m)^1\. portable/lr-too-low ")
        self.assertIn("# rows that it cannot name: 1 need what this target lacks, 1 are twins, without a fault\n", said)
        self.assertIn("# nothing found", self.tool("checkup", "portable/lr-too-low"))

    @needs("torch")
    @takes_long
    def test_lr_range_and_matrix(self):
        self.assertIn("the recipe's rate, 0.01, is inside the range", self.tool("lr-range", "portable/same-seed", "--rates=8", "--seeds=1"))
        said = self.tool("matrix", "portable/lr-too-low", "portable/nan-gradient", "--seeds=2", "--output=table")
        self.assertIn("# false positives: 0 of 4 control runs", said)
        self.assertIn("# pairs of faults that no symptom separates: 0\n", said)

    @needs("torch")
    def test_a_guard_against_a_fault_of_the_hooks(self):
        self.run_scenario("hooks/nan-gradient", "hooked")

    @needs("torch")
    def test_formulas_about_modules(self):
        self.run_scenario("hooks/modules", "hooked")

    # The pages of the stacks: their programs, their targets, their commands.

    def assert_page(self, page):
        prefix = self.folder + "/installed"
        for source, place in ((TRAINWRECK, "bin"), (SUITE, "share/trainwreck"), (PACKAGE, "share/trainwreck/python")):
            os.makedirs(f"{prefix}/{place}", exist_ok=True)
            copy = shutil.copytree if os.path.isdir(source) else shutil.copy
            copy(source, f"{prefix}/{place}/{os.path.basename(source)}")
        done = subprocess.run([sys.executable, "tests/targets_docs_test.py", prefix + "/bin/trainwreck", "docs/guide/" + page, "2", "1"],
                              env=self.environment, text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assert_nothing_is_left()

    # The page's program with a release of 2023, which Debian's torch can run.
    @needs("torch")
    @unittest.skipUnless(PACKAGES, "there is no transformers for Debian's torch: ci/test.sh without --with-python-stacks installs it")
    def test_hugging_face_of_2023(self):
        with open(self.folder + "/huggingface.py", "w", encoding="utf-8") as file:
            file.write(block_of("huggingface"))
        self.environment["PYTHONPATH"] = PACKAGES
        for scenario in ("resume", "nan-gradient"):
            said = self.run_scenario("portable/" + scenario, "huggingface-2023", suite=True).stdout
            self.assertRegex(said, rf"PASS .* portable/{scenario}")

    @needs("torch", "transformers", "accelerate")
    def test_the_page_of_hugging_face(self):
        self.assert_page("huggingface.md")

    @needs("torch", "lightning")
    def test_the_page_of_lightning(self):
        self.assert_page("lightning.md")

    @needs("torch", "accelerate")
    @takes_long
    def test_the_page_of_accelerate(self):
        self.assert_page("accelerate.md")

    @needs("torch")
    @takes_long
    def test_the_page_of_torchrun(self):
        self.assert_page("torchrun.md")

    @needs("torch", "x_transformers")
    @takes_long
    def test_the_page_of_x_transformers(self):
        self.assert_page("x-transformers.md")

    @needs("torch", "torchtitan.train")
    @takes_long
    def test_the_page_of_torchtitan(self):
        self.assert_page("torchtitan.md")

    # The defects that twins are there for, in the program itself.

    def assert_differs(self, scenario, target, arms, seen):
        self.replace(f"scenarios/{scenario}.yaml", "seeds: 2", "seeds: 1")
        said = self.run_scenario(scenario, target, status=1).stdout
        self.assertRegex(said, r"FAIL +twins_differ ")
        self.assertIn(f"twins_differ: 'numbers' in {arms[0]}\n", said)
        self.assertRegex(said, seen)
        with open(self.folder + "/out/verdicts.json", encoding="utf-8") as file:
            case, = json.load(file)["verdicts"]
        self.assertEqual([check["arm"] for check in case["checks"] if check["class"]], arms)

    @takes_long
    @needs("torch")
    def test_a_mean_of_means_over_micro_batches_is_found(self):
        self.replace("trainwreck.yaml", '"--divide-by={divide_by}"', '"--divide-by={divide_by}", "--divide-by=micro-batches"')
        self.assert_differs("twins/micro-batches", "counted", ["four"],
                            r"distance\(loss\) = \S+, 0.0001 \* abs\(control.loss\) = \S+ at step 0\b")

    # The resumed run begins its epoch once more, and so draws once more from the generator that dropout draws from.
    @takes_long
    @needs("torch")
    def test_a_loader_that_shares_the_generator_is_found(self):
        self.replace("images.py", "generator=torch.Generator(),", "")
        self.assert_differs("twins/resume", "images", ["in_the_warm_up", "in_an_epoch", "with_workers"], r"distance\(loss\) = \S+.* at step 3\b")

    @takes_long
    @needs("torch")
    def test_noise_of_the_loading_process_is_found(self):
        self.replace("trainwreck.yaml", "--noise-from={noise_from}", "--noise-from=process")
        self.assert_differs("twins/workers", "images", ["two"], r"distance\(loss\) = \S+.* at step 0\b")

    @takes_long
    @needs("torch")
    def test_a_forgotten_seed_is_found(self):
        self.replace("images.py", "if options.seed is None", "if True")
        self.assert_differs("twins/again", "images", ["again"], r"distance\(loss\) = \S+.* at step 0\b")

    # Invariants: what every sound run must keep.

    @takes_long
    @needs("torch")
    def test_invariants_hold_and_each_can_be_broken(self):
        said = self.run_scenario("invariants", "images").stdout
        self.assertRegex(said, r"# 5 invariants: 40 times held\n")
        listed = subprocess.check_output([TRAINWRECK, "list", "invariants", "--target", "images"], cwd=self.folder, env=self.environment, text=True)
        names = {line.split()[0] for line in listed.splitlines() if not line.startswith("#")}
        broken = []
        for path in glob.glob(self.folder + "/scenarios/invariants/*.yaml"):
            with open(path, encoding="utf-8") as file:
                broken += re.search(r"^breaks: \[(.*)\]$", file.read(), re.M)[1].split(", ")
        self.assertEqual(sorted(broken), sorted(names))

    def assert_broken(self, scenario, option, names, says):
        self.replace("trainwreck.yaml", '"--checkpoints={run.checkpoints}"]', f'"--checkpoints={{run.checkpoints}}", {option}]')
        self.replace(f"scenarios/invariants/{scenario}.yaml", "seeds: 2", "seeds: 1")
        said = self.run_scenario("invariants/" + scenario, "images", status=1).stdout
        self.assertRegex(said, r"FAIL +invariant_broken ")
        self.assertEqual(re.findall(r"invariant_broken: '(\w+)' in control\n", said), names)
        for says_one in says:
            self.assertRegex(said, says_one)

    @takes_long
    @needs("torch")
    def test_a_schedule_that_counts_micro_batches_is_found(self):
        self.assert_broken("schedule-by-micro-batches", "--schedule-by=micro-batches", ["warm_up_rate", "cosine_rate"],
                           ["does not hold in seed 0: the rate warms up along a line, once for each update\n", r" at step 1 .*\n", "look at   schedule\n"])

    @takes_long
    @needs("torch")
    def test_a_loss_that_is_divided_twice_is_found(self):
        self.assert_broken("divided-twice", "--divide=twice", ["begins_as_a_guess"],
                           ["does not hold in seed 0: the first loss is not lower than that of a uniform guess\n",
                            r"loss\[0\] = 1\.\d+, 0\.9 \* log\(10\) = 2\.07233\n", "look at   loss\n"])

    @takes_long
    @needs("torch")
    def test_a_batch_that_is_dropped_is_found(self):
        self.assert_broken("dropped-batch", "--drop-last", ["epoch_has_all_samples"],
                           ["does not hold in seed 0: an epoch has as many samples as the data set\n", "epoch_samples = 576 at step 17 ",
                            "look at   loader\n"])

    @takes_long
    @needs("torch")
    def test_tensors_that_are_clipped_apart_are_found(self):
        self.assert_broken("clipped-apart", "--clip-over=tensors", ["clipped_to_the_norm"],
                           ["does not hold in seed 0: what is applied after clipping has at most the clip norm\n",
                            r"applied = 0\.\d+, 1\.0001 \* 0\.5 = 0\.50005 at step 0 ", "look at   clipping\n"])

    @needs("mpi4py", program="mpirun")
    def test_mpirun(self):
        self.run_scenario("rate/averaging", "mpirun")
        steps = self.steps("rate/averaging/control/0")
        self.assertEqual([record["step"] for record in steps], list(range(60)))

    @needs("mpi4py", program="mpirun")
    def test_one_process_of_mpirun_is_killed(self):
        self.run_scenario("rate/killed-mpi", "mpirun")
        self.assert_second_rank_was_killed("rate/killed-mpi")

    @takes_long
    @needs("torch")
    def test_a_rank_that_fails_under_torchrun_is_named_within_5_s(self):
        self.assert_all_ways_are_named("fails-torchrun")
        self.assert_named("fails-torchrun", "sigkill", "rank 3 was killed by SIGKILL", rank=3, ranks=4)

    @takes_long
    @needs("torch", program="mpirun")
    def test_a_rank_that_fails_under_mpirun_is_named_within_5_s(self):
        self.assert_all_ways_are_named("fails-mpirun")

    @takes_long
    @needs("torch")
    def test_a_rank_that_hangs_is_named_by_the_traces_of_all_and_no_healthy_one_is(self):
        said, events = self.fail_rank("traced-torchrun", "sleep", stall_s=4)
        stalled, = [e for e in events if e["event"] == "stalled"]
        self.assertEqual((stalled["lagging_rank"], stalled["waiting_rank"]), (1, 0), said)
        self.assertLess(stalled["after_s"], 5)
        said, events = self.fail_rank("fails-torchrun", "sleep", stall_s=4)  # nobody's trace but rank 0's
        stalled, = [e for e in events if e["event"] == "stalled"]
        self.assertEqual(stalled["lagging_rank"], -1, said)

    # It pauses for 4 s and goes on.
    @takes_long
    @needs("torch")
    def test_a_slow_rank_is_not_named(self):
        said, events = self.fail_rank("fails-torchrun", "slow")
        self.assertEqual(said, "")
        self.assertEqual([e["event"] for e in events if e["event"] in ("stopped", "stalled", "rank_failed", "killed")], [])

    @needs("torch", "tensorboard")
    def test_tensorboard_reads_what_we_write(self):
        self.run_scenario("rate/board", "board")
        subprocess.run([TRAINWRECK, "report", "out", "--report", "tensorboard=board"], cwd=self.folder, env=self.environment,
                       check=True, stdout=subprocess.DEVNULL)
        file, = glob.glob(self.folder + "/board/rate/board/control/0/*tfevents*")
        script = ("import json, sys\n"
                  "from tensorboard.backend.event_processing.event_accumulator import EventAccumulator\n"
                  "events = EventAccumulator(sys.argv[1]).Reload()\n"
                  "print(json.dumps([[e.step, e.value] for e in events.Scalars('loss')]))\n")
        read = json.loads(subprocess.check_output([PYTHON, "-c", script, file], text=True))
        ours = [[record["step"], record["loss"]] for record in self.steps("rate/board/control/0")]
        self.assertEqual(read, ours)  # a float on both ways


if __name__ == "__main__":
    unittest_xml.main(sys.argv[3:])
