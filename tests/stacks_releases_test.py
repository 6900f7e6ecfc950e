#!/usr/bin/env python3
"""Defects of real releases, unmodified, from PyPI. Those of docs/measured/released_bugs.md are found by the row or twin of its table, and
not in the sound release. Those of docs/measured/newest.md and failures.md are shown by the programs of these pages alone. They
are run with the Python that TRAINWRECK_STACKS_PYTHON names (`ci/test.sh --with-python-stacks` makes one). What pip cannot fetch is skipped.

Usage: stacks_releases_test.py TRAINWRECK FOLDER [unittest options]
"""
import functools
import os
import re
import subprocess
import sys
import tempfile

import unittest_xml
from stacks_case import PYTHON, StacksCase, block_of, needs, takes_long

RELEASED, NEWEST, FAILURES = (f"docs/measured/{name}.md" for name in ("released_bugs", "newest", "failures"))
STATUS = {"PASS": 0, "FAIL": 1, "ERROR": 7}
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
# What releases that begin so need beside them, where that of today will not do.
PARTNERS = {
    "transformers==4.4": ("huggingface-hub==0.25.2", "tokenizers==0.20.3", "datasets==4.0.0"),
    "transformers==4.5": ("huggingface-hub==0.35.3", "tokenizers==0.22.2", "datasets==4.0.0"),
    "transformers==5.10.": ("huggingface-hub==1.5.0", "tokenizers==0.22.2", "datasets==4.5.0"),
    "timm==": ("torchvision==0.26.0",),
}


def text_of(page):
    with open(page, encoding="utf-8") as file:
        return file.read()


@functools.cache
def overlay_of(*packages):
    """A folder with these releases (NAME==VERSION) and their partners for PYTHONPATH, and why there is none. What PYTHON has itself is
    left out."""
    partners = [partner for begin, partners in PARTNERS.items() for partner in partners if any(p.startswith(begin) for p in packages)]
    listed = subprocess.run([sys.executable, *"-m pip --python".split(), PYTHON, *"list --format=freeze".split()], text=True,
                            capture_output=True, check=False)
    there = listed.stdout.replace("_", "-").lower().split()
    missing = [package for package in (*packages, *partners) if package not in there]
    folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
    if not missing:
        return folder, None
    pip = [sys.executable, *"-m pip --python".split(), PYTHON, *"install -q --no-deps --target".split(), folder, *missing]
    done = subprocess.run(pip, text=True, capture_output=True, check=False)
    return folder, f"pip cannot fetch {', '.join(missing)}: {done.stderr.strip()}" if done.returncode else None


class ReleasesTest(StacksCase):
    def use(self, *packages):
        folder, why_not = overlay_of(*packages)
        if why_not:
            self.skipTest(why_not)
        self.environment["PYTHONPATH"] = folder


class ReleasedBugsTest(ReleasesTest):
    def setUp(self):
        super().setUp()
        self.replace("../suite/portable/defaults.yaml", "seeds: 2", "seeds: 1")  # for time's sake

    def write(self, files):
        """A project of these files, (name, text)."""
        self.folder = tempfile.mkdtemp(dir=os.path.dirname(self.folder))
        for name, text in files:
            os.makedirs(os.path.dirname(f"{self.folder}/{name}"), exist_ok=True)
            with open(f"{self.folder}/{name}", "w", encoding="utf-8") as file:
                file.write(text)

    def write_program(self, name):
        self.write(re.findall(rf"```\w+ {name}/(\S+)\n(.*?)```", text_of(RELEASED), re.DOTALL))

    def assert_verdict(self, releases, scenario, settings, verdict):
        """With these releases the scenario ends with this verdict and class (a pattern). Returns what was printed."""
        self.use(*releases)
        suite = ["--suite", "--scenarios-root", self.suite] if scenario.startswith("portable/") else []
        changes = [word for setting in settings for word in ("--set", setting)]
        said = self.trainwreck("run", scenario, *suite, *changes, status=STATUS[verdict.split()[0]]).stdout
        self.assertRegex(said, rf"(?m)^{verdict} .* {scenario}$", releases)
        return said

    def assert_margin(self, said, cell):
        """The margin has the size that the page says. There it is that of the worst seed."""
        margin, of_page = -float(re.search(r"(?m)^ +margin +(-\S+)$", said)[1]), float(cell)
        self.assertTrue(of_page / 3 < margin < of_page * 3, f"{margin}, the page says {of_page}")

    def assert_defect(self, number, arm, *settings, bad="FAIL +twins_differ", sound="PASS", says="twins_differ"):
        """What a row of the page's table says, of each bad release (where this pattern is printed, too) and each sound one. Of crashes the
        margin is the exit code."""
        row = re.search(rf"(?m)^\| {number} \| (.*) \|$", text_of(RELEASED))[1]
        package, bad_ones, sound_ones, relation, margin, _ = row.split(" | ")
        scenario = re.search(r"portable/[\w-]+", relation)[0]
        margins = re.match(r"exit code \d+$|[\d., ]+", margin)[0].strip(" ,").split(", ")
        releases = re.findall(r"\d+\.\d+\.\d+", bad_ones)
        for release, margin in zip(releases, margins * len(releases) if len(margins) == 1 else margins, strict=True):
            said = self.assert_verdict([f"{package}=={release}"], scenario, settings, bad)
            self.assertRegex(said, says, release)
            if margin.startswith("exit code"):
                self.assertIn(f"crash: 'end' in {arm}\n", said)
                self.assertRegex(said, rf"rank 0 exited with {margin.replace('exit ', '')} ", release)
            else:
                self.assertIn(f"twins_differ: 'loss' in {arm}\n", said)
                self.assert_margin(said, margin)
        for release in re.findall(r"\d+\.\d+\.\d+", sound_ones):
            said = self.assert_verdict([f"{package}=={release}"], scenario, settings, sound)
            self.assertNotIn("twins_differ", said)

    # Hugging Face's Trainer.

    @needs("torch", "transformers", "accelerate")
    @takes_long
    def test_1_a_mean_of_means_over_micro_batches(self):
        self.write_program("hf")
        self.assert_defect(1, "halves", "model=llama")

    @needs("torch", "transformers", "accelerate")
    @takes_long
    def test_2_micro_batches_that_are_not_divided(self):
        self.write_program("hf")
        self.assert_defect(2, "halves", "model=own", "batch=16", "lengths=same")

    @needs("torch", "transformers", "accelerate")
    @takes_long
    def test_6_augmentations_after_a_resume(self):
        self.write_program("hf")
        self.environment["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"
        self.assert_defect(6, "resumed", "augment=true", "batch=16", "lengths=same")

    @needs("torch", "transformers", "accelerate")
    @takes_long
    def test_7_smoothed_losses_that_are_not_divided(self):
        self.write_program("hf")
        self.assert_defect(7, "halves", "smoothing=0.1", "lengths=same")

    # Lightning.

    @needs("torch", "lightning")
    @takes_long
    def test_3_gradients_that_are_not_accumulated(self):
        self.write_program("lightning")
        self.assert_defect(3, "halves", "no_index=true")

    @needs("torch", "lightning")
    @takes_long
    def test_4_an_evaluation_that_clears_gradients(self):
        self.write_program("lightning")
        self.assert_defect(4, "evaluated", "accumulation=4", "batch=4", bad="ERROR +crash", says="step 12 is beyond the planned 12")

    @needs("torch", "lightning")
    @takes_long
    def test_9_an_evaluation_that_ends_in_training_mode(self):
        self.write_program("lightning")
        self.assert_defect(9, "evaluated", "frozen=true")

    # torchmetrics.

    @needs("torch", "torchmetrics")
    @takes_long
    def test_5_a_metric_of_batches_of_one(self):
        self.write_program("metrics")
        for release, is_sound in (("1.0.3", False), ("1.1.0", False), ("1.1.1", True)):
            said = self.assert_verdict(["torchmetrics==" + release], "evaluation", [], "PASS" if is_sound else "FAIL +twins_differ")
            self.assertEqual(re.findall(r"twins_differ: '(\w+)' in one_by_one\n", said), [] if is_sound else ["finite"], release)
            done = subprocess.run([PYTHON, "pearson.py"], cwd=self.folder, env=self.environment, text=True, capture_output=True, check=False)
            self.assertEqual("AssertionError" in done.stderr, not is_sound, release + done.stderr)

    # accelerate: by a loop of one's own, and by the Trainer.

    @needs("torch", "accelerate")
    @takes_long
    def test_8_the_order_of_a_resumed_epoch(self):
        self.write((name, block_of("accelerate", name)) for name in ("train.py", "trainwreck.yaml"))
        self.assert_defect(8, "resumed", "batch=128", "steps=12")

    @needs("torch", "transformers", "accelerate")
    @takes_long
    def test_8_the_order_of_a_resumed_epoch_below_the_trainer(self):
        self.write_program("hf")
        of_page = re.search(r"; (\S+) below the Trainer of transformers 4.57.1 \|", text_of(RELEASED))[1]
        for release, verdict in (("1.14.0", "FAIL +twins_differ"), ("1.15.0", "PASS")):
            said = self.assert_verdict(["accelerate==" + release, "transformers==4.57.1"], "portable/resume",
                                       ["lengths=same", "batch=128"], verdict)
            if verdict != "PASS":
                self.assertIn("twins_differ: 'loss' in resumed\n", said)
                self.assert_margin(said, of_page)

    # Optimizers, by a plain loop.

    def assert_optimizer_does_not_resume(self, number, name, **expected):
        self.write_program("optimizers")
        self.assert_defect(number, "resumed", "optimizer=pytorch_optimizer." + name, **expected)

    @needs("torch")
    @takes_long
    def test_10_sgdsai_measures_anew(self):
        self.assert_optimizer_does_not_resume(10, "SGDSaI")

    @needs("torch")
    @takes_long
    def test_11_adashift_makes_no_update_after_a_resume(self):
        self.assert_optimizer_does_not_resume(11, "AdaShift")

    # By default it does not use the rate that the scenario changes.
    @needs("torch")
    @takes_long
    def test_12_adafactor_has_a_momentum_of_another_type(self):
        self.assert_optimizer_does_not_resume(12, "AdaFactor", bad="ERROR +crash", sound="FAIL +bug_unnoticed",
                                              says="expected dtype float for `end` but got dtype c10::BFloat16")

    @needs("torch")
    @takes_long
    def test_13_kron_cannot_be_saved(self):
        self.assert_optimizer_does_not_resume(13, "Kron", bad="ERROR +crash", says="Can't pickle local object")

    @needs("torch")
    @takes_long
    def test_14_spam_has_a_mask_of_floats(self):
        self.assert_optimizer_does_not_resume(14, "SPAM", bad="ERROR +crash", says="tensors used as indices must be")


class NewestTest(ReleasesTest):
    def assert_prints(self, wanted, output):
        """The lines stand in the output in this order, among others. Numbers may differ by 5%."""
        lines = iter(output.splitlines())
        for line in wanted:
            numbers = list(map(float, NUMBER.findall(line)))
            for printed in lines:
                if NUMBER.sub("#", printed.strip()) == NUMBER.sub("#", line.strip()) and all(
                        abs(float(text) - number) <= 0.05 * abs(number) for text, number in zip(NUMBER.findall(printed), numbers)):
                    break
            else:
                self.fail(f"not printed: {line}\n{output}")

    def assert_programs_print(self, page):
        """Each section with a program: its heading begins with a package of the table, an indented block holds what it prints."""
        page = text_of(page)
        table = dict(re.findall(r"(?m)^\| (\w+) (\d+\.\d+\.\d+) \|", page))
        sections = [section for section in re.split(r"(?m)^## ", page) if "```python\n" in section]
        self.assertEqual(len(sections), len(re.findall(r"(?m)^\| \w+ \d+\.\d+\.\d+ \|", page)), "a section for each row of the table")
        for section in sections:
            package = section.partition(":")[0]
            with self.subTest(section.partition("\n")[0]):
                self.use(f"{package.lower()}=={table[package]}")
                program, = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
                wanted = re.findall(r"(?m)^    (.*)$", re.sub(r"```.*?```", "", section, flags=re.DOTALL))
                self.assertNotEqual(wanted, [], "what it prints")
                done = subprocess.run([PYTHON, "-c", program], cwd=self.folder, env=self.environment, text=True, capture_output=True, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assert_prints(wanted, done.stdout)

    @needs("torch", "transformers", "lightning", "torchtitan.train")
    @takes_long
    def test_the_programs_of_the_page(self):
        self.assert_programs_print(NEWEST)

    @needs("torch", "transformers", "accelerate", "lightning", "torchdata", "torchmetrics", "torchtitan.train")
    @takes_long
    def test_the_programs_of_the_page_of_failures(self):
        self.assert_programs_print(FAILURES)


if __name__ == "__main__":
    unittest_xml.main(sys.argv[3:])
