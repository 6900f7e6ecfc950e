#!/usr/bin/env python3
"""tools/mutants.py but for what Bazel builds: the edits of a small source, compiled, and how mutants are asked and counted.

Usage: mutants_test.py MUTANTS, from the root of the tree.
"""
import argparse
import contextlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import unittest_xml

PROGRAM = pathlib.Path(sys.argv[1]).absolute()
sys.path.insert(0, str(PROGRAM.parent))
import mutant_edits  # beside the program, so only known now
import mutants
from real_bugs import Wrong

# Each line of what it prints is a word and a number, and each word has its edits to itself.
SAMPLE = """#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace {

constexpr double kHalf = 0.5;
constexpr int kMost = 3;  // 4 + 5

struct Counter {
  int count_ = 0;
  void Add(int more) { count_ += more; }
};

int Sum(const std::vector<int>& values) {
  int sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) sum += values[i];
  return sum;
}

std::optional<int> Found(bool there) { return there ? std::optional<int>(7) : std::nullopt; }

}  // namespace

int main() {
  int a = 6, b = 2;
  const int twice[2] = {a * b + a, a - b / 2};
  std::printf("precedence %d %d\\n", twice[0], twice[1]);
  const std::string text = std::string("x") + "y";
  std::printf("text %s\\n", text.c_str());
  Counter counter;
  if (a > b && b >= 2) counter.Add(1);
  else counter.Add(10);
  std::printf("counter %d\\n", counter.count_);
  if (const auto found = Found(true)) std::printf("found %d\\n", *found);
  if (const auto found = Found(false); found != std::nullopt) {
    std::printf("lost %d\\n", *found);
  }
  std::printf("sum %d half %g most %d\\n", Sum({1, 2}), kHalf, kMost);
  try {
    if (a == b) throw std::string("no " + std::to_string(a + 1));
  } catch (const std::string&) {
    std::printf("thrown\\n");
  }
}
"""


class Folder(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")

    def script(self, path, text):
        self.write(path, text)
        (self.root / path).chmod(0o755)


def edits_of(text):
    edits = mutant_edits.find_edits("trainer/sample.cc", text)
    for number, edit in enumerate(edits, 1):
        edit.number = number
    return edits


def found_in(text):
    return [(edit.kind, edit.what) for edit in edits_of(text)]


class Finding(unittest.TestCase):
    def test_operators_with_blanks_around_them(self):
        self.assertEqual([what for _, what in found_in("x = a + b * c;\ny = a -\n    b;\nbool z = a < b;\n") if "becomes" in what],
                         ["+ becomes -", "* becomes /", "- becomes +", "< becomes <="])
        self.assertEqual(found_in("int* x = -a;\nstd::vector<int> y;\nbool operator==(T a);\n"), [])

    def test_numbers_and_truths(self):
        self.assertEqual(found_in("int x = 3;\ndouble y = 1e-3;\ndouble z = 0.0;\nbool on = true;\n"), [
            ("number", "3 becomes 3 + 1"), ("number", "1e-3 becomes 2 * 1e-3"), ("number", "0.0 becomes 1.0"), ("truth", "true becomes false")])

    def test_conditions(self):
        self.assertEqual(found_in("if (a && f(b)) {\n"), [("condition", "not (a && f(b))")])
        self.assertEqual(found_in("if (auto x = f(); x != y) {\n")[0], ("condition", "not (x != y)"))
        self.assertEqual(found_in("if (auto x = f()) {\n"), [])

    def test_statements(self):
        for statement in ("f(a, b);", "a.b->c<int>(d)[e].f();", "x = y;", "*x = y;", "x[i] += y;", "++x;", "x++;", "f([&] { g(); });",
                          "a::f(x,\n    y);"):
            self.assertEqual(found_in("{\n  " + statement + "\n}\n")[0], ("deletion", "without " + " ".join(statement.split())), statement)
            self.assertEqual(found_in("if (a)\n  " + statement + "\n")[1][0], "deletion", statement)
        for other in ("int x = y;", "return f();", "throw f();", "Type x(y);", "x;", "const auto& x = f(y);", "MACRO(x);", "using a = b;",
                      "continue;", "delete x;", "f([&] {\n  g;\n});"):
            self.assertNotIn("deletion", [kind for kind, _ in found_in("{\n  " + other + "\n}\n")], other)

    def test_what_no_switch_can_change(self):
        for text in ("// a + 1\n", "/* 1 */\n", 'f = "a + 1";\n', "char c = '1';\n", "#if 1\n", "static_assert(a == 1);\n", "enum A { kA = 1 };\n",
                     "constexpr int kA = 1;\n", "case 1:\n", "throw f(a + 1,\n  1);\n", "std::array<int, 3> x;\n", "x = 0x10;\n",
                     "std::array<std::array<int, 3>, 4> x;\n"):
            self.assertEqual([kind for kind, _ in found_in(text) if kind != "deletion"], [], text)
        self.assertEqual(found_in("constexpr double kA = 0.5;\n"), [("number", "0.5 becomes 2 * 0.5")])

    def test_knows_where(self):
        (edit,) = edits_of("\n  int x = 3;\n")
        self.assertEqual((edit.path, edit.line, edit.column), ("trainer/sample.cc", 2, 11))


class Compiled(Folder):
    """The sample with its edits, compiled once."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        root = pathlib.Path(cls.scratch.name)
        for path in ("trainer", "tools"):
            (root / path).mkdir()
        shutil.copy(PROGRAM.parent / "mutants.h", root / "tools/mutants.h")
        (root / "trainer/sample.cc").write_text(SAMPLE, encoding="utf-8")
        cls.edits = edits_of(SAMPLE)
        mutants.write_sources(root, cls.edits)
        cls.program = root / "sample"
        done = subprocess.run([os.environ.get("CXX", "g++"), "-std=c++20", "-w", "trainer/sample.cc", "-o", "sample"], cwd=root,
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def said(self, number=None, **environment):
        environment = {**os.environ, **environment, **({"TRAINWRECK_MUTANT": str(number)} if number else {})}
        return subprocess.run([self.program], env=environment, capture_output=True, text=True, check=True).stdout

    def with_edit(self, line, what, nth=0):
        number = SAMPLE[:SAMPLE.index(line)].count("\n") + 1
        found = [edit for edit in self.edits if edit.line == number and edit.what == what]
        before, after = self.said().split("\n"), self.said(found[nth].number).split("\n")
        return "; ".join(line for line in after if line not in before) or "; ".join("no " + line for line in before if line not in after)

    def test_says_what_it_said_without_a_mutant(self):
        self.assertEqual(self.said(), "precedence 18 5\ntext xy\ncounter 1\nfound 7\nsum 3 half 0.5 most 3\n")

    def test_each_edit_does_what_it_says(self):
        for line, what, becomes in (
                ("  const int twice", "* becomes /", "precedence 9 5"), ("  const int twice", "+ becomes -", "precedence 6 5"),
                ("  const int twice", "- becomes +", "precedence 18 7"), ("  const int twice", "/ becomes *", "precedence 18 2"),
                ("  if (a > b", ">= becomes >", "counter 10"), ("  if (a > b", "not (a > b && b >= 2)", "counter 10"),
                ("  if (a > b", "without counter.Add(1);", "counter 0"), ("  if (a > b", "1 becomes 1 + 1", "counter 2"),
                ("  void Add", "without count_ += more;", "counter 0"), ("  int count_", "0 becomes 0 + 1", "counter 2"),
                ("  for (std::size_t", "0 becomes 0 + 1", "sum 2 half 0.5 most 3"),
                ("  for (std::size_t", "without sum += values[i];", "sum 0 half 0.5 most 3"),
                ("constexpr double", "0.5 becomes 2 * 0.5", "sum 3 half 1 most 3"),
                ("  if (const auto found = Found(true", "true becomes false", "no found 7"),
                ("    if (a == b) throw", "== becomes !=", "thrown"), ("    if (a == b) throw", "not (a == b)", "thrown")):
            self.assertEqual(self.with_edit(line, what), becomes, (line, what))

    def test_one_acts_at_a_time(self):
        self.assertEqual(len({edit.number for edit in self.edits}), len(self.edits))
        self.assertEqual(self.said(len(self.edits) + 1), self.said())

    def test_knows_what_was_reached_and_what_has_no_other_operator(self):
        marks = self.program.parent / "marks"
        marks.write_bytes(bytes(len(self.edits) + 1))
        self.said(TRAINWRECK_MUTANTS_REACHED=str(marks))
        reached = marks.read_bytes()
        by_line = {}
        for edit in self.edits:
            by_line.setdefault(SAMPLE.split("\n")[edit.line - 1].strip(), []).append(reached[edit.number])
        self.assertEqual(by_line['const std::string text = std::string("x") + "y";'], [2])
        self.assertEqual(by_line["else counter.Add(10);"], [0, 0])
        self.assertEqual(set(by_line["const int twice[2] = {a * b + a, a - b / 2};"]), {1})

    def test_finds_what_does_not_compile(self):
        text = "int f(int* x);\nint a = 1;\nint b = f(0) + 2;\n"
        edits = edits_of(text)
        for path, kept in (("all", edits), ("some", [edit for edit in edits if edit.what != "0 becomes 0 + 1"])):
            root = self.root / path
            (root / "trainer").mkdir(parents=True)
            (root / "tools").mkdir()
            shutil.copy(PROGRAM.parent / "mutants.h", root / "tools/mutants.h")
            (root / "trainer/sample.cc").write_text(text, encoding="utf-8")
            written = mutants.write_sources(root, kept)
            done = subprocess.run([os.environ.get("CXX", "g++"), "-std=c++20", "-w", "-fsyntax-only", "trainer/sample.cc"], cwd=root,
                                  capture_output=True, text=True, check=False)
            bad = mutants.not_compiling(done.stderr, written)
            self.assertEqual([edit.what for edit in edits if edit.number in bad], ["0 becomes 0 + 1"] if path == "all" else [], done.stderr)


def verdict(failure, kind="fail"):
    return {"case": "twins/a", "verdict": kind, "class": failure, "reason": "why", "arms": [], "checks": []}


class Asking(Folder):
    """A harness that notices mutant 2 as twins, ends in a crash with 3, cannot say with 4, and never ends with 5; 6 is not reached."""

    def setUp(self):
        super().setUp()
        self.write("w/tree/scenarios/twins/a.yaml", "")
        self.write("w/tree/scenarios/twins/defaults.yaml", "")
        self.write("w/tree/tools/real_bug_acts.py", "import os, sys\nfolder, kept = sys.argv[3], sys.argv[5]\n"
                   "if not os.path.exists(kept):\n    open(kept, 'w').write(sys.argv[2])\n"
                   "assert 'plain-trainer' in open(kept).read()\n"
                   "if os.environ['TRAINWRECK_MUTANT'] == '4' and 'twins' in folder:\n    raise SystemExit(print('step 0: loss') or 1)\n")
        answers = {"2": (1, [verdict("twins_differ"), verdict("symptom_absent")]), "3": (7, [verdict("crash", "error")]),
                   "4": (5, [verdict("undecided", "inconclusive")]), "7": (70, [])}
        self.script("trainwreck", f"""#!{sys.executable}
import json, os, subprocess, sys, time
number = os.environ["TRAINWRECK_MUTANT"]
open("{self.root}/asked", "a").write(number + "\\n")
marks = os.environ.get("TRAINWRECK_MUTANTS_REACHED")
assert sys.argv[sys.argv.index("--isolate") + 1] == ("exec" if marks else "fork")
if marks:
    data = bytearray(open(marks, "rb").read())
    data[1:9] = bytes([1, 1, 1, 1, 1, 0, 1, 2])
    open(marks, "wb").write(data)
if number == "5":
    subprocess.Popen(["sleep", "100"], start_new_session=True)
    time.sleep(100)
status, verdicts = {answers!r}.get(number, (0, []))
out = sys.argv[sys.argv.index("--output") + 1]
os.makedirs(out)
names = [each for each in sys.argv if each.startswith("twins/")]
if len(names) > 1:
    assert "--fail-fast" not in sys.argv
    cut = names[1:] if os.path.exists("{self.root}/cut") else names
    verdicts += [{{**{verdict("", "pass")!r}, "case": each}} for each in cut]
if verdicts:
    json.dump({{"verdicts": verdicts}}, open(out + "/verdicts.json", "w"))
sys.exit(status)
""")
        edits = [mutant_edits.Edit("trainer/data/sampler.cc", 1, number, "number", f"{number} becomes", 0, 1, number).__dict__ for number in range(1, 10)]
        self.write("w/built.json", json.dumps({"commit": "c", "program": "p", "dropped": [9], "trainwreck": str(self.root / "trainwreck"), "edits": edits}))
        self.options = argparse.Namespace(scratch=str(self.root / "w"), results=str(self.root / "lines"), scenarios=["twins/*"], run_option=[],
                                          patience=0, seconds=20, names=[], sample=0, seed=0)
        # 20 s are for the slowest machine's start; a test has no such time.
        self.kept, mutants.GRACE = mutants.GRACE, 1.5

    def tearDown(self):
        mutants.GRACE = self.kept

    def run_all(self):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            mutants.run(self.options)
        return output.getvalue(), {line["mutant"]: line for line in mutants.read_lines(pathlib.Path(self.options.results))}

    def test_says_by_what_each_was_noticed(self):
        said, lines = self.run_all()
        self.assertEqual({number: (line["outcome"], line["by"]) for number, line in lines.items()}, {
            1: ("survived", ""), 2: ("killed", "twin"), 3: ("killed", "crash"), 4: ("inconclusive", ""), 5: ("killed", "timeout"),
            6: ("unreached", ""), 7: ("killed", "crash")})
        self.assertEqual((lines[2]["message"], lines[1]["acts"], lines[4]["acts"]), ("twins/a: why", [], ["step 0: loss"]))
        self.assertNotIn("6\n", (self.root / "asked").read_text(encoding="utf-8"))
        self.assertRegex(said, r"all +7 +6 +4 +66\.7%  crash 2, twin 1, timeout 1\n")
        self.assertIn("survived: 1\n      1 trainer/data/sampler.cc:1:1 1 becomes  [no trace differs]\n", said)

    def test_asks_a_few_one_by_one_and_the_rest_in_one_go(self):
        for name in "bcdefgh":
            self.write(f"w/tree/scenarios/twins/{name}.yaml", "")
        _, lines = self.run_all()
        self.assertEqual(len(lines[1]["asked"]), 8)
        asked = (self.root / "asked").read_text(encoding="utf-8").split()
        self.assertEqual((asked.count("1"), asked.count("2"), lines[2]["scenario"]), (mutants.SINGLY + 1, 1, "twins/a"))
        self.write("cut", "")
        pathlib.Path(self.options.results).unlink()
        with self.assertRaisesRegex(Wrong, r"no verdict of twins/\w$"):
            self.run_all()

    def test_goes_on_where_it_was(self):
        self.run_all()
        asked = (self.root / "asked").read_text(encoding="utf-8")
        self.run_all()
        self.assertEqual((self.root / "asked").read_text(encoding="utf-8"), asked)

    def test_draws_the_same_sample_for_a_seed(self):
        edits = [mutant_edits.Edit("p", 1, 1, "number", "", 0, 1, number) for number in range(100)]
        drawn = [[edit.number for edit in mutants.chosen(edits, argparse.Namespace(names=[], sample=5, seed=seed))] for seed in (1, 1, 2)]
        self.assertEqual((drawn[0] == drawn[1], drawn[0] == drawn[2], len(set(drawn[0]))), (True, False, 5))

    def test_one_that_is_not_green_without_a_mutant_ends_it(self):
        self.script("trainwreck", "#!/bin/sh\necho red >&2\nexit 1\n")
        with self.assertRaisesRegex(Wrong, "twins/a is not green without a mutant: red"):
            self.run_all()

    def test_one_that_is_inconclusive_without_a_mutant_is_not_asked(self):
        self.script("trainwreck", "#!/bin/sh\nexit 5\n")
        said, lines = self.run_all()
        self.assertIn("twins/a: inconclusive without a mutant, so it is not asked", said)
        self.assertEqual({line["outcome"] for line in lines.values()}, {"unreached"})

    def test_nothing_outlives_a_run(self):
        began = time.monotonic()
        status, said, _ = mutants.run_marked(["sh", "-c", "setsid sleep 77.25 & echo $!; exec sleep 77.25"], {}, 1, self.root)
        self.assertEqual((status, time.monotonic() - began < 20), (None, True))
        time.sleep(0.2)
        left = [path for path in pathlib.Path("/proc").glob("[0-9]*/cmdline") if b"77.25" in self.text_of(path)]
        self.assertEqual(left, [])

    @staticmethod
    def text_of(path):
        try:
            return path.read_bytes()
        except OSError:
            return b""


class Sources(unittest.TestCase):
    def test_are_those_that_train(self):
        found = mutants.sources_in(pathlib.Path("."))
        self.assertIn("trainer/loop.cc", found)
        self.assertIn("trainer/data/sampler.cc", found)
        for path in found:
            self.assertNotRegex(path, "_test|recipe/|references/|cuda|nccl|main")
        self.assertGreater(len(mutants.all_edits(pathlib.Path("."))), 1000)

    def test_parts_have_words(self):
        for part in mutants.PARTS.values():
            self.assertIn(part, mutants.WORDS_OF_PART)
        self.assertEqual([mutants.part_of("trainer/" + path) for path in ("data/sampler.cc", "data/loader.cc", "loop.cc")], ["sampler", "data", ""])


if __name__ == "__main__":
    unittest_xml.main(sys.argv[2:])
