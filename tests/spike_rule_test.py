#!/usr/bin/env python3
"""tools/spike_rule.py over runs whose spikes are known.

Usage: spike_rule_test.py SPIKE_RULE
"""
import importlib.util
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

import unittest_xml

PROGRAM = sys.argv[1]
spec = importlib.util.spec_from_file_location("spike_rule", PROGRAM)
spike_rule = importlib.util.module_from_spec(spec)
spec.loader.exec_module(spike_rule)


def write_run(root, case, arm, seed, losses, norms):
    folder = pathlib.Path(root) / case / arm / f"seed{seed}"
    folder.mkdir(parents=True)
    with open(folder / "rank0.jsonl", "w", encoding="utf-8") as file:
        file.write(json.dumps({"t": "run"}) + "\n")
        for loss, norm in zip(losses, norms):
            file.write(json.dumps({"t": "step", "loss": str(loss), "grad_norm": norm}) + "\n")


class Spike(unittest.TestCase):
    def test_is_four_times_the_median_of_the_eight_before(self):
        self.assertTrue(spike_rule.is_spike([1] * 8 + [4], 8))
        self.assertFalse(spike_rule.is_spike([1] * 8 + [3.99], 8))
        self.assertTrue(spike_rule.is_spike([100] + [1] * 4 + [2] * 4 + [6], 9))  # the 100 does not count
        self.assertFalse(spike_rule.is_spike([1] * 3 + [100] * 5 + [4], 8))

    def test_needs_numbers(self):
        self.assertFalse(spike_rule.is_spike([5], 0))
        self.assertFalse(spike_rule.is_spike([1, math.nan, 9], 2))
        self.assertFalse(spike_rule.is_spike([1, 1, math.nan], 2))
        self.assertTrue(spike_rule.is_spike([1, 1, math.inf], 2))

    def test_is_ahead_of_the_first_loss_that_is_not_finite(self):
        losses = [1.0] * 12 + [math.nan] * 3
        self.assertEqual(spike_rule.lead_of(losses, [1.0] * 9 + [8.0] * 6), (12, 3))
        self.assertEqual(spike_rule.lead_of(losses, [1.0] * 12 + [8.0] * 3), (12, None))
        self.assertEqual(spike_rule.lead_of([1.0] * 15, [1.0] * 9 + [8.0] * 6), (None, None))

    def test_counts_only_twenty_steps_before(self):
        losses = [1.0] * 40 + [math.inf]
        norms = [1.0] * 10 + [8.0] + [1.0] * 30
        self.assertEqual(spike_rule.lead_of(losses, norms), (40, None))
        norms[25] = 8.0
        self.assertEqual(spike_rule.lead_of(losses, norms), (40, 15))


class Program(unittest.TestCase):
    def test_counts_runs_by_cause(self):
        with tempfile.TemporaryDirectory() as root:
            ending, steady = [1.0] * 12 + [math.nan], [1.0] * 13
            spike, flat = [1.0] * 10 + [9.0] * 3, [1.0] * 13
            write_run(root, "nan/no-warmup", "fault", 0, ending, spike)
            write_run(root, "nan/no-warmup", "fault", 1, ending, flat)
            write_run(root, "nan/no-warmup", "fault", 2, steady, flat)
            write_run(root, "nan/corrupt-sample", "fault", 0, ending, flat)
            write_run(root, "nan/corrupt-sample", "control", 0, steady, [1.0, 9.0] + [9.0] * 11)
            write_run(root, "oom/activations", "control", 0, steady, flat)
            done = subprocess.run([sys.executable, PROGRAM, root], capture_output=True, text=True, check=True)
        lines = done.stdout.splitlines()
        self.assertIn("| nan/no-warmup | 3 | 2 | 1 | 2 / 2 / 2 | 1 of 2 |", lines)
        self.assertIn("| nan/corrupt-sample | 1 | 1 | 0 | - | 1 of 1 |", lines)
        self.assertIn("optimisation: 1 of 2", lines)
        self.assertIn("data or numerics: 1 of 1", lines)
        self.assertIn("finite runs of control with a spike: 1 of 2", lines)
        self.assertIn("finite runs of fault with a spike: 0 of 1", lines)


if __name__ == "__main__":
    unittest_xml.main(sys.argv[2:])
