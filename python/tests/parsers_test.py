#!/usr/bin/env python3
"""What the hooks tell `trainwreck init` of the options that a program declares by click, typer, absl, tyro or fire, and of the settings
that words `key=value` change. No torch is needed.

Usage: parsers_test.py [unittest options], in the output folder of the package. The libraries are those of the Python that
TRAINWRECK_STACKS_PYTHON names, else those of python3 and of the folder that TRAINWRECK_STACKS_PACKAGES names (ci/test.sh makes both). What
needs one that is not there is skipped.
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

HEAD = f"""
import sys
sys.path.insert(0, {os.path.abspath("python/packed")!r})
from trainwreck import options
options.watch()
import atexit, json
atexit.register(lambda: print(json.dumps(options.told())))
"""
PYTHON = os.environ.get("TRAINWRECK_STACKS_PYTHON") or shutil.which("python3")
PATHS = os.environ.get("TRAINWRECK_STACKS_PACKAGES", "")


def needs(module):
    done = subprocess.run([PYTHON, "-c", f"import {module}"], env={**os.environ, "PYTHONPATH": PATHS}, capture_output=True, check=False)
    return unittest.skipIf(done.returncode, f"{PYTHON} has no {module}: ci/test.sh installs it")


SET = {"seed": "3", "optimizer.lr": "0.1", "optimizer.weight_decay": "0", "trainer.max_steps": "50",
       **dict.fromkeys(["optimizer.name", "optimizer.clip", "trainer.rate", "trainer.fast"])}


class ParsersTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(shutil.rmtree, self.folder)

    def run_program(self, lines, words, status=0, hooks=True):
        """Lets a program with these lines read the words."""
        with open(self.folder + "/train.py", "w", encoding="utf-8") as file:
            file.write((HEAD if hooks else "") + lines)
        done = subprocess.run([PYTHON, "train.py", *words], cwd=self.folder, env={**os.environ, "PYTHONPATH": PATHS, "COLUMNS": "200"},
                              capture_output=True, text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def told(self, lines, *words):
        told = json.loads(self.run_program(lines, words).stdout.splitlines()[-1])
        self.command, self.long = told["command"], told["long"]
        return {option["names"][0]: option.get("default") for option in told["options"]}

    def assert_told(self, lines, words, expected):
        """The numbers change nothing: given so, the program reads the same."""
        self.assertEqual(self.told(lines, *words), expected)
        self.assertEqual(self.command, ["train.py", *words])
        plain = self.run_program(lines, words, hooks=False).stdout
        added = [f"{name}={value}" for name, value in expected.items() if value is not None]
        self.assertEqual(self.run_program(lines, [*words, *added], hooks=False).stdout, plain)
        self.assertEqual(self.run_program(lines, words).stdout.split('{"command"')[0], plain)
        self.assertTrue(plain)

    def assert_stays(self, lines, *cases):
        """What the program says and does of right and of wrong words."""
        for words, status in cases:
            with_hooks, without = (self.run_program(lines, words, status, hooks) for hooks in (True, False))
            self.assertEqual(with_hooks.stdout.split('{"command"')[0], without.stdout)
            self.assertEqual(with_hooks.stderr, without.stderr)

    CLICK = """
import click
@click.command()
@click.argument("data", default="here")
@click.option("--lr", "--rate", default=0.1)
@click.option("-b", "--batch-size", type=click.IntRange(1), default=32)
@click.option("--clip", type=float)
@click.option("--seed", type=int, default=3, envvar="SEED")
@click.option("--chosen", type=click.Choice(["3", "4"]), default="3")
@click.option("--many", type=int, multiple=True, default=[3])
@click.option("--pair", type=int, nargs=2, default=(3, 4))
@click.option("--twice", default=3, callback=lambda context, option, value: 2 * value)
@click.option("--fast/--slow", default=False)
@click.option("-v", "--verbose", count=True)
@click.version_option("1.0")
def train(**values):
    print(sorted(values.items()))
"""

    @needs("click")
    def test_click(self):
        rest = dict.fromkeys(["--clip", "--chosen", "--many", "--pair", "--twice", "--fast", "--verbose"])
        self.assert_told(self.CLICK + "train()", [], {"--lr": "0.1", "--batch-size": "32", "--seed": "3", **rest})
        for words in (["-b8"], ["-b", "8"]):
            self.assert_told(self.CLICK + "train()", ["there", "--rate=0.1", *words], {"--seed": "3", **rest})
            self.assertEqual(self.long, {"-b": ["--batch-size"]} if "-b" in words else {})
        self.assert_told(self.CLICK + "train()", ["--clip", "1", "--slow"],
                         {"--lr": "0.1", "--batch-size": "32", "--seed": "3", **{name: rest[name] for name in rest if name not in ("--clip", "--fast")}})
        self.assertEqual(set(self.told(self.CLICK + "train()", "--", "there").values()), {None})
        self.assert_stays(self.CLICK + "train()", (["--lr=2"], 0), (["--help"], 0), (["--version"], 0), (["--lr=two"], 2), (["--widht=2"], 2))

    @needs("click")
    def test_words_that_click_is_given_by_the_program(self):
        self.assertEqual(self.told(self.CLICK + "train([], standalone_mode=False)", "x"), {})
        self.assertEqual(self.told(self.CLICK + "train(['--lr=1'], standalone_mode=False)", "--lr=2"), {})

    @needs("click")
    def test_commands_of_click(self):
        lines = self.CLICK + """
@click.group()
@click.option("--verbosity", default=1)
def main(verbosity):
    print(verbosity)
main.add_command(train, "fit")
main()"""
        told = self.told(lines, "fit", "--batch-size=9")
        self.assertEqual((told["--verbosity"], told["--lr"], told["--seed"]), (None, "0.1", "3"))
        self.assertNotIn("--batch-size", told)
        self.assertEqual(self.command, ["train.py", "fit", "--batch-size=9"])
        self.assertEqual(self.told(lines, "fit")["--lr"], "0.1")

    @needs("typer")
    def test_typer(self):
        lines = """
import typer
from typing import List, Optional
app = typer.Typer(add_completion=False)
def own(word: str):
    return 2 * float(word)
def fit(data: str = typer.Argument("here"), lr: float = 0.1, batch_size: int = typer.Option(32, "--batch-size", "-b", min=1), whole: float = 3,
        clip: Optional[float] = None, odd: float = typer.Option(3.0, parser=own), many: List[int] = [3], fast: bool = False, name: str = "3"):
    print(sorted(locals().items()))
"""
        rest = dict.fromkeys(["--clip", "--odd", "--many", "--fast", "--name"])
        single = lines + "app.command()(fit)\napp()"
        self.assert_told(single, [], {"--lr": "0.1", "--batch-size": "32", "--whole": "3.0", **rest})
        self.assert_told(single, ["there", "--lr", "0.1", "-b8"], {"--whole": "3.0", **rest})
        self.assert_stays(single, (["--lr=2"], 0), (["--help"], 0), (["--lr=two"], 2), (["--widht=2"], 2))
        two = lines + "app.command()(fit)\n@app.command()\ndef test(depth: int = 3): pass\napp()"
        self.assert_told(two, ["fit", "--whole=1"], {"--lr": "0.1", "--batch-size": "32", **rest})

    ABSL = """
from absl import app, flags
flags.DEFINE_float("lr", 0.1, "", short_name="r")
flags.DEFINE_float("decay", 1, "")
flags.DEFINE_integer("batch_size", 32, "", lower_bound=1)
flags.DEFINE_integer("clip", None, "")
flags.DEFINE_enum("chosen", "3", ["3", "4"], "")
flags.DEFINE_multi_integer("many", [3], "")
flags.DEFINE_string("word", "3", "")
flags.DEFINE_boolean("fast", False, "")
def main(words):
    print(words, [(one, getattr(flags.FLAGS, one)) for one in ("lr", "decay", "batch_size", "clip", "chosen", "many", "word", "fast")])
app.run(main)
"""

    @needs("absl")
    def test_absl(self):
        rest = dict.fromkeys(["--clip", "--chosen", "--many", "--word", "--fast"])
        self.assert_told(self.ABSL, [], {"--lr": "0.1", "--decay": "1.0", "--batch_size": "32", **rest})
        self.assert_told(self.ABSL, ["-r", "0.1", "--batch_size=32"], {"--decay": "1.0", **rest})
        self.assert_told(self.ABSL, ["-batch_size", "8", "--nofast"],
                         {"--lr": "0.1", "--decay": "1.0", **{name: rest[name] for name in rest if name != "--fast"}})
        self.assert_told(self.ABSL, ["--lr=1", "there"], {"--decay": "1.0", "--batch_size": "32", **rest})
        stops = self.ABSL.replace("app.run", "flags.FLAGS.set_gnu_getopt(False)\napp.run")  # at the first word without a name
        self.assertEqual(set(self.told(stops, "--lr=1", "there").values()), {None})
        self.assert_stays(self.ABSL, (["--lr=2"], 0), (["--help"], 1), (["--lr=two"], 1), (["--widht=2"], 1))

    TYRO = """
import dataclasses, tyro
from typing import Literal, Optional, Tuple, Union
@dataclasses.dataclass
class Optimizer:
    lr: float = 0.1
    warmup_steps: int = 5
@dataclasses.dataclass
class Fit:
    name: str
    optimizer: Optimizer = dataclasses.field(default_factory=Optimizer)
    batch_size: int = 32
    whole: float = 3
    clip: Optional[float] = None
    seed: Optional[int] = 3
    either: Union[str, int] = 3
    chosen: Literal[3, 4] = 3
    pair: Tuple[int, int] = (3, 4)
    fast: bool = False
"""

    @needs("tyro")
    def test_tyro(self):
        lines = self.TYRO + "print(tyro.cli(Fit, default=Fit('a', batch_size=16)))"
        rest = dict.fromkeys(["--name", "--whole", "--clip", "--either", "--chosen", "--pair", "--fast"])
        numbers = {"--optimizer.lr": "0.1", "--optimizer.warmup-steps": "5", "--batch-size": "16", "--seed": "3"}
        self.assert_told(lines, [], {**rest, **numbers})
        self.assert_told(lines, ["--batch_size", "16", "--optimizer.warmup-steps=9", "--no-fast"],
                         {**{name: rest[name] for name in rest if name != "--fast"}, "--optimizer.lr": "0.1", "--seed": "3"})
        self.assert_stays(lines, (["--seed=2"], 0), (["--help"], 0), (["--seed=two"], 2), (["--widht=2"], 2))
        words = lines.replace("tyro.cli(Fit", "tyro.cli(Fit, args=['--seed=4']")
        self.assertEqual(self.told(words, "--seed=5"), {})

    @needs("tyro")
    def test_commands_of_tyro(self):
        lines = self.TYRO + """
@dataclasses.dataclass
class Test:
    depth: int = 3
@dataclasses.dataclass
class Main:
    command: Union[Fit, Test]
    seed: int = 1
print(tyro.cli(Main))"""
        told = self.told(lines, "--seed=2", "command:fit", "--command.name=a")
        self.assertEqual((told["--command.optimizer.lr"], told["--command.seed"]), ("0.1", "3"))
        self.assertNotIn("--seed", told)
        self.assertIsNone(self.told(lines, "command:test")["--seed"])

    FIRE = """
import fire
def fit(data="here", lr=0.1, batch_size=32, clip=None, fast=False, *, seed=3):
    print(sorted(locals().items()))
"""

    @needs("fire")
    def test_fire(self):
        lines = self.FIRE + "fire.Fire(fit)"
        rest = dict.fromkeys(["--data", "--clip", "--fast"])
        self.assert_told(lines, [], {"--lr": "0.1", "--batch_size": "32", "--seed": "3", **rest})
        self.assert_told(lines, ["--lr=0.1", "--batch-size", "8"], {"--seed": "3", **rest})
        self.assertEqual(set(self.told(lines, "there").values()), {None})  # more words without names may follow
        self.assertEqual(self.told(self.FIRE + "fire.Fire(fit, ['--lr=1'])", "--lr=2"), {})
        self.assert_told(self.FIRE + "fire.Fire({'fit': fit})", ["fit", "--lr=0.1"], {"--batch_size": "32", "--seed": "3", **rest})
        self.assert_stays(lines, (["--lr=2"], 0), (["--widht=2"], 2))

    HYDRA = """
import hydra
@hydra.main(version_base=None, config_path=".", config_name="conf")
def main(config):
    print(config)
main()
"""
    SETTINGS = """
seed: 3
optimizer: {lr: 0.1, weight_decay: 0, name: sgd, clip: null, betas: [0.9, 0.99]}
trainer: {max_steps: 50, rate: "${optimizer.lr}", fast: false}
"""

    def write_settings(self):
        with open(self.folder + "/conf.yaml", "w", encoding="utf-8") as file:
            file.write(self.SETTINGS)

    @needs("hydra")
    def test_hydra(self):
        self.write_settings()
        folder = {"hydra.run.dir": None}

        def own_options(told):
            return {name: told[name] for name in told if not name.startswith("--")}

        lines = self.HYDRA
        self.assertEqual(own_options(self.told(lines)), {**SET, **folder})
        told = own_options(self.told(lines, "optimizer.lr=0.1", "+depth=4", "hydra.run.dir=out"))
        self.assertEqual(told, {name: SET[name] for name in SET if name != "optimizer.lr"})
        self.assertEqual(self.command, ["train.py", "optimizer.lr=0.1", "+depth=4", "hydra.run.dir=out"])
        added = [f"{name}={value}" for name, value in SET.items() if value]
        self.assertEqual(*(self.run_program(lines, words, hooks=False).stdout for words in ([], added)))
        for seeds in "seed=1,2", "seed=1":
            self.assertEqual(own_options(self.told(lines, "--multirun", seeds)), {})
        self.assert_stays(lines, (["seed=2"], 0), (["sede=2"], 1), (["--cfg", "job"], 0))

    @needs("omegaconf")
    def test_omegaconf(self):
        self.write_settings()
        lines = """
from omegaconf import OmegaConf
words = OmegaConf.from_cli()
print(OmegaConf.merge(OmegaConf.load("conf.yaml"), words))"""
        self.assert_told(lines, [], SET)
        self.assert_told(lines, ["optimizer.lr=0.1"], {name: SET[name] for name in SET if name != "optimizer.lr"})
        # Another one has the last say.
        self.assertEqual(self.told(lines.replace('load("conf.yaml"), words', 'create(), words, OmegaConf.load("conf.yaml")'), "seed=1"), {})


if __name__ == "__main__":
    unittest_xml.main(sys.argv[1:])
