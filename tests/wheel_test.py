#!/usr/bin/env python3
"""The wheel: packed from the harness of this build, checked, installed into fresh virtual environments, and used there. Needs
no network. TRAINWRECK_WHEEL_PYTHON names another Python for that environment (bazel test --test_env=...). Besides, it is used
with each Python that it promises to work with, and with a torch: that of TRAINWRECK_STACKS_PYTHON, else Debian's.

Usage: wheel_test.py TRAINWRECK DOCUMENT [unittest options], in the folder of tools/wheel.py's sources
"""
import functools
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import unittest_xml

sys.path.insert(0, "tools")
import wheel  # pylint: disable=wrong-import-position

TRAINWRECK, DOCUMENT = map(os.path.abspath, sys.argv[1:3])
PYTHON = os.environ.get("TRAINWRECK_WHEEL_PYTHON") or sys.executable
BUNDLED = ["libfmt.so.9", "libre2.so.9", "libsimdjson.so.14", "libsqlite3.so.0", "libyaml-cpp.so.0.7"]


def run(*command, **options):
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **options)


def folder_of_pytest():
    """Where packages are that `ci/test.sh` has installed, and pytest among them; empty: nowhere."""
    python = os.environ.get("TRAINWRECK_STACKS_PYTHON") or PYTHON
    found = run(python, "-c", "import os, pytest; print(os.path.dirname(os.path.dirname(pytest.__file__)))",
                env={**os.environ, "PYTHONPATH": os.environ.get("TRAINWRECK_STACKS_PACKAGES", "")})
    return found.stdout.strip() if found.returncode == 0 else ""


MISSING = [f"{PYTHON} cannot import {name}" for name in ("venv", "pip") if run(PYTHON, "-c", "import " + name).returncode != 0]
MISSING += [f"there is no {name}" for name in ("dpkg-query", "ldd", "readelf", "strip") if not shutil.which(name)]


def is_debian_12():
    with open("/etc/os-release", encoding="utf-8") as file:
        return "VERSION_CODENAME=bookworm" in file.read()


@functools.cache
def wheel_of_this_build():
    packed = run(sys.executable, "tools/wheel.py", "pack", TRAINWRECK, tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))
    assert packed.returncode == 0, packed.stdout
    return packed.stdout.strip()


@unittest.skipIf(MISSING, "; ".join(MISSING))
class InstalledTest(unittest.TestCase):
    @classmethod
    def install(cls, python, *options):
        """Installs the wheel into a fresh virtual environment of this Python."""
        cls.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        cls.wheel = wheel_of_this_build()
        cls.bin = cls.folder + "/venv/bin"
        # Without a pip of its own, which would take one more Debian package.
        made = run(python, "-m", "venv", "--without-pip", *options, cls.folder + "/venv")
        assert made.returncode == 0, made.stdout
        # That of another Python may be too old for this one.
        by = python if run(python, "-m", "pip", "--version").returncode == 0 else PYTHON
        # As from elsewhere: what it was packed from is out of reach.
        installed = run(by, "-m", "pip", "--python", cls.bin + "/python3", "install", "--quiet", "--no-index",
                        "--no-deps", "--disable-pip-version-check", cls.wheel, cwd=cls.folder)
        assert installed.returncode == 0, installed.stdout
        cls.package, = glob.glob(cls.folder + "/venv/lib/python3*/site-packages/trainwreck")

    def assert_starts(self):
        expected = run(TRAINWRECK, "--version").stdout
        for command in ([self.bin + "/trainwreck"], [self.bin + "/python3", "-m", "trainwreck"]):
            done = run(*command, "--version", env={}, cwd=self.folder)
            self.assertEqual((done.returncode, done.stdout), (0, expected))
        said = run(self.bin + "/python3", "-c", "import trainwreck; print(trainwreck.__version__)", env={}, cwd=self.folder)
        self.assertEqual(said.stdout, expected.split()[-1] + "\n")

    def assert_verdict(self, folder, verdict, scenario, *options):
        done = run(self.bin + "/trainwreck", "run", *options, cwd=folder, env={"PATH": self.bin})
        self.assertRegex(done.stdout, rf"(?m)^{verdict} .* {scenario}$")
        self.assertEqual(done.returncode, int(verdict != "PASS"), done.stdout)

    def edit(self, path, old, new):
        with open(path, "r+", encoding="utf-8") as file:
            text = file.read()
            self.assertIn(old, text)
            file.seek(0)
            file.write(text.replace(old, new))
            file.truncate()

    def project(self, *names):
        """A folder with the training program of DOCUMENT, its trainwreck.yaml and other files of that page."""
        folder = tempfile.mkdtemp(dir=self.folder)
        with open(DOCUMENT, encoding="utf-8") as file:
            files = dict(re.findall(r"^```\w+ (\S+)\n(.*?)^```$", file.read(), re.M | re.S))
        for name in ("train.py", "trainwreck.yaml", *names):
            os.makedirs(os.path.dirname(f"{folder}/{name}"), exist_ok=True)
            with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
                file.write(files[name])
        return folder


class WheelTest(InstalledTest):
    @classmethod
    def setUpClass(cls):
        cls.install(PYTHON)

    def refusals(self, name=None, leave_out=(), **changed):
        """What `check` says of the wheel with another name, without some files, or with another content of some."""
        other = os.path.join(tempfile.mkdtemp(dir=self.folder), name or os.path.basename(self.wheel))
        with zipfile.ZipFile(self.wheel) as old, zipfile.ZipFile(other, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as new:
            for entry in old.namelist():
                if os.path.basename(entry) not in leave_out:
                    content = old.read(entry)
                    new.writestr(entry, changed.get(os.path.basename(entry), lambda text: text)(content.decode("latin-1")).encode("latin-1"))
        done = run(sys.executable, "tools/wheel.py", "check", other)
        self.assertEqual(done.returncode, 1, done.stdout)
        return [line.removeprefix(other + ": ") for line in done.stdout.splitlines()]

    def test_its_name_says_version_and_platform(self):
        version = run(TRAINWRECK, "--version").stdout.split()[-1]
        name = re.fullmatch(r"trainwreck-(.*)-py3-none-manylinux_2_(\d+)_x86_64.whl", os.path.basename(self.wheel))
        self.assertEqual(name[1], version)
        print(f"{os.path.basename(self.wheel)}: {os.path.getsize(self.wheel)} bytes")
        if is_debian_12():
            # That of RHEL 9: no function may be called that only a newer C library has.
            self.assertEqual(name[2], "34")

    def test_libraries_that_are_left_out_are_found(self):
        def without_libraries(record):
            lines = record.splitlines(keepends=True)
            return "".join(line for line in lines if not line.startswith("trainwreck/lib/") or any(os.path.basename(one) in line for one in wheel.LOADED))

        expected = [f"trainwreck needs {name}, which is neither in the wheel nor on every Linux" for name in BUNDLED]
        self.assertEqual(sorted(self.refusals(leave_out=BUNDLED, RECORD=without_libraries)), expected)

    def test_a_tag_that_promises_too_much_is_found(self):
        name = re.sub(r"manylinux_2_\d+", "manylinux_2_28", os.path.basename(self.wheel))
        said = "\n".join(self.refusals(name=name, WHEEL=lambda text: re.sub(r"manylinux_2_\d+", "manylinux_2_28", text)))
        self.assertRegex(said, r"(?m)^trainwreck needs a system with glibc 2\.\d+, the tag says 2\.28$")

    def test_files_that_are_not_those_of_the_record_are_found(self):
        said = "\n".join(self.refusals(leave_out=["py.typed"], WHEEL=lambda text: text.replace("Tag: py3", "Tag: py2")))
        self.assertRegex(said, r"RECORD does not fit the file of trainwreck/py\.typed")
        self.assertRegex(said, r"RECORD does not fit the file of trainwreck-.*/WHEEL")
        self.assertIn("the tag of its name is not that of WHEEL", said)

    def test_it_brings_the_licences_and_the_sources(self):
        with zipfile.ZipFile(self.wheel) as file:
            names = file.namelist()
        self.assertEqual(sum("/licenses/" in name for name in names), len(BUNDLED) + 3, names)
        self.assertLessEqual(set(dict(wheel.sources_of("."))), set(names))
        self.assertIn("trainwreck/py.typed", names)

    def test_its_scenarios_run_on_a_program_that_says_which_key_is_its_rate(self):
        folder = self.project("scenarios/nan/rate-too-high.yaml")
        suite = [self.bin + "/trainwreck", "run", "--suite", "portable/lr-too-*"]
        done = run(*suite, cwd=folder, env={"PATH": self.bin})
        self.assertRegex(done.stdout, r"(?m)^# 2 cases need a recipe key with the role 'learning_rate'")
        self.edit(folder + "/trainwreck.yaml", "      lr: 0.3\n", "      lr: {default: 0.3, role: learning_rate}\n")
        done = run(*suite, cwd=folder, env={"PATH": self.bin})
        for name in ("lr-too-high", "lr-too-low"):
            self.assertRegex(done.stdout, rf"(?m)^PASS .* portable/{name}$")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_pytest_finds_its_plugin(self):
        packages = folder_of_pytest()
        if not packages:
            self.skipTest("there is no pytest: ci/test.sh installs it")
        said = run(self.bin + "/python3", "-m", "pytest", "--markers", cwd=self.folder, env={"PYTHONPATH": packages}).stdout
        self.assertIn("@pytest.mark.trainwreck(*names, target=None, seeds=None, set={}, suite=None): runs", said)
        folder = self.project("scenarios/nan/rate-too-high.yaml")
        with open(folder + "/test_one.py", "w", encoding="utf-8") as file:
            file.write("import pytest\n\n@pytest.mark.trainwreck('nan/rate-too-high')\ndef test_one(verdicts):\n    assert verdicts\n")
        done = run(self.bin + "/python3", "-m", "pytest", cwd=folder, env={"PYTHONPATH": packages, "PATH": self.bin})
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_its_libraries_are_used(self):
        for elsewhere in ("", "/usr/lib/x86_64-linux-gnu"):
            loaded = run(self.package + "/bin/trainwreck", env={"LD_TRACE_LOADED_OBJECTS": "1", "LD_LIBRARY_PATH": elsewhere})
            found = dict(re.findall(r"(\S+) => (\S+)", loaded.stdout))
            for name in BUNDLED:
                self.assertEqual(os.path.realpath(found[name]), os.path.realpath(f"{self.package}/lib/trainwreck/{name}"))

    def test_it_starts_in_an_empty_environment(self):
        self.assert_starts()

    def test_the_first_scenario_passes_and_fails(self):
        folder = self.project("scenarios/nan/rate-too-high.yaml")
        self.assert_verdict(folder, "PASS", "nan/rate-too-high")
        self.edit(folder + "/train.py", "if 0 < options.clip < size else 1", "if False and options.clip < 0 else 1")
        self.assert_verdict(folder, "FAIL", "nan/rate-too-high")

    def test_the_process_is_that_of_the_program(self):
        """What it ignores and its environment are as without Python before it; so is its end."""
        folder = tempfile.mkdtemp(dir=self.folder)
        shutil.copytree(self.package, folder + "/trainwreck", ignore=shutil.ignore_patterns("bin", "lib"))
        os.mkdir(folder + "/trainwreck/bin")
        program = folder + "/trainwreck/bin/trainwreck"
        by_python = [self.bin + "/python3", "-m", "trainwreck"]
        self.assertEqual(run(*by_python, cwd=folder).returncode, 7, "no program is no verdict")
        with open(program, "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\ncase "$1" in look) grep SigIgn /proc/$$/status; env | sort ;; *) kill -TERM $$ ;; esac\n')
        os.chmod(program, 0o755)
        for environment in ({"PATH": "/bin:/usr/bin"}, {"PATH": "/bin:/usr/bin", "LC_CTYPE": "C"}):
            expected = run(program, "look", cwd=folder, env=environment).stdout
            self.assertIn("SigIgn:", expected)
            self.assertEqual(run(*by_python, "look", cwd=folder, env=environment).stdout, expected)
        self.assertEqual(run(*by_python, "die", cwd=folder).returncode, -15)


PROMISED = re.search(r"Requires-Python: >=3\.(\d+)", dict(wheel.texts_of("0", "none"))["METADATA"])


def interpreter_of(name):
    """One that is on PATH, else one of pyenv's, whose commands on PATH start none but those that are selected."""
    for python in (shutil.which(name), *sorted(glob.glob(os.path.expanduser(f"~/.pyenv/versions/{name[6:]}.*/bin/python")))):
        if python and run(python, "-c", "import venv").returncode == 0:
            return python
    return None


class InterpretersTest(InstalledTest):
    """Each Python that the wheel promises to work with, as far as they are here."""

    def check(self, name):
        python = interpreter_of(name)
        if not python:
            self.skipTest(f"there is no {name} with venv, on PATH or in ~/.pyenv/versions")
        self.install(python)
        self.assertIn(f"/{name}/", self.package)
        self.assert_starts()
        # Those that import torch, too, which is not here.
        compiled = run(self.bin + "/python3", "-W", "error", "-m", "compileall", "-q", self.package)
        self.assertEqual((compiled.returncode, compiled.stdout), (0, ""))
        imported = run(self.bin + "/python3", "-W", "error", "-c", "import trainwreck.export, trainwreck.trace", cwd=self.folder)
        self.assertEqual((imported.returncode, imported.stdout), (0, ""))
        self.assert_verdict(self.project("scenarios/nan/rate-too-high.yaml"), "PASS", "nan/rate-too-high")


for minor in range(int(PROMISED[1]), 14):
    setattr(InterpretersTest, f"test_python3_{minor:02}", lambda self, name=f"python3.{minor}": self.check(name))


# Nothing in it is of trainwreck.
TRAINING = """
import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int)
parser.add_argument("--lr", type=float)
parser.add_argument("--seed", type=int)
options = parser.parse_args()
torch.manual_seed(options.seed)
inputs = torch.randn(256, 8)
data = torch.utils.data.TensorDataset(inputs, inputs.sum(1, keepdim=True))
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
step = 0
while step < options.steps:
    for batch, target in loader:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(batch), target).backward()
        optimizer.step()
        step += 1
        if step == options.steps:
            break
"""
TORCH_PYTHON = os.environ.get("TRAINWRECK_STACKS_PYTHON") or "/usr/bin/python3"
TORCH = run(TORCH_PYTHON, "-c", "import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))")


@unittest.skipIf(TORCH.returncode, f"{TORCH_PYTHON} cannot import torch: ci/test.sh installs Debian's")
class TorchTest(InstalledTest):
    """What a person does first: pip install, init, run; with a torch that was there before."""

    @classmethod
    def setUpClass(cls):
        cls.install(TORCH_PYTHON, "--system-site-packages")
        # Where that Python is a virtual environment itself, its packages are not those of the system.
        with open(os.path.dirname(cls.package) + "/torch_is_there.pth", "w", encoding="utf-8") as file:
            file.write(TORCH.stdout)

    def test_a_program_as_it_is(self):
        folder = tempfile.mkdtemp(dir=self.folder)
        with open(folder + "/train.py", "w", encoding="utf-8") as file:
            file.write(TRAINING)
        training = ["python", "train.py", "--steps", "40", "--lr", "0.02", "--seed", "0"]
        done = run(self.bin + "/trainwreck", "init", "--", *training, cwd=folder, env={"PATH": self.bin})
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("  optimizer: Adam, 4 tensors in 1 group\n", done.stdout)
        with open(folder + "/trainwreck.yaml", encoding="utf-8") as file:
            self.assertIn("\n    adapter: python\n", file.read())
        scenario = ["--suite", "portable/nan-gradient"]
        self.assert_verdict(folder, "PASS", scenario[-1], *scenario)
        # Now the program leaves out updates that are not finite, which the scenario says it does not.
        self.edit(folder + "/train.py", "        optimizer.step()\n", """
        if all(p.grad.isfinite().all() for p in model.parameters()):
            optimizer.step()
""")
        self.assert_verdict(folder, "FAIL", scenario[-1], *scenario)


if __name__ == "__main__":
    unittest_xml.main(sys.argv[3:])
