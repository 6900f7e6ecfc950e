#!/usr/bin/env python3
"""What pyproject.toml asks of the package: `ruff check`, `ruff format --check` and `mypy`. They are found in the folder that
TRAINWRECK_PYTHON_CHECKERS names (ci/test.sh makes it), else where python3 and PATH have them. What is not there is skipped.

Usage: checks_test.py [unittest options], in the folder of the package's sources
"""
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, "tests")
import unittest_xml  # pylint: disable=wrong-import-position

PYTHON = os.environ.get("TRAINWRECK_STACKS_PYTHON") or shutil.which("python3")
CHECKERS = os.environ.get("TRAINWRECK_PYTHON_CHECKERS", "")
RUFF = shutil.which("ruff", path=f"{CHECKERS}/bin") or shutil.which("ruff")
PATHS = ":".join(filter(None, (CHECKERS, os.environ.get("TRAINWRECK_STACKS_PACKAGES"))))
# Its types are read, so that what it imports has to be there.
IMPORTED = "numpy, pytest, torch"


def run(*command, folder="."):
    return subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": PATHS}, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)


def lacks(python, modules):
    """Why mypy cannot be run, or has nothing to read; empty: it can."""
    done = run(python, "-c", "import " + modules)
    return done.returncode and f"{python}: {done.stdout.splitlines()[-1]}: ci/test.sh installs it"


needs_ruff = unittest.skipUnless(RUFF, "there is no ruff: ci/test.sh installs it")


class ChecksTest(unittest.TestCase):
    def setUp(self):
        """A copy: in here Bazel has links, and no place for caches."""
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")) + "/python"
        self.addCleanup(shutil.rmtree, os.path.dirname(self.folder))
        shutil.copytree("python", self.folder, ignore=shutil.ignore_patterns("__pycache__", "packed", ".*_cache"))

    def count(self, *patterns):
        return len([path for pattern in patterns for path in glob.glob(f"{self.folder}/{pattern}", recursive=True)])

    def assert_clean(self, done):
        self.assertEqual(done.returncode, 0, done.stdout)

    @needs_ruff
    def test_ruff_check(self):
        self.assert_clean(run(RUFF, "check", folder=self.folder))
        with open(self.folder + "/trainwreck/trace.py", "a", encoding="utf-8") as file:
            file.write("import nothing\n")
        self.assertRegex(run(RUFF, "check", "--output-format=concise", folder=self.folder).stdout, r"trace\.py:\d+:\d+: E402")

    @needs_ruff
    def test_ruff_format(self):
        done = run(RUFF, "format", "--check", folder=self.folder)
        self.assert_clean(done)
        self.assertEqual(int(done.stdout.split()[0]), self.count("trainwreck/**/*.py", "tests/*.py") - self.count("tests/*_test.py"), done.stdout)

    def test_mypy(self):
        if missing := lacks(sys.executable, "mypy") or lacks(PYTHON, IMPORTED):
            self.skipTest(missing)
        done = run(sys.executable, "-m", "mypy", "--python-executable", PYTHON, folder=self.folder)
        self.assert_clean(done)
        self.assertIn(f"no issues found in {self.count('trainwreck/**/*.py')} source files", done.stdout)
        with open(self.folder + "/trainwreck/trace.py", "a", encoding="utf-8") as file:
            file.write("import torch\ntorch.nn.Linear('a', 1)\n")
        self.assertRegex(run(sys.executable, "-m", "mypy", "--python-executable", PYTHON, folder=self.folder).stdout,
                         r'trace\.py:\d+: error: Argument 1 to "Linear" has incompatible type "str"')


if __name__ == "__main__":
    unittest_xml.main(sys.argv[1:])
