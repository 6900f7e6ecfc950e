"""What tests of real training stacks share: the Python that has the stacks, and a project in which `trainwreck` is run.

Of a test's arguments the first two are the harness and the folder of programs and targets that becomes the project.
"""
import functools
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
        done = subprocess.run([TRAINWRECK, *arguments], cwd=self.folder, env=self.environment, text=True, capture_output=True, check=False)
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
