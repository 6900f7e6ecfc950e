#!/usr/bin/env python3
"""`trainwreck export`: what the reader of each format finds is what the stored traces say.

Usage: export_test.py TRAINWRECK TARGET [unittest options], in the folder of the package's sources. The clients are imported by the Python
that TRAINWRECK_STACKS_PYTHON names, else by python3; what is not there is skipped.
"""
import csv
import functools
import glob
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, "tests")
import unittest_xml  # pylint: disable=wrong-import-position

TRAINWRECK, TARGET = map(os.path.abspath, sys.argv[1:3])
PYTHON = os.environ.get("TRAINWRECK_STACKS_PYTHON") or shutil.which("python3")
SCENARIO = """
apiVersion: trainwreck/v1
kind: Scenario
name: fake/slow
title: A "slow" descent, <b>told</b>
recipe: {steps: 20, optimizer.lr: 0.2}
inject:
  slow: {fault: fake.slow_descent, with: {factor: 0.01}}
symptoms:
  stuck: at_end loss > 1
remedies:
  quick: {scale: {optimizer.lr: 50}}
seeds: 2
"""
RUNS = [f"fake/slow/{arm}/{seed}" for arm in ("control", "fault", "quick") for seed in (0, 1)]
MODULES = ["block.0", 'odd, "name"']


@functools.cache
def lacks(*modules):
    done = subprocess.run([PYTHON, "-c", "import " + ", ".join(modules)], capture_output=True, text=True, check=False)
    return done.returncode and done.stderr.splitlines()[-1]


def needs(*modules):
    return unittest.skipIf(lacks(*modules), f"{PYTHON}: {lacks(*modules)}: ci/test.sh --with-python-stacks installs it")


def same(a, b):
    """Equal numbers, of which two NaN are a pair."""
    return a == b or (math.isnan(a) and math.isnan(b))


class ExportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.environment = {**os.environ, "TRAINWRECK_TARGET": TARGET, "TRAINWRECK_CACHE": cls.folder + "/cache", "HOME": cls.folder}
        os.makedirs(cls.folder + "/scenarios/fake")
        with open(cls.folder + "/scenarios/fake/slow.yaml", "w", encoding="utf-8") as file:
            file.write(SCENARIO)
        cls.call("run", "--keep", "all", "--full", "--history", "none", "--output", "out")
        for run in RUNS:
            cls.add_signals(f"{cls.folder}/out/{run}/rank0.jsonl")
        cls.truth = {key: value for run in RUNS for key, value in cls.signals_of(run).items()}
        assert len(cls.truth) == len(RUNS) * 20 * 5

    @classmethod
    def call(cls, *arguments, status=0):
        done = subprocess.run([TRAINWRECK, *arguments], cwd=cls.folder, env=cls.environment, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stdout + done.stderr
        return done

    @staticmethod
    def add_signals(path):
        """Of modules, and one that is not finite."""
        with open(path, encoding="utf-8") as file:
            records = list(map(json.loads, file))
        for record in records:
            if record["t"] == "step":
                step = record["step"]
                record["odd"] = ["nan", "inf", "-inf", 1e300, 5e-324, 0.1][step % 6]
                for index, module in enumerate(MODULES):
                    record[f"update_norm{{{module}}}"] = 0.1 * step + index
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)

    @classmethod
    def signals_of(cls, run):
        """(run, step, module, signal) -> value, from the trace itself."""
        found = {}
        with open(f"{cls.folder}/out/{run}/rank0.jsonl", encoding="utf-8") as file:
            for record in map(json.loads, file):
                for key, value in record.items():
                    if record["t"] == "step" and key not in ("t", "step"):
                        signal, _, module = key.partition("{")
                        found[run, record["step"], module.removesuffix("}"), signal] = float(value)
        return found

    def export(self, to, *options, status=0):
        place = f"{self.folder}/{self.id()}-{to}"
        return place, self.call("export", "out", "--to", to, "--output", place, "--python", PYTHON, *options, status=status)

    def read(self, script, *arguments):
        """What a script prints as JSON, with the Python of the clients."""
        done = subprocess.run([PYTHON, "-c", script, *arguments], env=self.environment, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def assert_is_truth(self, found, rounded=float):
        self.assertEqual(found.keys(), self.truth.keys())
        wrong = {key: (found[key], value) for key, value in self.truth.items() if not same(found[key], rounded(value))}
        self.assertEqual(wrong, {})

    def rows(self, path):
        with open(path, encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file, strict=True))

    def test_csv(self):
        place, said = self.export("csv")
        self.assertEqual(said.stdout, f"wrote 6 runs to {place}\n")
        rows = self.rows(place + "/signals.csv")
        self.assertEqual(list(rows[0]), ["run", "case", "arm", "seed", "rank", "step", "module", "signal", "value"])
        self.assert_is_truth({(r["run"], int(r["step"]), r["module"], r["signal"]): float(r["value"]) for r in rows})
        self.assertEqual({(r["case"], r["arm"], r["seed"], r["rank"]) for r in rows if r["run"] == RUNS[3]}, {("fake/slow", "fault", "1", "0")})
        fired, = [row for row in self.rows(place + "/events.csv") if row["event"] == "fired" and row["run"] == RUNS[2]]
        self.assertEqual(json.loads(fired["fields"])["id"], "slow")
        runs = {row["run"]: row for row in self.rows(place + "/runs.csv")}
        self.assertEqual(list(runs), RUNS)
        self.assertEqual((runs[RUNS[4]]["kind"], runs[RUNS[4]]["end"], runs[RUNS[4]]["verdict"]), ("remedy", "completed", "pass"))
        self.assertEqual(json.loads(runs[RUNS[4]]["recipe"])["optimizer.lr"], 0.1)
        self.assertEqual(json.loads(runs[RUNS[0]]["recipe"])["optimizer.lr"], 0.2)

    def test_a_part_of_the_runs_and_signals(self):
        place = self.folder + "/part"
        self.call("export", "out/fake/slow/fault", "--output", place, "--signal", "upd*", "--signal", "odd")
        rows = self.rows(place + "/signals.csv")
        self.assertEqual({(row["run"], row["signal"]) for row in rows}, {(run, s) for run in RUNS[2:4] for s in ("odd", "update_norm")})

    def test_any_folder_with_a_trace(self):
        os.makedirs(self.folder + "/foreign/here", exist_ok=True)
        shutil.copy(f"{self.folder}/out/{RUNS[0]}/rank0.jsonl", self.folder + "/foreign/here")
        self.call("export", "foreign", "--output", self.folder + "/foreign-csv")
        self.assertEqual(self.rows(self.folder + "/foreign-csv/runs.csv")[0]["run"], "here")
        self.assertEqual(len(self.rows(self.folder + "/foreign-csv/signals.csv")), 100)

    def test_json(self):
        place, _ = self.export("json")
        with open(place, encoding="utf-8") as file:
            lines = list(map(json.loads, file))
        found, run = {}, None
        for line in lines:
            run = line.get("run", run)
            for step, value in zip(line.get("steps", []) if "signal" in line else [], line.get("values", [])):
                found[run, step, line["module"], line["signal"]] = float(value)
        self.assert_is_truth(found)
        self.assertEqual(lines[-1], {"end": 6})

    def test_what_is_wrong_is_said(self):
        self.assertIn("holds no runs", self.call("export", "scenarios", "--output", "x", status=2).stderr)
        self.assertIn("no folder 'nowhere'", self.call("export", "nowhere", "--output", "x", status=2).stderr)
        self.assertIn("--to", self.call("export", "out", "--output", "x", "--to", "excel", status=2).stderr)
        said = self.call("export", "out", "--to", "parquet", "--output", "x", "--python", "/no/python", status=3).stderr
        self.assertIn("'/no/python' cannot be started: name another with --python", said)

    def test_a_package_that_is_missing_is_named(self):
        bare = self.folder + "/bare"
        subprocess.run([PYTHON, "-m", "venv", "--without-pip", bare], check=True)
        for to, package in (("parquet", "pyarrow"), ("tensorboard", "torch"), ("mlflow", "mlflow"), ("wandb", "wandb")):
            said = self.call("export", "out", "--to", to, "--output", "x", "--python", bare + "/bin/python", status=3).stderr
            self.assertIn(f"this needs the package {package}, ", said)
            self.assertTrue(said.endswith(f"/bin/python -m pip install {package}\n"), said)
        self.assertFalse(os.path.exists(self.folder + "/x"))

    @needs("pyarrow")
    def test_parquet(self):
        place, said = self.export("parquet")
        self.assertEqual(said.stdout, f"wrote 6 runs to {place}\n")
        script = ("import json, sys, pyarrow.parquet as pq\n"
                  "print(json.dumps([pq.read_table(sys.argv[1] + name).to_pylist() for name in ('/signals.parquet', '/runs.parquet', '/events.parquet')]))")
        signals, runs, events = self.read(script, place)
        self.assert_is_truth({(r["run"], r["step"], r["module"], r["signal"]): r["value"] for r in signals})
        self.assertEqual([(run["run"], run["verdict"]) for run in runs], [(run, "pass") for run in RUNS])
        self.assertEqual({event["event"] for event in events if event["arm"] == "fault"} >= {"fired"}, True)

    @needs("torch", "tensorboard")
    def test_tensorboard(self):
        place, said = self.export("tensorboard")
        self.assertEqual(said.stdout, f"wrote 6 runs to {place}\n")
        script = """
import glob, json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
runs = {}
for name in sys.argv[2:]:
    board = EventAccumulator(sys.argv[1] + "/" + name, size_guidance={"scalars": 0, "histograms": 0, "tensors": 0})
    board.Reload()
    start = HParamsPluginData.FromString(board.summary_metadata["_hparams_/session_start_info"].plugin_data.content)
    runs[name] = {
        "scalars": {tag: [[e.step, e.value] for e in board.Scalars(tag)] for tag in board.Tags()["scalars"]},
        "histograms": {tag: [[e.step, e.histogram_value.num, e.histogram_value.min, e.histogram_value.max]
                             for e in board.Histograms(tag)] for tag in board.Tags()["histograms"]},
        "texts": {tag: board.Tensors(tag)[0].tensor_proto.string_val[0].decode() for tag in board.Tags()["tensors"]},
        "options": {key: value.number_value or value.string_value for key, value in start.session_start_info.hparams.items()}}
print(json.dumps(runs))
"""
        runs = self.read(script, place, *RUNS)
        found = {}
        for name, run in runs.items():
            for tag, points in run["scalars"].items():
                signal, _, module = tag.partition("/")
                found.update({(name, step, module, signal): value for step, value in points})
        self.assert_is_truth(found, rounded=single)
        # Modules 0 and 1 have 0.1 * step and 1 more than that.
        self.assertEqual(len(runs[RUNS[0]]["histograms"]["update_norm/over modules"]), 20)
        step, count, least, most = runs[RUNS[0]]["histograms"]["update_norm/over modules"][10]
        self.assertEqual([step, count, least, most], [10, 2, 1, 2])
        self.assertTrue(runs[RUNS[0]]["texts"]["verdict/text_summary"].startswith("**PASS** fake/slow: A \"slow\" descent, &lt;b&gt;told"))
        self.assertIn("fired", runs[RUNS[2]]["texts"]["events/text_summary"])
        options = runs[RUNS[4]]["options"]
        self.assertEqual((options["optimizer.lr"], options["arm"], options["case"]), (0.1, "quick", "fake/slow"))
        _, said = self.export("tensorboard", status=3)
        self.assertIn("is not empty", said.stderr)

    @needs("mlflow", "sqlalchemy", "alembic")
    def test_mlflow(self):
        place, said = self.export("mlflow")
        self.assertTrue(said.stdout.endswith(f"wrote 6 runs to {place}\n"), said.stdout)
        script = """
import json, sys
from mlflow import MlflowClient
client = MlflowClient(tracking_uri=f"sqlite:///{sys.argv[1]}/mlflow.db")
runs = {}
for run in client.search_runs([client.get_experiment_by_name("fake/slow").experiment_id]):
    metrics = {tag: [[m.step, m.value] for m in client.get_metric_history(run.info.run_id, tag)] for tag in run.data.metrics}
    with open(client.download_artifacts(run.info.run_id, "verdict.md")) as file:
        text = file.read()
    runs[run.info.run_name] = [metrics, run.data.params, run.data.tags, run.info.status, text]
print(json.dumps(runs))
"""
        runs = self.read(script, place)
        self.assertEqual(sorted(runs), sorted(RUNS))
        modules = {"": "", "block.0": "block.0", "odd_ _name_": MODULES[1]}
        found = {}
        for name, (metrics, *_) in runs.items():
            for tag, points in metrics.items():
                signal, _, module = tag.partition("/")
                found.update({(name, step, modules[module], signal): value for step, value in points})
        # MLflow's tables have no infinity (it keeps the largest number) and give NaN back as NaN.
        self.assert_is_truth(found, rounded=lambda value: math.copysign(sys.float_info.max, value) if math.isinf(value) else value)
        _, params, tags, status, text = runs[RUNS[4]]
        self.assertEqual((params["optimizer.lr"], params["arm"], tags["verdict"], status), ("0.1", "quick", "pass", "FINISHED"))
        self.assertTrue(text.startswith("**PASS** fake/slow"))

    @needs("wandb")
    def test_wandb(self):
        place, said = self.export("wandb")
        self.assertTrue(said.stdout.endswith(f"wrote 6 runs to {place}\n"), said.stdout)
        listed = subprocess.run([PYTHON, "-m", "wandb", "sync", "--dry-run"], cwd=place, env=self.environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False).stdout
        self.assertEqual(listed.count(".wandb"), 6, listed)
        found = {}
        runs = [self.read(RECORDS_OF_WANDB, path) for path in glob.glob(place + "/wandb/offline-run-*/*.wandb")]
        for run in runs:
            for step, values in run["history"]:
                for tag, value in values.items():
                    signal, _, module = tag.partition("/")
                    if not tag.startswith("_"):
                        found[run["name"], step, module, signal] = float(value)
        self.assert_is_truth(found)
        one, = [run for run in runs if run["name"] == RUNS[4]]
        self.assertEqual((one["group"], one["type"], one["config"]["optimizer.lr"]), ("fake/slow", "quick", 0.1))
        self.assertTrue(one["notes"].startswith("**PASS** fake/slow"))


def single(value):
    """As a number of 32 bits."""
    import ctypes
    return ctypes.c_float(value).value


# wandb reads its files in a program of its own: here its messages are taken out of their frames, blocks of 32 KiB as LevelDB's log has them.
RECORDS_OF_WANDB = """
import json, struct, sys
from wandb.proto.wandb_internal_pb2 import Record
with open(sys.argv[1], "rb") as file:
    data = file.read()
at, parts, out = 7, b"", {"history": [], "config": {}}
while at + 7 <= len(data):
    room = 32768 - at % 32768
    if room < 7:
        at += room
        continue
    _, size, kind = struct.unpack("<IHB", data[at:at + 7])
    parts += data[at + 7:at + 7 + size]
    at += 7 + size
    if kind not in (1, 4):  # whole, or the last part
        continue
    record, parts = Record.FromString(parts), b""
    if record.HasField("run"):
        run = record.run
        out.update(name=run.display_name, group=run.run_group, type=run.job_type, notes=run.notes)
        out["config"].update({item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in run.config.update})
    if record.HasField("history"):
        items = {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
        out["history"].append([record.history.step.num, items])
print(json.dumps(out))
"""


if __name__ == "__main__":
    unittest_xml.main(sys.argv[3:])
