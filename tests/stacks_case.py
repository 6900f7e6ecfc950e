"""What tests of real training stacks share: the Python that has the stacks, and a project in which `trainwreck` is run.

Of a test's arguments the first two are the harness and the folder of programs and targets that becomes the project.
"""
import functools
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from processes import processes_with, torchrun_settings

TRAINWRECK, FOLDER = map(os.path.abspath, sys.argv[1:3])
SUITE, PACKAGE = map(os.path.abspath, ("scenarios", "python/packed/trainwreck"))
PYTHON = os.environ.get("TRAINWRECK_STACKS_PYTHON") or shutil.which("python3")
HINT = "ci/test.sh --with-python-stacks installs it"
takes_long = unittest.skipUnless("TRAINWRECK_STACKS_PYTHON" in os.environ, "it takes long: ci/test.sh --with-python-stacks runs it")


@functools.cache
def can_import(module):
    return subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0


def needs(*modules, program=None):
    missing = [f"{PYTHON} cannot import {module}" for module in modules if not can_import(module)]
    if program and not shutil.which(program):
        missing.append(f"there is no {program}")
    return unittest.skipIf(missing, f"{', '.join(missing)}: {HINT}")


def block_of(page, name="train.py"):
    """A file that a page of docs/guide holds: its program or its targets."""
    with open(f"docs/guide/{page}.md", encoding="utf-8") as file:
        return re.search(rf"```\w+ {name}\n(.*?)```", file.read(), re.DOTALL)[1]


class StacksCase(unittest.TestCase):
    enter = ()  # the machine where the harness is to run

    def setUp(self):
        self.folder = os.path.join(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")), "project")
        shutil.copytree(FOLDER, self.folder)
        self.suite = os.path.join(os.path.dirname(self.folder), "suite")
        shutil.copytree(SUITE + "/portable", self.suite + "/portable")
        self.replace("../suite/portable/defaults.yaml", "seeds: 3", "seeds: 2")  # for time's sake
        self.marker = f"STACKS_TEST={os.getpid()}.{self.id()}"
        name, value = self.marker.split("=")
        self.environment = {**os.environ, **torchrun_settings(PYTHON), "TRAINWRECK_CACHE": self.folder + "/.cache", name: value,
                            "PATH": os.path.dirname(PYTHON) + ":" + os.environ["PATH"]}
        for variable in ("PYTHONPATH", "TRAINWRECK_TARGET", "TEST_SRCDIR", "RUNFILES_DIR"):
            self.environment.pop(variable, None)

    def assert_nothing_is_left(self):
        self.assertEqual(processes_with(self.marker), [])

    def run_scenario(self, scenario, target, status=0, suite=False):
        suite = ["--suite", "--scenarios-root", self.suite] if suite else []
        return self.trainwreck("run", scenario, "--target", target, "--keep", "all", "--output", "out", *suite, status=status)

    def trainwreck(self, *arguments, status=0):
        done = subprocess.run([*self.enter, TRAINWRECK, *arguments], cwd=self.folder, env=self.environment, text=True, capture_output=True,
                              check=False)
        if status is not None:
            self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assert_nothing_is_left()
        return done

    def replace(self, file, old, new):
        with open(f"{self.folder}/{file}", encoding="utf-8") as opened:
            text = opened.read()
        self.assertIn(old, text)
        with open(f"{self.folder}/{file}", "w", encoding="utf-8") as opened:
            opened.write(text.replace(old, new))

    def assert_second_rank_was_killed(self, case):
        with open(f"{self.folder}/out/{case}/fault/0/rank0.jsonl", encoding="utf-8") as file:
            fired, = [record for record in map(json.loads, file) if record.get("event") == "fired"]
        self.assertEqual((fired["rank"], fired["signal"]), (1, 9))

    # One rank fails, and writes down when. Returns the run's detail, and each event of ranks and of the launcher with the seconds since.
    def fail_rank(self, target, how, rank=1, ranks=2, stall_s=60):
        name = f"{target}-{how}"
        with open(f"{self.folder}/scenarios/rate/{name}.yaml", "w", encoding="utf-8") as file:
            file.write(f"apiVersion: trainwreck/v1\nkind: Scenario\nname: rate/{name}\ntitle: One rank fails\nseeds: 1\n"
                       f"recipe: {{rank: {rank}, parallel.ranks: {ranks}}}\n"
                       f"inject: {{fails: {{fault: recipe.set_how, with: {{value: {how}}}}}}}\n"
                       "healthy: {completes: 'ended(rank=0, why=completed)'}\n"
                       "symptoms: {fails: 'not ended(rank=0, why=completed)'}\nno_remedy: it is not what is tested here\n"
                       f"budget: {{seconds: 240, stall_seconds: {stall_s}}}\n")
        done = self.trainwreck("run", f"rate/{name}", "--no-preflight", "--target", target, "--keep", "all", "--output", "out/" + name,
                               status=None)
        folder = f"{self.folder}/out/{name}/rate/{name}/fault/0"
        self.assertTrue(os.path.exists(folder + "/failed_at"), done.stdout + done.stderr)
        with open(folder + "/failed_at", encoding="utf-8") as file:
            failed_at = float(file.read())
        events = []
        # Times count from when the rank's watcher, or the launcher, began: it wrote these files then.
        for trace, first in (("rank0.jsonl", "environment.*.json"), ("launcher.jsonl", "plan.*.json")):
            begin = os.stat(glob.glob(f"{folder}/{first}")[0]).st_mtime
            with open(f"{folder}/{trace}", encoding="utf-8") as file:
                events += [{**record, "after_s": begin + record["time"] - failed_at} for record in map(json.loads, file)
                           if record["t"] == "event"]
        with open(folder + "/run.json", encoding="utf-8") as file:
            run = json.load(file)
        print(f"\n{name}: " + ", ".join(f"{e['event']} rank {e.get('lagging_rank', e.get('rank'))} {e['after_s']:.2f} s" for e in events),
              file=sys.stderr)
        return run.get("result", run)["detail"], events

    # How soon it was told of, and what the run ends with. Ranks that ended between two looks are told of in no order.
    def assert_named(self, target, how, detail, event="exited", rank=1, ranks=2):
        said, events = self.fail_rank(target, how, rank, ranks)
        self.assertIn(detail, said)
        self.assertLess(min(e["after_s"] for e in events if e["event"] == event and e["rank"] == rank), 5)
        for failed in (e for e in events if e["event"] == "rank_failed"):
            self.assertEqual(failed["rank"], rank)

    def assert_all_ways_are_named(self, target):
        for how, detail in (("sigkill", "rank 1 was killed by SIGKILL"), ("sigsegv", "rank 1 was killed by SIGSEGV"), ("exit", "rank 1 exited with code 1")):
            with self.subTest(how):
                self.assert_named(target, how, detail)
        with self.subTest("sigstop"):
            self.assert_named(target, "sigstop", "rank 1 is stopped", event="stopped")
