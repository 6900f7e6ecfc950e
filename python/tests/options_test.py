#!/usr/bin/env python3
"""What the hooks tell `trainwreck init` of the options that a program declares by argparse or jsonargparse. No torch is needed.

Usage: options_test.py [unittest options], in the output folder of the package. jsonargparse may be in the folder of packages that
TRAINWRECK_STACKS_PACKAGES names (ci/test.sh makes it). What needs it is skipped without it.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, "tests")
import unittest_xml  # pylint: disable=wrong-import-position

PACKAGES = os.path.abspath("python/packed")
HEAD = f"""
import sys
sys.path.insert(0, {PACKAGES!r})
from trainwreck import options
options.watch()
import argparse, json
parser = argparse.ArgumentParser()
add = parser.add_argument
"""
END = "print(json.dumps(options.told()))\n"
PYTHON = shutil.which("python3")
PATHS = os.environ.get("TRAINWRECK_STACKS_PACKAGES", "")
HAS_JSONARGPARSE = subprocess.run([PYTHON, "-c", "import jsonargparse"], env={**os.environ, "PYTHONPATH": PATHS},
                                  capture_output=True, check=False).returncode == 0
needs_jsonargparse = unittest.skipUnless(HAS_JSONARGPARSE, f"{PYTHON} has no jsonargparse: ci/test.sh installs it")
# As Lightning's command line is.
COMMANDS = """
import typing, jsonargparse
parser = jsonargparse.ArgumentParser(prog="train.py")
fit = jsonargparse.ArgumentParser()
add = fit.add_argument
add("--config", action=jsonargparse.ActionConfigFile)
{}
parser.add_subcommands().add_subcommand("fit", fit)
read = parser.parse_args()
"""


class OptionsTest(unittest.TestCase):
    def run_program(self, lines, words, status=0, hooks=True):
        """Lets a program with these lines read the words."""
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
            with open(folder + "/train.py", "w", encoding="utf-8") as file:
                file.write((HEAD if hooks else HEAD.replace("options.watch()", "")) + lines + "\n" + END)
            done = subprocess.run([PYTHON, "train.py", *words], cwd=folder, env={**os.environ, "PYTHONPATH": PATHS}, capture_output=True,
                                  text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def told(self, lines, *words):
        told = json.loads(self.run_program(lines, words).stdout.splitlines()[-1])
        self.command, self.long = told["command"], told["long"]
        return {option["names"][0]: option.get("default") for option in told["options"]}

    def test_numbers_that_change_nothing(self):
        told = self.told("""
add("--seed", type=int, default=0)
add("-b", "--batch-size", "--batch", type=int, default=32)
add("--lr", type=float, default=5e-5)
add("--decay", type=float, default="0.10")
add("data")
parser.parse_args()""", "here")
        self.assertEqual(told, {"--seed": "0", "--batch-size": "32", "--lr": "5e-05", "--decay": "0.1"})
        self.assertEqual(self.command, ["train.py", "here"])

    def test_what_is_no_such_number_is_named(self):
        told = self.told("""
add("--clip", type=float)
add("--word", default=3)
add("--float", type=float, default=3)
add("--whole", type=int, default=3.0)
add("--bool", type=int, default=True)
add("--endless", type=float, default=float("inf"))
add("--own", type=lambda word: int(word), default=3)
add("--chosen", type=int, default=3, choices=[3, 4])
add("--many", type=int, default=3, nargs="+")
add("--flag", action="store_true")
one = parser.add_mutually_exclusive_group()
one.add_argument("--steps", type=int, default=3)
one.add_argument("--epochs", type=int, default=3)
parser.parse_args()""")
        self.assertEqual(set(told.values()), {None})
        self.assertEqual(len(told), 12)
        self.assertEqual(self.command, ["train.py"])

    def test_what_the_command_gives_is_not_told(self):
        lines = """
add("-b", "--batch-size", type=int, default=32)
add("-v", action="count")
add("--lr", "--rate", type=float, default=0.1)
add("--lr-warmup", type=int, default=4)
parser.parse_args()"""
        for words in (["--batch-size=32"], ["--batch-size", "8"], ["--batch", "32"], ["-b32"], ["-b", "32"], ["-vb", "32"]):
            self.assertEqual(set(self.told(lines, *words)), {"--lr", "--lr-warmup"}, words)
            self.assertEqual(self.long, {"-b": ["--batch-size"]} if "-b" in words else {}, words)
        self.told("add('data')" + lines, "-b", "32", "--", "-b")  # the second one is the data
        self.assertEqual(self.long, {})
        self.assertEqual(set(self.told(lines, "--lr", "0.1")), {"--batch-size", "--lr-warmup"})
        self.assertEqual(set(self.told(lines, "--rat=0.1")), {"--batch-size", "--lr-warmup"})

    def test_a_short_name_of_two_options_has_no_long_one(self):
        lines = """
other = argparse.ArgumentParser()
other.add_argument("-b", "{}", type=int)
add("-b", "--batch-size", type=int)
parser.parse_known_args()
other.parse_known_args()"""
        self.told(lines.format("--batch-size"), "-b", "32")
        self.assertEqual(self.long, {"-b": ["--batch-size"]})
        self.told(lines.format("--bits"), "-b", "32")
        self.assertEqual(self.long, {})

    def test_what_another_word_sets_is_not_told(self):
        lines = """
add("--fast", dest="lr", action="store_const", const=0.3)
add("--lr", type=float, default=0.1)
parser.parse_args()"""
        self.assertEqual(self.told(lines, "--fast"), {})

    def test_words_that_are_not_those_of_the_command(self):
        self.assertEqual(self.told("add('--lr', type=float, default=0.1)\nparser.parse_args([])", "x"), {})
        self.assertEqual(self.told("add('--lr', type=float, default=0.1)\nadd('--x')\nparser.parse_args(['--x=1'])", "--x=2"), {})
        self.assertEqual(self.told("add('--lr', type=float, default=0.1)\nsys.argv[1:] = []\nparser.parse_args()", "x"), {})

    def test_two_parsers(self):
        lines = """
add("--lr", type=float, default=0.1)
add("--seed", type=int, default=1)
other = argparse.ArgumentParser()
other.add_argument("--seed", type=int, default=2)
other.add_argument("--clip", type=float, default=1.0)
parser.parse_known_args()
other.parse_{}args()"""
        self.assertEqual(self.told(lines.format("known_")), {"--lr": "0.1", "--seed": None, "--clip": "1.0"})
        self.assertEqual(self.told(lines.format("")), {"--seed": None, "--clip": "1.0"})  # it refuses --lr

    def test_what_a_parser_leaves_to_another_one(self):
        lines = """
add("--lr", type=float, default=0.1)
other = argparse.ArgumentParser()
other.add_argument("--clip", type=float, default=1.0)
other.add_argument("--depth", type=int, default=2)
{}
print(rest, other.parse_args({}))"""
        for read, words in (("rest = parser.parse_known_args()[1]", "rest"), ("_, sys.argv[1:] = parser.parse_known_args(); rest = 0", "")):
            self.assertEqual(self.told(lines.format(read, words), "--clip=2"), {"--lr": "0.1", "--depth": "2"})
            said = [self.run_program(lines.format(read, words), ["--clip=2", *more]).stdout.splitlines()[0] for more in ([], ["--lr=0.1"])]
            self.assertEqual(*said)
        # Without a word nothing tells that they are those that are left.
        self.assertEqual(self.told(lines.format("_, sys.argv[1:] = parser.parse_known_args(); rest = 0", "")), {"--clip": "1.0", "--depth": "2"})

    def test_parts(self):
        lines = """
add("--seed", type=int, default=1)
fit = parser.add_subparsers().add_parser("fit")
fit.add_argument("--lr", type=float, default=0.1)
parser.parse_args()"""
        self.assertEqual(self.told(lines, "fit"), {"--lr": "0.1", "--seed": None})
        self.assertEqual(self.told(lines, "fit", "--lr=2"), {"--seed": None})

    def test_words_that_would_take_what_is_added(self):
        lines = "add('--lr', type=float, default=0.1)\nadd('rest', nargs=argparse.REMAINDER)\nparser.parse_args()"
        self.assertEqual(self.told(lines, "fit"), {"--lr": None})
        lines = "add('--lr', type=float, default=0.1)\nadd('rest', nargs='*')\nparser.parse_args()"
        self.assertEqual(self.told(lines, "--", "fit"), {"--lr": None})
        self.assertEqual(self.told(lines, "fit"), {"--lr": "0.1"})

    def test_what_a_program_reads_stays(self):
        lines = """
add("--lr", type=float, default=0.1)
print(parser.parse_known_args(namespace=argparse.Namespace(a=1)), parser.parse_known_args(["--lr=3", "x"]))
print(parser.parse_args(args=iter(["--lr=3"])), parser.parse_args())"""
        for words, status in (["--lr=2"], 0), (["--help"], 0), (["--lr=two"], 2), (["--rate=2"], 2):
            with_hooks, without = (self.run_program(lines, words, status, hooks) for hooks in (True, False))
            self.assertEqual(with_hooks.stdout.replace(END, "").split('{"command"')[0], without.stdout.split('{"command"')[0])
            self.assertEqual(with_hooks.stderr, without.stderr)

    def test_a_parser_that_cannot_be_read(self):
        self.assertEqual(self.told("""
class Odd(argparse.Namespace):
    def __getattribute__(self, name):
        if name == "lr" and sys._getframe(1).f_code.co_filename.endswith("options.py"):
            raise RuntimeError
        return super().__getattribute__(name)
add("--lr", type=float, default=0.1)
assert parser.parse_args(namespace=Odd()).lr == 0.1"""), {})

    def told_of_fit(self, lines, *words):
        told = self.told(COMMANDS.format(lines), "fit", *words)
        self.assertEqual(self.command, ["train.py", "fit", *words])
        return {name: told[name] for name in told if name not in ("--config", "--print_config", "--print_shtab")}

    @needs_jsonargparse
    def test_numbers_of_jsonargparse(self):
        told = self.told_of_fit("""
add("--seed", type=typing.Union[bool, int], default=1)
add("--model.lr", type=float, default=0.1)
add("--model.width", type=int, default=8)
add("--data.batch_size", type=typing.Optional[int], default=32)
add("--trainer.clip", type=typing.Optional[float], default=None)
add("--trainer.devices", type=typing.Union[str, int], default=1)
add("--trainer.milestones", type=typing.List[int], default=[1, 2])
add("--trainer.fast", type=typing.Union[int, bool], default=False)""", "--model.width=9")
        self.assertEqual(told, {"--seed": "1", "--model.lr": "0.1", "--data.batch_size": "32", "--trainer.clip": None,
                                "--trainer.devices": None, "--trainer.milestones": None, "--trainer.fast": None,
                                **{name: None for name in told if name.endswith("+")}})

    @needs_jsonargparse
    def test_what_a_file_of_jsonargparse_sets_is_not_told(self):
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
            with open(folder + "/c.yaml", "w", encoding="utf-8") as file:
                file.write("model: {lr: 0.2}\n")
            lines = "add('--model.lr', type=float, default=0.1)\nadd('--model.decay', type=float, default=0.0)"
            self.assertEqual(self.told_of_fit(lines, f"--config={folder}/c.yaml"), {"--model.decay": "0.0"})

    @needs_jsonargparse
    def test_what_jsonargparse_reads_stays(self):
        lines = COMMANDS.format("add('--model.lr', type=float, default=0.1)") + "print(read)"
        for words, status in (["fit", "--model.lr=2"], 0), (["fit", "--help"], 0), (["fit", "--model.lr=two"], 2), (["fit", "--rate=2"], 2):
            with_hooks, without = (self.run_program(lines, words, status, hooks) for hooks in (True, False))
            self.assertEqual(with_hooks.stdout.split('{"command"')[0], without.stdout.split('{"command"')[0])
            self.assertEqual(with_hooks.stderr, without.stderr)


if __name__ == "__main__":
    unittest_xml.main(sys.argv[1:])
