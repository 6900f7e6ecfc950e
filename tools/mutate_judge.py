#!/usr/bin/env python3
"""Breaks the judge, one small change at a time, and asserts that its tests notice each.

    bazel build //harness/judge:all //tests/lies:all //tests/bad_scenarios:all //harness/plan:all //harness/cli:trainwreck
    tools/mutate_judge.py --count 100 --jobs 2

A mutant is one changed operator, constant, condition or statement of the files in FILES. It is compiled with the flags of a debug
build, linked into the unit tests and, where those see nothing, into trainwreck itself, which is then told the lies of tests/lies.
Prints a line for each mutant (killed by what, or SURVIVED) and ends with exit status 1 when one survives. A mutant that does not
compile is no mutant.
"""
import argparse
import concurrent.futures
import glob
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

FILES = [
    "harness/judge/arm_duties.cc", "harness/judge/arm_judge.cc", "harness/judge/claims.cc", "harness/judge/decided.cc",
    "harness/judge/endings.cc", "harness/judge/remarks.cc", "harness/judge/settling.cc", "harness/judge/signal_health.cc",
    "harness/judge/verdict.cc", "harness/launch/steps_done.cc", "harness/spec/claim_checks.cc",
]
TESTS = ["harness/judge/judge_test", "harness/plan/run_test", "tests/bad_scenarios/bad_scenarios_test"]
# What stands in a line -> what it becomes.
SWAPS = [
    (r" == ", " != "), (r" != ", " == "), (r" <= ", " < "), (r" >= ", " > "), (r" < ", " <= "), (r" > ", " >= "),
    (r" && ", " || "), (r" \|\| ", " && "), (r"\btrue\b", "false"), (r"\bfalse\b", "true"), (r" \+ 1\b", " - 1"),
    (r"\bif \((?!const )(.*)\) (\S.*;)$", r"if (!(\1)) \2"), (r"\bif \((?!const )(.*)\) \{$", r"if (!(\1)) {"),
    (r"\bcontinue;", ";"), (r"return (?!false|nullptr|kNone)(\w+);$", r"return {};"), (r"\bkTrue\b", "kFalse"), (r"\bkFalse\b", "kTrue"),
    (r"\bkUnknown\b", "kTrue"), (r"\bkControl\b", "kReference"), (r"\bkRemedy\b", "kDecoy"), (r"\bkDecoy\b", "kRemedy"),
    (r"\bkFault\b", "kControl"), (r"\bany_of\b", "all_of"), (r"\ball_of\b", "any_of"), (r"\bnone_of\b", "any_of"),
    (r"\.insert\(.*\);$", ".empty();"), (r"\.push_back\(.*\);$", ".empty();"), (r"= (\d+);$", r"= \1 + 1;"),
    (r"\bstd::min\b", "std::max"), (r"\bstd::max\b", "std::min"),
]
# Folders of objects with a main function.
PROGRAMS = re.compile(r"_test$|_benchmark$|fuzz|fake_target$|^trainwreck$|_simulation$|^fake_runs$")
# Lines that cannot change a verdict: words for people.
WORDS = re.compile(r'^\s*(//|#)|text \+?=|\.message|\.seen\b|remarks\.push_back|return "|"[^"]* [^"]*"')


def mutants_of(file):
    for number, line in enumerate(pathlib.Path(file).read_text().split("\n")):
        if WORDS.search(line):
            continue
        code = line.split(" //")[0]
        for pattern, replacement in SWAPS:
            for found in re.finditer(pattern, code):
                changed = code[:found.start()] + found.expand(replacement) + code[found.end():]
                if changed != code:
                    yield file, number, line, changed


class Workshop:
    def __init__(self, options, scratch):
        self.bin = pathlib.Path(options.bin or subprocess.run(
            ["bazel", "info", "bazel-bin"], check=True, capture_output=True, text=True).stdout.strip())
        self.archive = f"{scratch}/harness.a"
        subprocess.run(["ar", "rcs", self.archive, *self.library_objects()], check=True)
        self.libraries = ["-lyaml-cpp", "-lfmt", "-lsqlite3", "-lre2", "-lsimdjson", "-lgtest_main", "-lgtest", "-lgmock", "-lpthread"]

    def objects_of(self, target):
        """Position-independent ones where there are both."""
        folder, name = os.path.split(target)
        objects = glob.glob(f"{self.bin}/{folder}/_objs/{name}/*.o")
        return [path for path in objects if path.endswith(".pic.o") or path[:-2] + ".pic.o" not in objects]

    def library_objects(self):
        objects = []
        for folder in sorted(self.bin.glob("harness/*/_objs/*")):
            if folder.parts[-3] != "trainer" and not PROGRAMS.search(folder.name):
                objects += self.objects_of(f"harness/{folder.parts[-3]}/{folder.name}")
        return objects

    def compiled_as(self, file):
        """The lines that are compiled for the file, which unity.bzl may join with others, and where its own begin."""
        for joined in sorted((self.bin / file).parent.glob("unity_*.cc")):
            lines = joined.read_text().split("\n")
            if (mark := f'#line 1 "{file}"') in lines:
                return lines, lines.index(mark) + 1
        return pathlib.Path(file).read_text().split("\n"), 0

    def compile(self, mutant, folder):
        file, number, line, changed = mutant
        lines, begin = self.compiled_as(file)
        if lines[begin + number] != line:
            sys.exit(f"{file}:{number + 1} is not what was built; build anew")
        lines[begin + number] = changed
        source = pathlib.Path(folder) / "mutant.cc"
        source.write_text("\n".join(lines))
        done = subprocess.run(["g++", "-std=c++20", "-O0", "-I.", "-w", "-c", str(source), "-o", f"{folder}/mutant.o"],
                              check=False, capture_output=True)
        return done.returncode == 0

    def link(self, program, folder):
        target = f"{folder}/{os.path.basename(program)}"
        # The mutant comes first, so that its namesake in the archive is not looked at.
        subprocess.run(["g++", "-o", target, f"{folder}/mutant.o", *self.objects_of(program), "-Wl,--start-group",
                        self.archive, "-Wl,--end-group", *self.libraries], check=True, capture_output=True)
        return target

    def failing_without_a_mutant(self):
        """The tests that are red already, which would kill every mutant."""
        return [test for test in TESTS
                if subprocess.run([f"{self.bin}/{test}"], check=False, capture_output=True).returncode != 0]

    def killed_by(self, mutant):
        """The name of what notices, '' when nothing does, None when it is no mutant."""
        with tempfile.TemporaryDirectory() as folder:
            if not self.compile(mutant, folder):
                return None
            for test in TESTS:
                program = self.link(test, folder)
                if subprocess.run([program], check=False, capture_output=True, timeout=300).returncode != 0:
                    return os.path.basename(test)
            told = subprocess.run(
                ["python3", "tests/lies/lies_test.py", "--trainwreck", self.link("harness/cli/trainwreck", folder),
                 "--liar", f"{self.bin}/tests/lies/liar"], check=False, capture_output=True, text=True, timeout=900)
            return "lies" if told.returncode != 0 else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--bin", default="", help="bazel-bin; default: asked of bazel")
    options = parser.parse_args()
    scratch = tempfile.TemporaryDirectory()
    workshop = Workshop(options, scratch.name)
    if failing := workshop.failing_without_a_mutant():
        sys.exit(f"red without any mutant: {', '.join(failing)}")
    everything = [mutant for file in FILES for mutant in mutants_of(file)]
    random.Random(options.seed).shuffle(everything)
    killed, survived = 0, 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        waiting = iter(everything)
        running = {}
        while killed + survived < options.count:
            for mutant in waiting:
                running[pool.submit(workshop.killed_by, mutant)] = mutant
                if len(running) >= options.jobs:
                    break
            if not running:
                break
            done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                file, number, line, changed = running.pop(future)
                by = future.result()
                if by is None:
                    continue
                killed, survived = killed + bool(by), survived + (not by)
                print(f"{'killed by ' + by if by else 'SURVIVED'}: {file}:{number + 1}\n    {line.strip()}\n    "
                      f"{changed.strip()}", flush=True)
    print(f"{killed + survived} mutants: {killed} killed, {survived} survived")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
