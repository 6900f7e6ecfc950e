#!/usr/bin/env python3
"""The patches of tests/real_bugs, and tools/real_bugs.py but for what it builds.

Usage: real_bugs_test.py REAL_BUGS, from the root of the tree that the patches must apply to.
"""
import argparse
import collections
import contextlib
import importlib.util
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import unittest_xml

PROGRAM = os.path.abspath(sys.argv[1])
sys.path.insert(0, os.path.dirname(PROGRAM))
spec = importlib.util.spec_from_file_location("real_bugs", PROGRAM)
real_bugs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(real_bugs)
import real_bug_acts  # beside the program, so only known now

BUGS = pathlib.Path("tests/real_bugs")
ENTRY = {"name": "half-a-step", "kind": "optimizer", "part": "optimizer", "what": "Half the step.", "shows": "any recipe",
         "source": "https://example.org/1", "set": "open"}


class Folder(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")


class Patches(Folder):
    """The tree's own."""

    def setUp(self):
        super().setUp()
        # Of a test's sandbox each file is a link, which git does not patch.
        shutil.copytree(BUGS, self.root / BUGS)
        self.patched = collections.defaultdict(list)
        for patch in BUGS.glob("*.patch"):
            for path in re.findall(r"(?m)^\+\+\+ b/(.*)$", patch.read_text(encoding="utf-8")):
                self.patched[path].append(patch.stem)
                (self.root / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, self.root / path)

    def check(self):
        return subprocess.run([sys.executable, PROGRAM, "check", "--root", str(self.root)], capture_output=True, text=True, check=False)

    def test_all_apply(self):
        done = self.check()
        self.assertEqual((done.returncode, done.stdout), (0, "0 patches do not apply\n"), done.stderr)

    def test_those_of_a_file_that_is_gone_do_not(self):
        path, names = next(iter(self.patched.items()))
        (self.root / path).write_text("", encoding="utf-8")
        done = self.check()
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{len(names)} patches do not apply", done.stdout)
        for name in names:
            self.assertIn(f"{name}: error: ", done.stdout)

    def test_are_many_of_each_kind_in_each_set(self):
        bugs = real_bugs.read_bugs(BUGS)
        self.assertGreaterEqual(len(bugs), 60)
        sets = collections.Counter(bug["set"] for bug in bugs)
        self.assertLessEqual(abs(sets["open"] - sets["held_out"]), 10)
        kinds = collections.Counter(bug["kind"] for bug in bugs)
        self.assertGreaterEqual(min(kinds.values()), 4, kinds)
        for kind in kinds:
            self.assertEqual({bug["set"] for bug in bugs if bug["kind"] == kind}, set(real_bugs.SETS))

    def test_are_as_many_as_their_page_says(self):
        page = pathlib.Path("docs/measured/real_bugs.md").read_text(encoding="utf-8")
        said = {kind: tuple(map(int, counts))
                for kind, *counts in re.findall(r"(?m)^\| (\w+) \| (\d+) \| (\d+) \| (\d+) \|$", page)}
        counted = collections.defaultdict(lambda: [0] * len(real_bugs.SETS))
        for bug in real_bugs.read_bugs(BUGS):
            for kind in (bug["kind"], "all"):
                counted[kind][real_bugs.SETS.index(bug["set"])] += 1
        self.assertEqual(said, {kind: tuple(counts) for kind, counts in counted.items()})

    def test_touch_the_trainer_alone(self):
        self.assertEqual([path for path in self.patched if not path.startswith("trainer/") or "_test." in path], [])


class Listing(Folder):
    def setUp(self):
        super().setUp()
        self.write("half-a-step.patch", "")

    def read(self, *entries):
        self.write("bugs.yaml", "# A note.\n" + "".join(
            "- " + "\n  ".join(f"{key}: {value}" for key, value in entry.items()) + "\n" for entry in entries))
        return real_bugs.read_bugs(self.root)

    def test_is_read(self):
        self.assertEqual(self.read(ENTRY), [ENTRY])

    def test_says_what_is_wrong(self):
        for change, why in (({"set": "closed"}, "its set is none"), ({"name": "Half"}, "not in kebab case"),
                            ({"part": "gearbox"}, "no words are known"), ({"source": "mail"}, "is no address"),
                            ({"sat": "open"}, "has sat"), ({"name": "other"}, "half-a-step.patch: no entry")):
            with self.assertRaisesRegex(real_bugs.Wrong, why):
                self.read({**ENTRY, **change})
        for field in real_bugs.FIELDS:
            with self.assertRaisesRegex(real_bugs.Wrong, f"has no {field}"):
                self.read({key: value for key, value in ENTRY.items() if key != field})
        with self.assertRaisesRegex(real_bugs.Wrong, "stands twice"):
            self.read(ENTRY, ENTRY)
        self.write("bugs.yaml", "half a step\n")
        with self.assertRaisesRegex(real_bugs.Wrong, "line 1"):
            real_bugs.read_bugs(self.root)

    def test_of_some(self):
        bugs = [ENTRY, {**ENTRY, "name": "other", "set": "held_out"}]
        self.assertEqual([bug["name"] for bug in real_bugs.choose(bugs, [], "open")], ["half-a-step"])
        self.assertEqual([bug["name"] for bug in real_bugs.choose(bugs, ["other"], None)], ["other"])
        self.assertEqual(len(real_bugs.choose(bugs, [], "all")), 2)
        with self.assertRaisesRegex(real_bugs.Wrong, "no such bug: third"):
            real_bugs.choose(bugs, ["third"], None)


def verdict(case, kind="pass", failure="", reason="", checks=(), status="ok"):
    return {"case": case, "verdict": kind, "class": failure, "reason": reason,
            "arms": [{"arm": "control", "kind": "control", "status": "ok"}, {"arm": "clip", "kind": "remedy", "status": status}],
            "checks": [{"check": name, "arm": arm, "class": failure if failing else ""} for name, arm, failing in checks]}


class Notices(unittest.TestCase):
    def read(self, part, *verdicts, lines=()):
        return real_bugs.read_notices({**ENTRY, "part": part}, verdicts, list(lines))

    def test_none(self):
        found = self.read("optimizer", verdict("a", checks=[("learns", "control", False)]), verdict("b", "skip"),
                          verdict("c", "inconclusive", "undecided", "the optimizer?"))
        self.assertEqual((found["noticed"], found["cases"], found["by"], found["inconclusive"]), (False, 3, [], 1))
        self.assertEqual((found["messages"], found["named_at"]), ([], 0))

    def test_claims_and_kinds_of_arms(self):
        found = self.read("optimizer", verdict("a"), verdict("b", "fail", "control_unhealthy", "it does not learn", [
            ("learns", "control", True), ("finite", "control", False), ("helps", "clip", True)]))
        self.assertTrue(found["noticed"])
        self.assertEqual(found["by"], [{"case": "b", "verdict": "fail", "class": "control_unhealthy", "arms": ["control", "remedy"],
                                        "claims": ["helps", "learns"]}])
        self.assertEqual(found["messages"], ["b: it does not learn"])
        self.assertEqual(found["classes"], {"control_unhealthy": 1})

    def test_an_arm_that_crashed(self):
        found = self.read("optimizer", verdict("b", "error", "crash", "exit code 1", status="crash"))
        self.assertEqual((found["noticed"], found["by"][0]["arms"]), (True, ["remedy"]))

    def test_the_first_message_that_names_the_part(self):
        one, two = verdict("a", "fail", "x", "the loss differs"), verdict("b", "fail", "x", "the Optimizer's second moment differs")
        self.assertEqual(self.read("optimizer", one, two)["named_at"], 2)
        self.assertEqual(self.read("schedule", one, two)["named_at"], 0)

    def test_names_of_arms_name_no_part(self):
        self.assertEqual(self.read("clipping", verdict("a", "fail", "x", "'learns' in clip"))["named_at"], 0)
        self.assertEqual(self.read("clipping", verdict("a", "fail", "x", "clipping binds in clip"))["named_at"], 1)

    def test_lines_of_other_commands(self):
        found = self.read("clipping", lines=["optimizer.clip_norm changes nothing"])
        self.assertEqual((found["noticed"], found["named_at"], found["messages"]), (True, 1, ["optimizer.clip_norm changes nothing"]))

    def test_each_part_of_the_list_has_words(self):
        for bug in real_bugs.read_bugs(BUGS):
            re.compile(real_bugs.WORDS_OF_PART[bug["part"]])


class Lines(unittest.TestCase):
    SAME = {"commit": "abc", "oracles": ["run"]}

    def line(self, name, noticed=True, **more):
        return {"bug": name, "kind": "clipping", "noticed": noticed, "named_at": 1, "classes": {"x": 2}, **self.SAME, **more}

    def left(self, *lines):
        bugs = [{"name": "one"}, {"name": "two"}]
        return [bug["name"] for bug in real_bugs.left_to_do(bugs, list(lines), self.SAME)]

    def test_what_has_a_line_is_not_run_again(self):
        self.assertEqual(self.left(), ["one", "two"])
        self.assertEqual(self.left(self.line("one")), ["two"])
        self.assertEqual(self.left(self.line("one", False), self.line("two")), [])

    def test_lines_of_another_commit_or_of_other_oracles_do_not_count(self):
        self.assertEqual(self.left(self.line("one", commit="other")), ["one", "two"])
        self.assertEqual(self.left(self.line("one", oracles=["run", "keys"])), ["one", "two"])

    def test_an_error_is_no_answer(self):
        self.assertEqual(self.left(self.line("one", None)), ["one", "two"])

    def test_the_summary_counts_each_bug_once(self):
        rows = list(real_bugs.summarise([
            self.line("one", None), self.line("one", named_at=4), self.line("two", named_at=3), self.line("three", False, classes={}),
            self.line("four", None, kind="loss"), self.line(real_bugs.BASELINE, False)]))
        table = {row.split()[0]: row.split()[1:] for row in rows}
        self.assertEqual(table["clipping"], ["3", "2", "1", "0", "x", "4"])
        self.assertEqual(table["loss"], ["1", "0", "0", "1"])
        self.assertEqual(table["all"], ["4", "2", "1", "1", "x", "4"])


class Asking(Folder):
    def ask(self, script, seconds=20):
        self.write("oracle", script)
        places = {"tree": str(self.root), "out": str(self.root / "runs/x/0"), "trainer": "T"}
        return real_bugs.ask(["sh", "oracle", "{out}", "{trainer}", "{else}"], places, seconds)

    def test_reads_verdicts(self):
        script = 'mkdir -p $1; echo \'{"verdicts": [%s]}\' > $1/verdicts.json; exit %d'
        failing = json.dumps(verdict("a", "fail", "x"))
        verdicts, lines = self.ask("echo FAIL a; " + script % (failing, 1))
        self.assertEqual(([each["case"] for each in verdicts], lines), (["a"], []))
        self.assertEqual(self.ask(script % (failing, 7))[1], [])
        self.assertEqual(self.ask(script % (json.dumps(verdict("a")), 0))[1], [])

    def test_a_status_of_1_notices_without_verdicts(self):
        self.assertEqual(self.ask("echo \"said $2 $3\"; exit 1"), ([], ["said T {else}"]))
        self.assertEqual(self.ask("echo fine"), ([], []))
        self.assertEqual((self.root / "runs/x/0/said.txt").read_text(encoding="utf-8"), "fine\n")

    def test_what_cannot_answer_is_no_answer(self):
        for status in (2, 3, 4, 6, 7, 70, 130):
            with self.assertRaisesRegex(real_bugs.Wrong, f"exit status {status}: why"):
                self.ask(f"echo why >&2; exit {status}")
        with self.assertRaisesRegex(real_bugs.Wrong, "no answer"):
            self.ask("exec sleep 20", seconds=0.2)


class Acting(Folder):
    def test_names_the_first_step_and_its_signals(self):
        before = [{"step": 0, "loss": 1.0}, {"step": 1, "loss": 0.5, "lr": 0.1}]
        self.assertEqual(real_bug_acts.first_difference(before, [dict(step) for step in before]), "")
        self.assertEqual(real_bug_acts.first_difference(before, [before[0], {"step": 1, "loss": 0.4, "grad_norm": 1.0}]),
                         "step 1: loss, lr, grad_norm")
        self.assertEqual(real_bug_acts.first_difference(before, before[:1]), "1 steps instead of 2")

    def test_reads_steps_without_what_is_measured(self):
        self.write("out/a/control/1/rank1.jsonl", '{"t": "start"}\n{"t": "step", "step": 0, "loss": "nan", "step_s": 0.1}\n')
        self.assertEqual(real_bug_acts.read_traces(self.root / "out"),
                         {"a/control/1/rank1.jsonl": [{"t": "step", "step": 0, "loss": "nan"}]})

    def run_with(self, loss):
        self.write("run.sh", f'while [ "$1" != --output ]; do shift; done; mkdir -p $2; echo \'{{"t": "step", "step": 0, "loss": {loss}}}\''
                           " >$2/rank0.jsonl")
        fake = str(self.root / "fake")
        self.write("fake", f"#!/bin/sh\nexec sh {self.root}/run.sh \"$@\"\n")
        os.chmod(fake, 0o755)
        return subprocess.run([sys.executable, os.path.join(os.path.dirname(PROGRAM), "real_bug_acts.py"), fake, "T", "recipes",
                               str(self.root / "out"), str(self.root / "unchanged.json")], capture_output=True, text=True, check=False)

    def test_names_count_from_the_folder_or_from_a_root(self):
        fake = self.root / "fake"
        self.write("fake", f'#!/bin/sh\nwhile [ "$1" != --scenarios-root ]; do shift; done; echo "$2" >>{self.root}/roots\n')
        os.chmod(fake, 0o755)
        for root in ([], ["all"]):
            subprocess.run([sys.executable, os.path.join(os.path.dirname(PROGRAM), "real_bug_acts.py"), str(fake), "T", "some",
                            str(self.root / "out"), str(self.root / "none.json"), *root], check=False)
        self.assertEqual((self.root / "roots").read_text(encoding="utf-8"), "some\nall\n")

    def test_the_first_call_is_what_the_others_are_compared_with(self):
        self.assertEqual([self.run_with(loss).returncode for loss in (1, 1, 2)], [0, 0, 1])
        self.assertEqual(self.run_with(2).stdout, "rank0 step 0: loss\n")


class Comparing(Folder):
    def test_leaves_no_verdicts_that_would_be_an_answer(self):
        fake, out = self.root / "fake", self.root / "out"
        self.write("fake", '#!/bin/sh\nif [ $1 = compare ]; then echo "# bits: $STATUS"; exit $STATUS; fi\n'
                           'while [ "$1" != --output ]; do shift; done; mkdir -p $2; echo "$VERDICTS" >$2/verdicts.json\n')
        os.chmod(fake, 0o755)
        said = []
        for status in ("70", "0", "8", "1", "70"):  # of `compare`, which the first call does not ask
            done = subprocess.run([sys.executable, os.path.join(os.path.dirname(PROGRAM), "real_bug_compares.py"), str(fake), "T", "recipes",
                                   str(out), str(self.root / "unchanged")], capture_output=True, text=True, check=False,
                                  env={**os.environ, "STATUS": status, "VERDICTS": '{"verdicts": []}'})
            said.append((done.returncode, done.stdout))
            self.assertFalse((out / "verdicts.json").exists())
        self.assertEqual(said, [(0, ""), (0, ""), (1, "# bits: 8\n"), (1, "# bits: 1\n"), (2, "")])


    def test_compares_with_no_run_that_did_not_end_well(self):
        fake = self.root / "fake"
        late = '{"verdicts": [{"case": "a", "verdict": "error", "class": "timeout"}]}'
        self.write("fake", f"#!/bin/sh\nwhile [ $1 != --output ]; do shift; done; mkdir -p $2; echo '{late}' >$2/verdicts.json\n")
        os.chmod(fake, 0o755)
        done = subprocess.run([sys.executable, os.path.join(os.path.dirname(PROGRAM), "real_bug_compares.py"), str(fake), "T", "recipes",
                               str(self.root / "out"), str(self.root / "unchanged")], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (2, "the unchanged trainer's runs did not end well: a: timeout\n"))
        self.assertFalse((self.root / "unchanged").exists())


class FakeScratch(real_bugs.Scratch):
    """The program that it builds is a copy of the trainer's one source; it does not build when that is empty."""

    def build(self, target):
        text = (self.tree / "trainer.txt").read_text(encoding="utf-8")
        if not text.strip():
            raise real_bugs.Wrong("does not build")
        (self.folder / "program").write_text(text, encoding="utf-8")
        return self.folder / "program"


class Planting(Folder):
    def setUp(self):
        super().setUp()
        self.write("repo/trainer.txt", "step\n")
        for command in (["init", "-q"], ["add", "."], ["-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "All"]):
            subprocess.run(["git", "-C", str(self.root / "repo"), *command], check=True)
        # Notices what is not `step` in the program, and a tree that is still patched.
        oracle = "sh -c 'cat {trainer}; cmp -s {trainer} {tree}/trainer.txt && exit 0; test \"$(cat {tree}/trainer.txt)\" = step || exit 3; exit 1'"
        self.options = argparse.Namespace(
            scratch=str(self.root / "scratch"), results=str(self.root / "lines.jsonl"), trainwreck="harness", scenarios=[], run_option=[],
            bazel_option=[], oracle=[oracle], without_run=True, seconds=20, names=[], set="all")
        self.bugs = []

    def add(self, name, becomes):
        self.bugs.append({**ENTRY, "name": name})
        self.write(f"repo/tests/real_bugs/{name}.patch",
                   f"--- a/trainer.txt\n+++ b/trainer.txt\n@@ -1 +1 @@\n-step\n+{becomes}\n")
        self.write("repo/tests/real_bugs/bugs.yaml", "".join(
            "- " + "\n  ".join(f"{key}: {value}" for key, value in bug.items()) + "\n" for bug in self.bugs))

    def plant(self):
        output = io.StringIO()
        kept, real_bugs.Scratch = real_bugs.Scratch, FakeScratch
        try:
            with contextlib.redirect_stdout(output):
                real_bugs.plant_all(self.options, self.root / "repo", self.root / "repo/tests/real_bugs")
        finally:
            real_bugs.Scratch = kept
        return output.getvalue()

    def lines(self):
        return real_bugs.read_lines(self.root / "lines.jsonl")

    def test_one_after_the_other(self):
        self.add("half-a-step", "optimizer at half")
        self.add("no-change", "step")
        self.add("does-not-build", " ")
        self.write("repo/tests/real_bugs/does-not-apply.patch", "--- a/trainer.txt\n+++ b/trainer.txt\n@@ -1 +1 @@\n-other\n+x\n")
        self.bugs.append({**ENTRY, "name": "does-not-apply"})
        self.add("no-step", "nothing")
        self.plant()
        self.assertEqual([(line["bug"], line["noticed"]) for line in self.lines()], [
            ("unchanged", False), ("half-a-step", True), ("no-change", False), ("does-not-build", None), ("does-not-apply", None),
            ("no-step", True)])
        self.assertEqual([line.get("named_at") for line in self.lines()], [0, 1, 0, None, None, 0])
        self.assertIn("does not apply", self.lines()[4]["error"])
        self.assertEqual((self.root / "repo/trainer.txt").read_text(encoding="utf-8"), "step\n")

    def test_goes_on_where_it_was(self):
        self.add("half-a-step", "half")
        self.plant()
        self.add("no-step", "nothing")
        said = self.plant()
        self.assertEqual([line["bug"] for line in self.lines()], ["unchanged", "half-a-step", "no-step"])
        self.assertNotIn("half-a-step", said)
        self.assertRegex(said, r"all +2 +2 ")

    def test_an_unchanged_trainer_that_is_not_green_ends_it(self):
        self.add("half-a-step", "half")
        self.options.oracle = ["sh -c 'echo red; exit 1'"]
        with self.assertRaisesRegex(real_bugs.Wrong, "not green: .*red"):
            self.plant()
        self.assertEqual(self.lines(), [])

    def test_nothing_chosen(self):
        self.add("half-a-step", "half")
        self.options.set = None
        with self.assertRaisesRegex(real_bugs.Wrong, "say --set"):
            self.plant()


if __name__ == "__main__":
    unittest_xml.main(sys.argv[2:])
