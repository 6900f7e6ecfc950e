#!/usr/bin/env python3
"""A repository that adds a fault, a model and a scenario without touching ours: examples/out_of_tree.

Built from ours, as @out_of_tree_example, its scenario is a test of its own; here it is also seen to fail. The other way round, with
ours as the external repository, the example is analysed whole and its own files are compiled: to build all of the trainer a
second time, under other paths, would cost more than all other tests together (ci/out_of_tree.sh does it).

Usage: out_of_tree_test.py CHECKOUT TRAINWRECK MUTANT EXAMPLE [unittest options]
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import unittest_xml

CHECKOUT, TRAINWRECK, MUTANT, EXAMPLE = map(os.path.abspath, sys.argv[1:5])
TRAINER = EXAMPLE + "/my-trainer"
BAZEL = os.environ.get("BAZEL") or shutil.which("bazel")


class OutOfTreeTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))

    def test_trainer_describes_what_was_added_and_what_was_there(self):
        target = json.loads(subprocess.check_output([TRAINER, "--describe"], text=True))
        kind, = [key for key in target["recipe"] if key["name"] == "model.kind"]
        self.assertEqual(kind["choices"], ["gpt", "mlp", "prototype", "residual_mlp", "rnn"])
        faults = [fault["name"] for fault in target["faults"]]
        self.assertIn("gradient.spike", faults)
        self.assertIn("data.corrupt_sample", faults)

    def run_scenario(self, trainer):
        done = subprocess.run(
            [TRAINWRECK, "run", EXAMPLE + "/scenarios/spike/one-wild-gradient.yaml", "--target", trainer, "--history", "none",
             "--output", self.folder + "/out"],
            env={**os.environ, "TRAINWRECK_CACHE": self.folder + "/cache"}, text=True, capture_output=True, check=False)
        with open(self.folder + "/out/verdicts.json", encoding="utf-8") as file:
            case, = json.load(file)["verdicts"]
        return done, case

    def test_scenario_passes(self):
        done, case = self.run_scenario(TRAINER)
        self.assertEqual((done.returncode, case["verdict"]), (0, "pass"), done.stdout + done.stderr)

    def test_scenario_fails_when_the_fault_does_nothing(self):
        done, case = self.run_scenario(MUTANT)
        self.assertEqual((done.returncode, case["verdict"], case["class"]), (1, "fail", "fault_not_fired"),
                         done.stdout + done.stderr)

    @unittest.skipIf(BAZEL is None, "no bazel on PATH, and $BAZEL is not set")
    def test_ours_is_the_external_repository(self):
        def bazel(*arguments):
            done = subprocess.run(
                [BAZEL, "--batch", "--output_user_root=" + self.folder, "--output_base=" + self.folder + "/base",
                 f"--bazelrc={CHECKOUT}/.bazelrc.local", *arguments],
                cwd=CHECKOUT + "/examples/out_of_tree", text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            self.assertEqual(done.returncode, 0, done.stdout)
            return done.stdout

        options = ["--experimental_convenience_symlinks=ignore", "--jobs=2", "--noshow_progress", "--color=no"]
        bazel("build", "--nobuild", *options, "//...")
        # Objects alone: the libraries that they are linked to would be all of ours.
        bazel("build", "--output_groups=compilation_outputs", *options, "//:faults", "//:models")
        objects = [name for _, _, files in os.walk(self.folder + "/base/execroot/out_of_tree_example/bazel-out") for name in files
                   if name.endswith(".o")]
        self.assertEqual(sorted({name.split(".")[0] for name in objects}), ["gradient_spike", "residual_mlp"])


if __name__ == "__main__":
    unittest_xml.main(sys.argv[5:])
