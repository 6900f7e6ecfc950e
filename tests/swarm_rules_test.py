#!/usr/bin/env python3
"""Breaks each of swarm's rules once: the honest program of docs/reference/protocol.md keeps them all, and with one lie planted in it
the rule that the lie breaks is named.

Usage: swarm_rules_test.py DOCUMENT TRAINWRECK
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import unittest_xml
from targets_docs_test import blocks_of, environment_in, write

DOCUMENT, TRAINWRECK = map(os.path.abspath, sys.argv[1:3])
FILES = {name: text for _, name, text in blocks_of(DOCUMENT) if name}

# Before the record of a step; after it is known whether a fault acted at it.
STEP = "        size = max(map(abs, gradient))\n"
FIRES = "            if not acts(fault[\"trigger\"], plan, step, rank):\n"
RESUMES = "        write(\"event\", event=\"resumed\", step=done, from_step=done)\n"


class SwarmRules(unittest.TestCase):
    def broken(self, place="", lie=""):
        """The rules that 40 combinations break with `lie` added behind `place`, and the exit status."""
        folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(folder.cleanup)
        for name, text in FILES.items():
            # The rule of bits after a restart knows the faults that only stop a process by their names.
            text = text.replace("process.kill", "process.crash_rank")
            text = text.replace('"save_every", "type": "int", "default": 10', '"save_every", "type": "int", "default": 2')
            if name == "line.py" and lie:
                self.assertEqual(text.count(place), 1, place)
                text = text.replace(place, place + lie)
            write(folder.name, name, text)
        done = subprocess.run([TRAINWRECK, "swarm", "--seed", "5", "--runs", "40", "--budget", "20", "--output", "out"],
                              cwd=folder.name, env=environment_in(folder.name, TRAINWRECK), text=True, capture_output=True, check=False)
        self.assertTrue(os.path.exists(folder.name + "/out/swarm.json"), done.stdout + done.stderr)
        with open(folder.name + "/out/swarm.json", encoding="utf-8") as file:
            summary = json.load(file)
        self.assertEqual(summary["combinations"], 40)
        return summary, done.returncode

    def assert_breaks(self, rule, place, lie):
        summary, code = self.broken(place, lie)
        self.assertEqual((set(summary["broken"]), code), ({rule}, 1), summary["broken"])
        first = summary["failing"][0]
        self.assertTrue(first["repeats"])
        self.assertIn(f"trainwreck swarm --seed 5 --only {first['number']}", first["line"])

    def test_an_honest_program_keeps_all(self):
        summary, code = self.broken()
        self.assertEqual((summary["failing"], code), ([], 0))
        self.assertGreaterEqual(summary["compared"], 3)
        self.assertEqual(set(summary["fired"]), {"gradient.scale", "process.crash_rank"})

    def test_a_crash_by_a_signal(self):
        self.assert_breaks("ends", STEP, "        if step == 4 and plan['attempt'] == 0 and size > 100:\n"
                                         "            os.kill(os.getpid(), signal.SIGSEGV)\n")

    def test_a_process_that_stays(self):
        self.assert_breaks("leaves_nothing", STEP, "        if step == 2 and plan['faults'] and os.fork() == 0:\n"
                                                   "            os.setsid(); os.closerange(0, 100); time.sleep(60)\n")

    def test_a_file_that_stays(self):
        self.assert_breaks("leaves_nothing", STEP, "        if step == 2 and recipe['save_every'] > 1:\n"
                                                   "            open(os.environ['TMPDIR'] + '/left', 'w').close()\n")

    def test_an_alarm_in_a_healthy_run(self):
        self.assert_breaks("blames_no_healthy_rank", STEP,
                           "        if step == 2 and not plan['faults']:\n"
                           "            write('event', event='checkpoint_damaged', step=step)\n")

    def test_a_fault_that_is_lost_beside_another(self):
        self.assert_breaks("fires", FIRES, "                continue\n"
                                           "            if len(plan['faults']) > 1 and fault is plan['faults'][0]:\n")

    def test_a_restart_that_goes_on_with_other_numbers(self):
        self.assert_breaks("resumes_exactly", RESUMES, "        slope += 1e-9\n")


if __name__ == "__main__":
    unittest_xml.main(sys.argv[3:])
