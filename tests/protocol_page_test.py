#!/usr/bin/env python3
"""Does what docs/reference/protocol.md says: writes its files, runs its commands, compares their output. Then it breaks the page's
program in ways that the page says are noticed.

Usage: protocol_page_test.py DOCUMENT TRAINWRECK TARGET
TARGET is a program whose description has all fields.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import unittest_xml
from targets_docs_test import blocks_of, environment_in, matches, run_commands, write

DOCUMENT, TRAINWRECK, TARGET = map(os.path.abspath, sys.argv[1:4])
with open(DOCUMENT, encoding="utf-8") as page:
    PAGE = page.read()
BLOCKS = blocks_of(DOCUMENT)
FILES = {name: text for _, name, text in BLOCKS if name}


class ProtocolPage(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.environment = environment_in(self.folder, TRAINWRECK)
        for name, text in FILES.items():
            self.write(name, text)

    def write(self, name, text):
        write(self.folder, name, text)

    def damage(self, before, after):
        self.assertEqual(FILES["line.py"].count(before), 1, before)
        self.write("line.py", FILES["line.py"].replace(before, after))

    def test_a_program_of_level_2_has_at_most_100_lines(self):
        self.assertLessEqual(sum(bool(line.strip()) for line in FILES["line.py"].splitlines()), 100)

    def verdict(self, scenario):
        output = os.path.join(self.folder, "output")
        done = subprocess.run([TRAINWRECK, "run", scenario, "--output", output], cwd=self.folder, text=True,
                              env=self.environment, capture_output=True, check=False)
        self.assertTrue(os.path.exists(output + "/verdicts.json"), done.stdout + done.stderr)
        with open(output + "/verdicts.json", encoding="utf-8") as file:
            [case] = json.load(file)["verdicts"]
        return case["verdict"], case["class"], done.stdout

    def test_files_and_commands_do_what_the_page_says(self):
        consoles = [text for language, name, text in BLOCKS if language == "console" and not name]
        self.assertTrue(consoles)
        self.assertEqual(len(FILES), 4)
        for text in consoles:
            self.assertEqual(list(run_commands(text, self.folder, self.environment)), [])

    def test_records_on_the_page_are_json(self):
        records = [line for language, _, text in BLOCKS if language == "json" for line in text.splitlines()]
        self.assertEqual({json.loads(line)["t"] for line in records},
                         {"start", "step", "collective", "event", "end"})

    def test_the_page_names_every_field_of_a_description(self):
        told = subprocess.run([TARGET, "--describe"], text=True, capture_output=True, check=True)
        seen = set()

        def walk(value):
            for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
                walk(part)
            if isinstance(value, dict):
                seen.update(value)

        walk(json.loads(told.stdout))
        self.assertLessEqual({"protocol", "recipe", "scale", "amends", "max", "evidence"}, seen)
        section = PAGE[PAGE.index("## Description"):PAGE.index("## Start")]
        words = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", section))))
        self.assertEqual(sorted(seen - words), [])

    def test_the_page_names_every_field_of_a_plan(self):
        self.assertEqual(self.verdict("spike/gradient")[0], "pass")
        done = subprocess.run([TRAINWRECK, "run", "crash/killed", "--keep", "all", "--output", self.folder + "/kept"],
                              cwd=self.folder, env=self.environment, text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        seen = set()
        for folder, _, files in os.walk(self.folder + "/kept"):
            for name in files:
                if name.startswith("plan."):
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        plan = json.load(file)
                    seen.update(plan)
                    seen.update(plan["started"]["environment_of_rank_0"])
                    for fault in plan["faults"]:
                        seen.update(fault)
        self.assertIn("until", seen)
        self.assertIn("TRAINWRECK_TRACE", seen)
        self.assertEqual([name for name in sorted(seen) if f"`{name}`" not in PAGE], [])

    def test_a_fault_without_evidence_is_no_pass(self):
        self.damage('fired(fault, step, before, max(map(abs, gradient)))', "pass")
        verdict, why, said = self.verdict("spike/gradient")
        self.assertEqual((verdict, why), ("fail", "fault_not_fired"))
        self.assertIn("it did not fire", said)

    def test_a_fault_whose_hook_failed_is_unknown(self):
        failed = 'write("event", event="hook_failed", step=step, hook="gradients", why="KeyError(1)")'
        act = "                gradient = [fault[\"with\"][\"factor\"] * part for part in gradient]\n                "
        fired = "fired(fault, step, before, max(map(abs, gradient)))"
        self.assertEqual(FILES["line.py"].count(act + fired), 1)
        program = FILES["line.py"].replace(act + fired, "                " + failed)
        self.write("line.py", program)
        self.assertEqual(self.verdict("spike/gradient")[:2], ("fail", "fault_not_fired"))
        evidence = '"evidence": "the largest gradient before and after"'
        self.assertEqual(program.count(evidence), 1)
        self.write("line.py", program.replace(evidence, evidence + ', "hooks": ["gradients"]'))
        verdict, why, said = self.verdict("spike/gradient")
        self.assertEqual((verdict, why), ("inconclusive", "undecided"), said)
        self.assertRegex(said, r"could not act: hook 'gradients' failed at step \d+: KeyError\(1\)")
        self.assertRegex(said, r"note: fault, seed 0 .*hook 'gradients' failed at step \d+: KeyError\(1\); what it records is missing")

    def test_a_fault_that_changed_nothing_is_no_pass(self):
        self.damage('fired(fault, step, before, max(map(abs, gradient)))', "fired(fault, step, before, before)")
        verdict, why, said = self.verdict("spike/gradient")
        self.assertEqual((verdict, why), ("fail", "fault_not_fired"))
        self.assertIn("it fired but changed nothing", said)

    def test_an_end_that_is_not_said_is_no_pass(self):
        self.damage('    write("end", why="completed", step=until)\n', "")
        self.assertEqual(self.verdict("spike/gradient")[0], "error")

    def test_a_run_that_ends_early_is_no_pass(self):
        self.damage('plan.get("until") or recipe["steps"]', 'plan.get("until") or recipe["steps"] - 1')
        self.assertEqual(self.verdict("spike/gradient")[:2], ("error", "incomplete"))

    def test_another_version_is_refused(self):
        self.damage('"protocol": 1', '"protocol": 2')
        done = subprocess.run([TRAINWRECK, "run"], cwd=self.folder, env=self.environment, text=True,
                              capture_output=True, check=False)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertTrue(matches("...protocol 2 is not spoken here (1 is)...", done.stderr), done.stderr)


if __name__ == "__main__":
    unittest_xml.main(sys.argv[4:])
