#!/usr/bin/env python3
"""The description that the tests of the reader of scenarios have, tests/bad_scenarios/target.json, is a part of what the trainer
says of itself today. Its defaults and sentences are its own: the tests name them.

Usage: fixture_test.py FIXTURE TRAINER
"""
import json
import subprocess
import sys
import unittest

import unittest_xml

FIXTURE, TRAINER = sys.argv[1:3]
PARAM = {"type": None, "choices": None, "min": None, "max": None, "unit": ""}
SIGNAL = {"unit": "", "scale": "linear", "exact": False, "per_module": False, "sparse": False, "optional": False}


def chosen(entry, fields):
    return {field: entry.get(field, absent) for field, absent in fields.items()}


def fault(entry):
    params = {param["name"]: (chosen(param, PARAM), "default" in param) for param in entry["params"]}
    return chosen(entry, {"trigger": True, "min_ranks": 1, "features": []}), params


WHAT_MATTERS = {
    "recipe": lambda entry: chosen(entry, PARAM),
    "signals": lambda entry: chosen(entry, SIGNAL),
    "events": lambda entry: entry["fields"],
    "faults": fault,
}


class Fixture(unittest.TestCase):
    def test_agrees_with_what_the_trainer_says_of_itself(self):
        with open(FIXTURE, encoding="utf-8") as file:
            fixture = json.load(file)
        said = json.loads(subprocess.run([TRAINER, "--describe"], check=True, capture_output=True).stdout)
        self.assertEqual(fixture["protocol"], said["protocol"])
        self.assertLessEqual(set(fixture["features"]), set(said["features"]))
        for part, of in WHAT_MATTERS.items():
            known = {entry["name"]: entry for entry in said[part]}
            for entry in fixture[part]:
                name = entry["name"]
                if name == "fired" or name.startswith("recipe."):  # the harness adds these to what a target says
                    continue
                with self.subTest(part=part, name=name):
                    self.assertIn(name, known)
                    self.assertEqual(of(entry), of(known[name]))


if __name__ == "__main__":
    unittest_xml.main(sys.argv[3:])
