#!/usr/bin/env python3
"""Every fault of faults/recipe.yaml, on the reference trainer: it is there, changes what it says, refuses what it says,
and leaves its evidence.

Usage: recipe_test.py TRAINWRECK TRAINER RECIPE_YAML [unittest options]
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

TRAINWRECK, TRAINER, TABLE = map(os.path.abspath, sys.argv[1:4])
OF_TYPE = {"int": 3, "number": 0.25, "string": "text", "bool": True}  # where there is no default
REST = {"symptoms": {"worse": "mean(loss[-5:]) > 1.01 * control.mean(loss[-5:])"}, "no_remedy": "a test"}


def changes(document, key_of):
    """What a document of the table says: {key: (op, value)}. `key_of` has the keys with roles."""
    found = {}
    for operation, entries in re.findall(r"^(set|scale): \{(.*)\}$", document, re.M):
        for entry in entries.split(", "):
            key, value = entry.split(": ")
            found[key_of.get(key, key)] = (operation, value)
    return found


def number_or_text(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


class RecipeFaultsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        os.makedirs(cls.folder + "/scenarios/t")
        with open(TABLE, encoding="utf-8") as file:
            documents = file.read().split("\n---\n")[1:]
        cls.faults = {fault["name"]: fault for fault in json.loads(cls.call("list", "faults", "--format", "json").stdout)}
        recipe = json.loads(cls.call("list", "recipe", "--format", "json").stdout)
        cls.defaults = {key["name"]: key.get("default") for key in recipe}
        key_of = {"role." + key["role"]: key["name"] for key in recipe if key.get("role")}
        cls.table = {re.search(r"^name: (\S+)$", document, re.M)[1]: changes(document, key_of) for document in documents}

    @classmethod
    def call(cls, *arguments):
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("TEST_SRC", "RUNFILES"))}
        return subprocess.run([TRAINWRECK, *arguments, "--target", TRAINER], cwd=cls.folder, text=True, check=False,
                              capture_output=True, env={**environment, "TRAINWRECK_CACHE": cls.folder + "/cache"})

    def write(self, name, fault, values, **more):
        scenario = {"apiVersion": "trainwreck/v1", "kind": "Scenario", "name": "t/" + name, "title": "A test", "seeds": 1,
                    "inject": {"it": {"fault": fault, **({"with": values} if values else {})}}, **REST, **more}
        with open(f"{self.folder}/scenarios/t/{name}.yaml", "w", encoding="utf-8") as file:
            json.dump(scenario, file)

    def values(self, name):
        """One value for each parameter, as good as any."""
        return {param["name"]: param["default"] if param.get("default") is not None else OF_TYPE[param["type"]]
                for param in self.faults[name]["params"]}

    def test_all_are_offered_and_documented(self):
        self.assertEqual(len(self.table), 27)
        for name, said in self.table.items():
            with self.subTest(name):
                fault = self.faults[name]
                self.assertEqual({amendment["key"] for amendment in fault["amends"]}, set(said))
                self.assertTrue(fault["doc"].endswith("."))
                self.assertFalse(fault["trigger"])
                for param in fault["params"]:
                    self.assertTrue(param["doc"].endswith("."), param)
                    plain = param["type"] == "bool" or "choices" in param
                    self.assertEqual("unit" in param, not plain, param)

    def test_each_changes_what_it_says(self):
        for number, name in enumerate(self.table):
            self.write(f"f{number}", name, self.values(name))
        done = self.call("run", "t", "--dry-run", "--output", "out")
        self.assertEqual(done.returncode, 0, done.stderr)
        for name, said in self.table.items():
            for key, (operation, text) in said.items():
                with self.subTest(name, key=key):
                    shown = re.search(rf"fault it \({re.escape(name)}\): {re.escape(key)} (.+) -> (.+)", done.stdout)
                    self.assertIsNotNone(shown, done.stdout)
                    before, after = (json.loads(value) for value in shown.groups())
                    operand = self.values(name)[text[1:]] if text.startswith("$") else number_or_text(text)
                    self.assertEqual(before, self.defaults[key])
                    self.assertEqual(after, before * operand if operation == "scale" else operand)
                    self.assertNotEqual(type(after), str if isinstance(before, (int, float)) else float)

    def test_values_that_would_not_break_anything_are_refused(self):
        for name, param, value in [
                ("recipe.high_lr", "factor", 0.5), ("recipe.high_lr", "factor", -3), ("recipe.low_lr", "factor", 1.5),
                ("recipe.low_lr", "factor", -0.5), ("recipe.high_logit_scale", "factor", 0.5),
                ("recipe.high_weight_decay", "value", -0.5), ("recipe.high_label_smoothing", "value", 1.5),
                ("recipe.high_label_smoothing", "value", -0.5), ("recipe.bad_init", "kind", "other"),
                ("recipe.bad_init", "std", -0.5), ("recipe.low_precision_state", "dtype", "fp32"),
                ("recipe.lr_restart", "step", 0), ("recipe.lr_restart", "ratio", -1),
                ("recipe.saturating_activation", "kind", "relu"),
                ("recipe.few_samples", "samples", 0), ("recipe.shifted_domain", "source", -1), ("recipe.fine_tune", "source", -1),
                ("recipe.small_batch", "size", 0), ("recipe.stretched_positions", "factor", 1.5), ("memory.budget", "bytes", 0),
                ("precision.static_loss_scale", "scale", 0.5), ("precision.static_loss_scale", "scale", 1e39)]:
            with self.subTest(name, param=param, value=value):
                self.write("bad", name, {**self.values(name), param: value})
                done = self.call("validate", "t/bad")
                self.assertEqual(done.returncode, 3, done.stdout)
                self.assertIn(f"'{param}'", done.stderr)
        os.remove(self.folder + "/scenarios/t/bad.yaml")

    def test_a_fault_leaves_its_evidence(self):
        self.write("run", "recipe.low_lr", {"factor": 0.001}, recipe={"model.kind": "mlp", "steps": 40},
                   healthy={"learns": "mean(loss[-5:]) < mean(loss[:5])"})
        done = self.call("run", "t/run", "--keep", "all", "--history", "none", "--output", "out")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(self.folder + "/out/t/run/fault/0/launcher.jsonl", encoding="utf-8") as file:
            fired = [record for record in map(json.loads, file) if record.get("event") == "fired"]
        lr = self.defaults["optimizer.lr"]
        self.assertEqual([{key: event[key] for key in ("id", "fault", "key", "before", "after")} for event in fired],
                         [{"id": "it", "fault": "recipe.low_lr", "key": "optimizer.lr", "before": lr, "after": lr * 0.001}])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
