#!/usr/bin/env python3
"""HACKING.md is true: every label and file that it names exists, and its cheap commands run. The files of ARCHITECTURE.md
exist, too.

Usage: hacking_test.py CHECKOUT TRAINWRECK TRAINER
"""
import glob
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

import unittest_xml

ROOT, TRAINWRECK, TRAINER = map(os.path.abspath, sys.argv[1:4])


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


PAGE = read("HACKING.md")
DESIGN = read("ARCHITECTURE.md")
COMMANDS = re.findall(r"^\$ (.*)$", "\n".join(re.findall(r"^```console\n(.*?)^```$", PAGE, re.M | re.S)), re.M)


def label_exists(label):
    package, name = label.removeprefix("//").split(":")
    if not os.path.exists(os.path.join(ROOT, package, "BUILD")):
        return False
    if name == "all" or f'name = "{name}"' in read(package + "/BUILD"):
        return True
    # Made from what lies there.
    if package == "scenarios":
        return os.path.exists(os.path.join(ROOT, package, name + ".yaml"))
    site = re.fullmatch(r"(\w+)_faults(_test)?", name)
    return package == "injectors" and site is not None and os.path.isdir(os.path.join(ROOT, package, site[1]))


def path_exists(path):
    return os.path.exists(os.path.join(ROOT, path.rstrip("/")))


# By what is added: the test that adds one, or the folder of one that is built as somebody else's.
ADDED_BY_TEST = {"signal": "//trainer:adding_a_signal_test", "detector": "//harness/formula:adding_a_detector_test",
                 "verb": "//harness/cli/tests:adding_a_verb_test", "report": "//harness/report:adding_a_report_test"}
ADDED_IN_FOLDER = {"fault": "examples/out_of_tree/faults", "model": "examples/out_of_tree/models",
                   "recipe fault": "tests/stacks/scenarios/faults"}


def rule(package, name):
    """The text of a rule, and its sources."""
    text = re.search(rf'^\w+\(\n    name = "{name}",\n.*?^\)$', read(package + "/BUILD"), re.M | re.S).group()
    return text, re.findall(r'"(.*?)"', re.search(r"srcs = \[(.*?)\]", text, re.S).group(1))


def files_touched(label):
    """By a test that adds something: new files, and those of which a changed copy is compiled."""
    package, name = label.removeprefix("//").split(":")
    touched = []
    for source in rule(package, name)[1]:
        if source.startswith(":"):
            touched += rule(package, source[1:])[1]
        elif not source.endswith("_test.cc"):
            touched.append(source)
    return touched


class Hacking(unittest.TestCase):
    def test_what_is_added_is_one_file_or_one_row(self):
        for kind, label in ADDED_BY_TEST.items():
            self.assertIn(label, PAGE)
            self.assertEqual(len(files_touched(label)), 1, f"{kind}: {files_touched(label)}")
        for kind, folder in ADDED_IN_FOLDER.items():
            for path in os.listdir(os.path.join(ROOT, folder)):
                if path.endswith("_test.cc"):
                    continue
                with self.subTest(kind=kind, path=path):
                    text = read(folder + "/" + path)
                    made = {"fault": r"^REGISTER_FAULT\(", "model": r"^REGISTER_MODEL\(", "recipe fault": r"^kind: Fault$"}[kind]
                    self.assertRegex(text, re.compile(made, re.M), "all of it stands in one file")

    def test_every_command_stands_in_a_block(self):
        self.assertGreater(len(COMMANDS), 20)
        self.assertEqual(re.findall(r"^(?:    )?\$ .*$", re.sub(r"```console.*?```", "", PAGE, flags=re.S), re.M), [])

    def test_every_label_exists(self):
        labels = set(re.findall(r"//[\w/]*:[\w./-]+", PAGE))
        self.assertGreater(len(labels), 10)
        self.assertEqual([label for label in sorted(labels) if not label_exists(label)], [])
        self.assertFalse(label_exists("//trainer:no_such_test") or label_exists("//scenarios:nan/no-such"))

    def test_every_configuration_exists(self):
        names = set(re.findall(r"--config=(\w+)", PAGE))
        self.assertEqual([name for name in sorted(names) if f"build:{name} " not in read(".bazelrc")], [])

    def test_every_file_exists(self):
        # In links, in backticks, and in commands.
        text = re.sub(r"```.*?```", "", PAGE + DESIGN, flags=re.S)
        named = set(re.findall(r"\]\(([^)#]+)\)", text))
        words = [word for quoted in re.findall(r"`([^`]+)`", text) for word in quoted.split()]
        for command in COMMANDS:
            words += shlex.split(command)
        # A file without its folder is as good as none to a reader.
        named.update(word for word in words if re.fullmatch(r"[\w-]+\.(cc|h|py|sh|bzl)", word))
        named.update(word for word in words
                     if re.fullmatch(r"(ci|docs|faults|harness|injectors|scenarios|tests|tools|trainer)/[\w./-]+", word))
        self.assertGreater(len(named), 20)
        self.assertEqual([path for path in sorted(named) if not path_exists(path)], [])

    def test_the_form_is_checked_as_it_says(self):
        self.assertIn("python3 ci/style_check.py .", COMMANDS)
        done = subprocess.run(["python3", "ci/style_check.py", "."], cwd=ROOT, text=True,
                              capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_commands_of_trainwreck_run(self):
        commands = [command for command in COMMANDS if command.startswith("trainwreck ")]
        self.assertLessEqual({"list", "validate", "explain", "run", "rerun", "new"},
                             {command.split()[1] for command in commands})
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
            # As much of a checkout as they read, so that what they write does not come into ours.
            os.mkdir(folder + "/injectors")
            shutil.copy(ROOT + "/injectors/injector.h", folder + "/injectors")
            for path in glob.glob("scenarios/**/*.yaml", root_dir=ROOT, recursive=True):
                os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
                shutil.copy(os.path.join(ROOT, path), os.path.join(folder, path))
            environment = {**os.environ, "TRAINWRECK_CACHE": folder + "/.cache", "TRAINWRECK_TARGET": TRAINER,
                           "PATH": os.path.dirname(TRAINWRECK) + ":" + os.environ["PATH"]}
            for name in ("TEST_SRCDIR", "RUNFILES_DIR"):
                environment.pop(name, None)
            for command in commands:
                with self.subTest(command):
                    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, text=True,
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
                    self.assertEqual(done.returncode, 0, done.stdout)
            for path in ("injectors/data/swapped_labels.cc", "injectors/data/swapped_labels_test.cc",
                         "scenarios/not-learning/swapped-labels.yaml"):
                self.assertTrue(os.path.exists(os.path.join(folder, path)), path)
            with open(folder + "/scenarios/targets.bzl", encoding="utf-8") as file:
                self.assertIn("not-learning/swapped-labels", file.read())


if __name__ == "__main__":
    unittest_xml.main(sys.argv[4:])
