#!/usr/bin/env python3
"""The plugin for pytest: what a test with a mark says of a program that is sound, one that is broken, and requests that are wrong.

Usage: pytest_test.py TRAINWRECK DOCUMENT [unittest options], in the folder of the package's sources. The program is that of DOCUMENT.
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, "tests")
import unittest_xml  # pylint: disable=wrong-import-position

TRAINWRECK, DOCUMENT, SOURCES, SUITE = map(os.path.abspath, (*sys.argv[1:3], "python", "scenarios"))
PYTHON = os.environ.get("TRAINWRECK_STACKS_PYTHON") or shutil.which("python3")
PATHS = ":".join(filter(None, (SOURCES, os.environ.get("TRAINWRECK_STACKS_PACKAGES"))))
HAS_PYTEST = subprocess.run([PYTHON, "-c", "import pytest"], env={**os.environ, "PYTHONPATH": PATHS}, capture_output=True, check=False)

SOUND = """
import pytest

@pytest.mark.trainwreck("nan/rate-too-high")
def test_one(verdicts):
    one, = verdicts
    assert (one["case"], one["verdict"]) == ("nan/rate-too-high", "pass")
    print("the body ran")
"""


def test_of(mark):
    return f"import pytest\n\n@pytest.mark.trainwreck({mark})\ndef test_one(): pass\n"


@unittest.skipIf(HAS_PYTEST.returncode, f"{PYTHON} cannot import pytest: ci/test.sh installs it")
class PytestTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.prefix = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))  # as it is installed
        cls.addClassCleanup(shutil.rmtree, cls.prefix)
        os.mkdir(cls.prefix + "/bin")
        shutil.copy(TRAINWRECK, cls.prefix + "/bin")
        shutil.copytree(SUITE + "/portable", cls.prefix + "/share/trainwreck/scenarios/portable")

    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
        self.addCleanup(shutil.rmtree, self.folder)
        with open(DOCUMENT, encoding="utf-8") as file:
            files = dict(re.findall(r"^```\w+ (\S+)\n(.*?)^```$", file.read(), re.M | re.S))
        for name in ("train.py", "trainwreck.yaml", "scenarios/nan/rate-too-high.yaml"):
            self.write(name, files[name])
        self.environment = {**os.environ, "PYTHONPATH": PATHS, "TRAINWRECK_CACHE": self.folder + "/.cache",
                            "PATH": f"{self.prefix}/bin:{os.environ['PATH']}"}
        for variable in ("TRAINWRECK_TARGET", "TEST_SRCDIR", "RUNFILES_DIR"):
            self.environment.pop(variable, None)

    def write(self, name, text):
        os.makedirs(os.path.dirname(f"{self.folder}/{name}"), exist_ok=True)
        with open(f"{self.folder}/{name}", "w", encoding="utf-8") as file:
            file.write(text)

    def replace(self, name, old, new):
        with open(f"{self.folder}/{name}", encoding="utf-8") as file:
            text = file.read()
        self.assertIn(old, text)
        self.write(name, text.replace(old, new))

    def command(self, *options):
        return [PYTHON, "-m", "pytest", "-p", "trainwreck.pytest_plugin", "-p", "no:cacheprovider", "-rA", "tests", *options]

    def pytest(self, text, *options, says="1 passed", status=0):
        """What pytest says of one test, which lies in a folder below that of trainwreck.yaml."""
        self.write("tests/test_training.py", text)
        done = subprocess.run(self.command(*options), cwd=self.folder, env=self.environment, text=True, capture_output=True, check=False)
        said = done.stdout + done.stderr
        self.assertEqual(done.returncode, status, said)
        self.assertRegex(said, rf"(?m)^=+ {says} in ")
        return said

    def assert_fails(self, text, *words, options=()):
        said = self.pytest(text, *options, says="1 failed", status=1)
        for word in words:
            self.assertIn(word, said)
        return said

    def test_a_sound_program_passes_and_then_the_body_runs(self):
        self.assertIn("the body ran", self.pytest(SOUND))
        self.assert_fails(SOUND + "    assert one['worst_margin'] is None\n", "assert one['worst_margin'] is None")

    def test_a_broken_program_fails_with_a_line_to_paste(self):
        self.replace("train.py", "if 0 < options.clip < size else 1", "if False else 1")
        said = self.assert_fails(SOUND, "FAIL remedy_ineffective nan/rate-too-high: ", "'blows_up' in clip", "    seen     ")
        self.assertNotIn("the body ran", said)
        line = re.findall(r"repeat   (.*/clip/.*)", said)[0]
        done = subprocess.run(["bash", "-c", line], cwd="/", env=self.environment, text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, "nan/rate-too-high/clip/[0-2]: .*\nsame bits in all signals of 60 steps\n")

    def test_what_does_not_apply_is_skipped(self):
        text = test_of('"portable/lr-too-high"')
        said = self.pytest(text, says="1 skipped")
        self.assertIn("SKIPPED", said)
        self.assertIn("portable/lr-too-high: requires:", said)
        self.replace("trainwreck.yaml", "      lr: 0.3\n", "      lr: {default: 0.3, role: learning_rate}\n")
        self.pytest(text)

    def test_options_of_the_mark_and_of_the_command_line(self):
        self.assert_fails(test_of('"nan/rate-too-high", seeds=1'), "INCONCLUSIVE too_few_seeds", "1 seeds were run, the scenario requires 3")
        self.pytest(test_of('"nan/rate-too-high", seeds=1'), "--trainwreck-seeds=3")
        self.assert_fails(test_of('"nan/rate-too-high", target="other"'), "other")
        self.pytest(test_of('"nan/rate-too-high", target="other"'), "--trainwreck-target=line")
        self.assert_fails(test_of('"nan/rate-too-high", set={"lr": 0}'), "control_unhealthy: 'learns' in control")
        self.pytest(test_of('"nan/rate-too-high", set={"lr": 0}'), "--trainwreck-set", "lr=0.3")

    def test_requests_that_are_wrong_fail(self):
        self.assert_fails(test_of('"nan/rate-too-hihg"'), "nan/rate-too-hihg")
        self.assert_fails(test_of(""), 'say which scenario: @pytest.mark.trainwreck("portable/same-seed")')
        self.assert_fails(test_of('"nan/rate-too-high", sed=1'), "mark trainwreck: no sed; there are seeds, set, suite, target")
        self.environment["PATH"] = "/usr/bin:/bin"
        self.assert_fails(SOUND, "and no trainwreck on PATH")

    def test_tests_without_the_mark_are_left_alone(self):
        os.remove(self.folder + "/trainwreck.yaml")
        self.pytest("def test_one(): pass\n", "--strict-markers")

    def test_nothing_outlives_an_interrupted_test(self):
        self.replace("train.py", "for step in range(options.steps):", "import time\ntime.sleep(3600)\nfor step in range(options.steps):")
        self.write("tests/test_training.py", SOUND)
        marker = {"PYTEST_TEST": self.folder}
        running = subprocess.Popen(self.command(), cwd=self.folder, env={**self.environment, **marker}, text=True, stdout=subprocess.PIPE)
        self.wait_for(lambda: self.processes("train.py"))
        running.send_signal(signal.SIGINT)
        said, _ = running.communicate(timeout=60)
        self.assertEqual(running.returncode, 2, said)
        self.wait_for(lambda: not self.processes(""))

    def test_the_page(self):
        environment = {**self.environment, "PYTEST_PLUGINS": "trainwreck.pytest_plugin",
                       "PATH": f"{os.path.dirname(PYTHON)}:{self.environment['PATH']}"}
        done = subprocess.run([sys.executable, "tests/targets_docs_test.py", self.prefix + "/bin/trainwreck", "docs/guide/pytest.md", "3", "2"],
                              env=environment, text=True, capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def wait_for(self, condition):
        end = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.1)

    def processes(self, word):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file, open(f"/proc/{pid}/cmdline", "rb") as words:
                    found += [pid] * (f"PYTEST_TEST={self.folder}".encode() in file.read() and word.encode() in words.read())
            except OSError:
                pass
        return found


if __name__ == "__main__":
    unittest_xml.main(sys.argv[3:])
