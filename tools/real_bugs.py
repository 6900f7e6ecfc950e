#!/usr/bin/env python3
"""Plants real bugs of training stacks into the reference trainer, one after the other, and says which are noticed.

    tools/real_bugs.py list [--set open|held_out|fresh|all]   the open ones where nothing is said
    tools/real_bugs.py check                            all patches apply to this tree
    tools/real_bugs.py plant NAME... | --set open|held_out|fresh|all  [--scenarios 'nan/*' ...] [--oracle COMMAND ...]
    tools/real_bugs.py summary results.jsonl

The bugs are those of tests/real_bugs/bugs.yaml. `plant` works on the last commit, in a worktree and with a Bazel output base
of its own below --scratch, both kept for the next bug. The unchanged trainer comes first and must be green. Each bug is one
line in --results; a bug that has a line of this commit and these oracles is not run again.
An --oracle is a command of its own, which notices a bug with exit status 1; {trainwreck}, {trainer}, {tree} and {out} (a
folder) are replaced. It may leave {out}/verdicts.json, which is then read. Without one, `trainwreck run` is the only oracle.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import time

from real_bug_notices import BASELINE, WORDS_OF_PART, noticing, read_notices, summarise

FIELDS = ("name", "kind", "part", "what", "source", "shows", "set")
SETS = ("open", "held_out", "fresh")
FIRST_LINES = 10


class Wrong(Exception):
    """What the user has to mend."""


def read_bugs(folder):
    """The entries of bugs.yaml, a list of flat maps; every one has all FIELDS, and its patch lies beside it."""
    bugs, problems = [], []
    for number, line in enumerate((folder / "bugs.yaml").read_text(encoding="utf-8").split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        found = re.fullmatch(r"(- |  )(\w+): (\S.*)", line)
        if not found or (found[1] == "  " and not bugs):
            problems.append(f"line {number}: not `key: text` of an entry")
            continue
        if found[1] == "- ":
            bugs.append({})
        bugs[-1][found[2]] = found[3].strip()
    names = collections.Counter(bug.get("name") for bug in bugs)
    for bug in bugs:
        name = bug.get("name", "")
        why = [f"has no {field}" for field in FIELDS if field not in bug] + [f"has {key}" for key in bug if key not in FIELDS]
        why += ["its name is not in kebab case"] * (not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name))
        why += ["stands twice"] * (names[name] > 1)
        why += ["its set is none of " + ", ".join(SETS)] * (bug.get("set") not in SETS)
        why += ["no words are known for its part"] * (bug.get("part") not in WORDS_OF_PART)
        why += ["its source is no address"] * (not bug.get("source", "").startswith("https://"))
        why += ["has no patch"] * (not (folder / f"{name}.patch").is_file())
        problems += [f"{name or 'an entry'}: {each}" for each in why]
    problems += [f"{path.name}: no entry" for path in sorted(folder.glob("*.patch")) if path.stem not in names]
    if problems:
        raise Wrong("bugs.yaml:\n  " + "\n  ".join(problems))
    return bugs


def choose(bugs, names, chosen_set):
    unknown = set(names) - {bug["name"] for bug in bugs}
    if unknown:
        raise Wrong("no such bug: " + ", ".join(sorted(unknown)))
    return [bug for bug in bugs if bug["name"] in names or chosen_set in ("all", bug["set"])]


def git_apply(root, patch, *options):
    # A repository around the folder must not change what paths mean.
    ceiling = {**os.environ, "GIT_CEILING_DIRECTORIES": str(root.parent)}
    return subprocess.run(["git", "apply", *options, str(patch.resolve())], cwd=root, env=ceiling, capture_output=True, text=True,
                          check=False)


def check(root, folder):
    """Names and reasons of the patches that do not apply to the files below `root`."""
    broken = {}
    for bug in read_bugs(folder):
        done = git_apply(root, folder / f"{bug['name']}.patch", "--check")
        if done.returncode != 0:
            broken[bug["name"]] = done.stderr.strip()
    return broken


# --- Planting ---


class Scratch:
    """A worktree of one commit, and what is built and run for it."""

    def __init__(self, options, root):
        self.folder = pathlib.Path(options.scratch).resolve()
        self.tree = self.folder / "tree"
        self.options = options
        self.root = root
        self.commit = self.git(root, "rev-parse", "HEAD")

    def git(self, where, *arguments):
        return subprocess.run(["git", "-C", str(where), *arguments], check=True, capture_output=True, text=True).stdout.strip()

    def prepare(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self.tree.exists():
            self.git(self.root, "worktree", "prune")
            self.git(self.root, "worktree", "add", "--detach", str(self.tree), self.commit)
        self.revert()
        self.git(self.tree, "checkout", "--detach", self.commit)
        if (self.root / ".bazelrc.local").exists():
            shutil.copy(self.root / ".bazelrc.local", self.tree)

    def revert(self):
        self.git(self.tree, "checkout", "--", ".")

    def bazel(self, *arguments):
        command = ["bazel", f"--output_base={self.folder / 'output_base'}", *arguments]
        return subprocess.run(command, cwd=self.tree, capture_output=True, text=True, check=False)

    def build(self, target):
        """The program's path, copied to where the next build does not reach."""
        options = self.options.bazel_option
        done = self.bazel("build", *options, target)
        if done.returncode != 0:
            raise Wrong(f"{target} does not build: {done.stderr[-1500:]}")
        folder, _, name = target[2:].partition(":")
        built = pathlib.Path(self.bazel("info", *options, "bazel-bin").stdout.strip()) / folder / name
        copy = self.folder / "bin" / name
        copy.parent.mkdir(exist_ok=True)
        copy.unlink(missing_ok=True)
        shutil.copy(built, copy)
        return copy

    def harness(self):
        """Of the unchanged tree, whatever is planted."""
        return pathlib.Path(self.options.trainwreck).resolve() if self.options.trainwreck else self.build("//harness/cli:trainwreck")


def oracles_of(options):
    run = ["{trainwreck}", "run", *options.scenarios, *options.run_option, "--target", "{trainer}", "--scenarios-root",
           "{tree}/scenarios", "--output", "{out}", "--history", "none", "--keep", "none", "--color", "never"]
    return [run] * (not options.without_run) + [shlex.split(command) for command in options.oracle]


def ask(oracle, places, seconds):
    """The verdicts that an oracle left, and its lines when it noticed without any. Wrong when it could not answer."""
    out = pathlib.Path(places["out"])
    shutil.rmtree(out, ignore_errors=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    command = [re.sub(r"\{(\w+)\}", lambda found: places.get(found[1], found[0]), word) for word in oracle]
    try:
        done = subprocess.run(command, cwd=places["tree"], capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired as error:
        raise Wrong(f"{shlex.join(command)}: no answer in {seconds} s") from error
    out.mkdir(exist_ok=True)
    (out / "said.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
    if (out / "verdicts.json").exists():
        verdicts = json.loads((out / "verdicts.json").read_text(encoding="utf-8"))["verdicts"]
    else:
        verdicts = []
    # 5: something was inconclusive; 7: a run crashed, timed out or ended early, of which there is a verdict.
    if done.returncode not in (0, 1, 5) and not (done.returncode == 7 and verdicts):
        raise Wrong(f"{shlex.join(command)}: exit status {done.returncode}: {done.stderr[-800:]}")
    alone = done.returncode == 1 and not any(map(noticing, verdicts))
    return verdicts, [line for line in done.stdout.split("\n") if line.strip()][:FIRST_LINES] if alone else []


def plant(scratch, bug, patch, harness, options):
    """The bug's line."""
    began = time.monotonic()
    line = {"bug": bug["name"], "kind": bug["kind"], "part": bug["part"], "set": bug["set"], **identity(scratch.commit, options)}
    verdicts, lines = [], []
    try:
        if patch:
            applied = git_apply(scratch.tree, patch)
            if applied.returncode != 0:
                raise Wrong(f"the patch does not apply: {applied.stderr.strip()}")
        trainer = scratch.build("//trainer:trainwreck-trainer")
        line["build_seconds"] = round(time.monotonic() - began, 1)
        if patch:  # the oracles see the scenarios of an unchanged tree, and no patched file
            scratch.revert()
        for number, oracle in enumerate(oracles_of(options)):
            places = {"trainwreck": str(harness), "trainer": str(trainer), "tree": str(scratch.tree),
                      "out": str(scratch.folder / "runs" / bug["name"] / str(number))}
            more_verdicts, more_lines = ask(oracle, places, options.seconds)
            verdicts, lines = verdicts + more_verdicts, lines + more_lines
        line.update(read_notices(bug, verdicts, lines))
    except Wrong as error:
        line.update({"noticed": None, "error": str(error)})
    finally:
        scratch.revert()
    line["seconds"] = round(time.monotonic() - began, 1)
    return line


# --- Results ---


def identity(commit, options):
    return {"commit": commit, "oracles": [shlex.join(oracle) for oracle in oracles_of(options)]}


def read_lines(path):
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def left_to_do(bugs, lines, same):
    """The bugs without a line that was made by the same commit and oracles. A line with an error is no answer."""
    done = {line["bug"] for line in lines if line["noticed"] is not None and all(line.get(key) == same[key] for key in same)}
    return [bug for bug in bugs if bug["name"] not in done]


def plant_all(options, root, folder):
    bugs = choose(read_bugs(folder), options.names, options.set)
    if not bugs:
        raise Wrong("name bugs, or say --set")
    scratch, results = Scratch(options, root), pathlib.Path(options.results)
    scratch.prepare()
    harness = scratch.harness()
    unchanged = {"name": BASELINE, "kind": "", "part": "", "set": ""}
    for bug in left_to_do([unchanged, *bugs], read_lines(results), identity(scratch.commit, options)):
        line = plant(scratch, bug, None if bug is unchanged else folder / f"{bug['name']}.patch", harness, options)
        if bug is unchanged and line["noticed"] is not False:
            raise Wrong("the unchanged trainer is not green: " + "; ".join([line.get("error", ""), *line.get("messages", [])]))
        with open(results, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        said = {None: "ERROR", True: "noticed", False: "green" if bug is unchanged else "MISSED"}[line["noticed"]]
        print(f"{said:<8} {line['seconds']:7.1f} s  {bug['name']}  {line.get('error', '') or '; '.join(line['messages'][:1])}",
              flush=True)
    print(*summarise(read_lines(results)), sep="\n")


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("list", "check", "plant", "summary"))
    parser.add_argument("names", nargs="*", help="bugs; of summary: the file of results")
    parser.add_argument("--set", choices=(*SETS, "all"))
    parser.add_argument("--root", type=pathlib.Path, default=root, help="where patches must apply (check)")
    parser.add_argument("--scratch", default="/tmp/trainwreck-real-bugs")
    parser.add_argument("--results", default="real_bugs.jsonl")
    parser.add_argument("--trainwreck", help="harness of the unchanged tree; default: is built")
    parser.add_argument("--scenarios", nargs="+", default=[], help="what is run; default: all")
    parser.add_argument("--run-option", action="append", default=[], help="of `trainwreck run`, as --run-option=--seeds=2")
    parser.add_argument("--bazel-option", action="append", default=[])
    parser.add_argument("--oracle", action="append", default=[], help="a command to ask as well")
    parser.add_argument("--without-run", action="store_true", help="ask only the commands of --oracle")
    parser.add_argument("--seconds", type=float, default=3600, help="for one oracle and bug")
    options = parser.parse_args()
    folder = options.root / "tests" / "real_bugs"
    try:
        if options.verb == "list":
            for bug in choose(read_bugs(folder), options.names, options.set or ("" if options.names else "open")):
                print(f"{bug['set']:<9} {bug['kind']:<15} {bug['name']:<36} {bug['what']}")
        elif options.verb == "check":
            broken = check(options.root, folder)
            print(*(f"{name}: {why}" for name, why in broken.items()), f"{len(broken)} patches do not apply", sep="\n")
            return 1 if broken else 0
        elif options.verb == "plant":
            plant_all(options, root, folder)
        else:
            print(*summarise(read_lines(pathlib.Path((options.names or [options.results])[0]))), sep="\n")
    except (Wrong, subprocess.CalledProcessError) as error:
        sys.exit(f"real_bugs: {error} {getattr(error, 'stderr', '') or ''}".strip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
