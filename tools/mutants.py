#!/usr/bin/env python3
"""Changes the reference trainer by machine, one small edit at a time, and says which edits the scenarios notice.

    tools/mutants.py list                                    what can be changed
    tools/mutants.py build                                   one trainer that holds all of it
    tools/mutants.py run [MUTANT ...] [--sample N --seed S] [--scenarios 'twins/*' ...] [--results FILE]
    tools/mutants.py summary [--results FILE]

A mutant is one edit of tools/mutant_edits.py: another operator or number, a condition turned round, a statement left out.
tools/mutants.h makes a switch of each, so that all are in one program and TRAINWRECK_MUTANT says by number which one acts. `build`
works on the last commit, in a worktree and with a Bazel output base of its own below --scratch; edits that do not compile are
left away, and with no mutant the program must leave the traces of the plain one, bit for bit. `run` first asks the scenarios
without a mutant: they must be green, and what they do not reach is not run. A mutant then meets the scenarios that reach it, from
the quickest on, until one notices. Each is one line in --results; one that has a line of this program, these scenarios and
options is not run again. For a mutant that none notices, tools/real_bug_acts.py says whether any trace of SHOWN shows it.
"""
import argparse
import collections
import dataclasses
import hashlib
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import mutant_edits
from real_bug_notices import WORDS_OF_PART, noticing, read_notices
from real_bugs import Scratch, Wrong, read_lines

TRAINER = "//trainer:trainwreck-trainer"
# What trains. Left out: recipe/ (another default is another recipe), devices/ but the generators, telemetry/ but the statistics that
# clipping uses (these write the trace: a mutant there blinds the judge and trains as before), rendezvous and the process around
# the loop (main, events), and what only tests use.
SOURCES = ("build.cc", "loop*.cc", "checkpoints/*.cc", "data/*.cc", "devices/rng.cc", "models/*.cc", "optimizers/*.cc", "ranks/bucket.cc",
           "ranks/communicator.cc", "ranks/communicator_gloo.cc", "ranks/replicas.cc", "tensor_views.cc")
# Words of real_bug_notices.WORDS_OF_PART for where a file's mutants sit; those of other files have no one part.
PARTS = {"checkpoints/": "checkpoint", "data/sampler": "sampler", "data/shards": "sampler", "data/": "data", "models/precision": "precision",
         "models/": "model", "optimizers/clipping": "clipping", "optimizers/scaler": "precision", "optimizers/schedules": "schedule",
         "optimizers/": "optimizer", "ranks/": "ranks"}
DEFAULT_SCENARIOS = ["twins/*", "invariants/*"]
MOST_ROUNDS = 6  # of builds, each without the edits that did not compile in the one before
# Of verdicts' classes: the word in the table. Every other is a claim of a scenario about its fault.
MEANS = {"twins_differ": "twin", "invariant_broken": "invariant", "crash": "crash", "incomplete": "crash", "leak": "crash",
         "infrastructure": "crash", "timeout": "timeout"}
MEMORY_LIMIT, FILE_LIMIT = 6 << 30, 1 << 30  # bytes of a process's addresses, of one file: a mutant may never stop
# Whose control runs show whether a mutant that survives does anything, and the root of their names.
SHOWN = {"tests/real_bugs/recipes": "tests/real_bugs/recipes", "scenarios/twins": "scenarios"}
GRACE = 20  # seconds that a scenario has besides its share of --patience
SINGLY = 5  # scenarios that are asked one by one
MARK = "TRAINWRECK_MUTANTS_RUN"


def sources_in(tree):
    return sorted({str(path.relative_to(tree)) for pattern in SOURCES for path in (tree / "trainer").glob(pattern)
                   if not path.name.endswith("_test.cc")})


def all_edits(tree):
    edits = []
    for path in sources_in(tree):
        edits += mutant_edits.find_edits(path, (tree / path).read_text(encoding="utf-8"))
    for number, edit in enumerate(edits, 1):
        edit.number = number
    return edits


def part_of(path):
    """One of WORDS_OF_PART, or none."""
    assert set(PARTS.values()) <= set(WORDS_OF_PART)
    return next((part for begin, part in PARTS.items() if path.startswith("trainer/" + begin)), "")


# --- Building ---


def write_sources(tree, edits):
    """Writes the edits into the sources below `tree`; where they stand in each file: {path: (text, places)}."""
    head = (tree / "tools/mutants.h").read_text(encoding="utf-8").replace("#pragma once\n", "#ifndef TRAINWRECK_MUTANTS\n")
    by_path = collections.defaultdict(list)
    for edit in edits:
        by_path[edit.path].append(edit)
    written = {}
    for path, some in by_path.items():
        text, places = mutant_edits.write_edits((tree / path).read_text(encoding="utf-8"), some)
        (tree / path).write_text(f'#line 1 "mutants.h"\n{head}#define TRAINWRECK_MUTANTS\n#endif\n#line 1 "{path}"\n{text}', encoding="utf-8")
        written[path] = (text, places)
    return written


def not_compiling(said, written):
    """The numbers of the edits that a compiler's messages are about."""
    found = set()
    for path, line, column in re.findall(r"(?m)^(?:\S*/)?(trainer/[\w/]+\.cc):(\d+):(\d+): +(?:error|.*required from)", said):
        if path not in written:
            continue
        text, places = written[path]
        starts = [0, *(match.end() for match in re.finditer("\n", text))]
        if int(line) >= len(starts):
            continue
        at = starts[int(line) - 1] + int(column) - 1
        here = [place for place in places if starts[int(line) - 1] <= place[0] < starts[int(line)]] or places
        found.add(min(here, key=lambda place: abs(place[0] - at))[1])
    return found


def build(options, root):
    scratch = Scratch(options, root)
    scratch.prepare()
    harness = scratch.harness()
    shutil.move(scratch.build(TRAINER), scratch.folder / "bin" / "plain-trainer")
    edits, dropped = all_edits(scratch.tree), set()
    quiet = "|".join(path.removesuffix(".cc").replace("/", r"\/") for path in sources_in(scratch.tree))
    options.bazel_option = [*options.bazel_option, rf"--per_file_copt=({quiet}|trainer\/unity_\w+)\.cc@-w"]
    try:
        for _ in range(MOST_ROUNDS):
            scratch.revert()
            written = write_sources(scratch.tree, [edit for edit in edits if edit.number not in dropped])
            done = scratch.bazel("build", "--keep_going", *options.bazel_option, TRAINER)
            if done.returncode == 0:
                break
            bad = not_compiling(done.stderr, written) - dropped
            print(f"{len(bad)} edits do not compile", flush=True)
            if not bad:
                raise Wrong("does not build, and no edit is to blame:\n" + done.stderr[-3000:])
            dropped |= bad
        else:
            raise Wrong(f"does not build after {MOST_ROUNDS} rounds")
        mutants = shutil.move(scratch.build(TRAINER), scratch.folder / "bin" / "mutants-trainer")
    finally:
        scratch.revert()
    built = {"commit": scratch.commit, "program": hashlib.sha256(pathlib.Path(mutants).read_bytes()).hexdigest()[:16], "trainwreck": str(harness),
             "dropped": sorted(dropped), "edits": [dataclasses.asdict(edit) for edit in edits]}
    for path in scratch.folder.glob("unchanged-*.json"):
        path.unlink()
    shown = Workshop(scratch.folder, built, options).acts(0)
    if shown:
        raise Wrong("without a mutant the program does not train as the plain one:\n" + "\n".join(shown))
    (scratch.folder / "built.json").write_text(json.dumps(built), encoding="utf-8")
    print(f"{len(edits)} mutants, {len(dropped)} of them do not compile; without one, all traces are those of the plain trainer")


# --- Running ---


def end_marked(mark):
    """Ends the processes that have this run's mark, whoever started them; their numbers."""
    ended = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                os.kill(int(folder.name), signal.SIGKILL)
                ended.append(int(folder.name))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            pass
    return ended


def limit_itself():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_LIMIT, FILE_LIMIT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run_marked(command, environment, seconds, folder):
    """Exit status (None: it took too long), stdout and stderr of a command that nothing outlives."""
    mark = f"{MARK}={os.getpid()}.{time.monotonic_ns()}"
    name, value = mark.split("=")
    with open(folder / "stdout", "w+", encoding="utf-8") as out, open(folder / "stderr", "w+", encoding="utf-8") as err:
        process = subprocess.Popen(command, env={**os.environ, **environment, name: value}, cwd=folder, stdin=subprocess.DEVNULL,
                                   stdout=out, stderr=err, start_new_session=True, preexec_fn=limit_itself)
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            while end_marked(mark):
                time.sleep(0.05)
            process.wait()
    return status, (folder / "stdout").read_text(errors="replace"), (folder / "stderr").read_text(errors="replace")


def is_green(status, verdicts):
    """With fewer seeds than a scenario wants (--run-option=--seeds=1), the best that it says is that they are too few."""
    return status == 0 or (status == 5 and verdicts and all(verdict["verdict"] == "pass" or verdict["class"] == "too_few_seeds" for verdict in verdicts))


class Workshop:
    """What `build` left below --scratch, and how it is asked."""

    def __init__(self, folder, built, options):
        self.folder, self.built, self.options = folder, built, options
        self.tree = folder / "tree"
        self.trainer = folder / "bin" / "mutants-trainer"
        self.runs = folder / "runs"
        self.runs.mkdir(exist_ok=True)
        self.edits = [mutant_edits.Edit(**edit) for edit in built["edits"]]
        # Descriptions that are kept must not be a mutant's, and nothing goes into the user's own history.
        self.environment = {"XDG_CACHE_HOME": str(folder / "cache"), "OMP_NUM_THREADS": "1"}

    def identity(self):
        return {"commit": self.built["commit"], "program": self.built["program"], "scenarios": self.options.scenarios, "run_options": self.options.run_option}

    def names(self):
        """Of the scenarios that are asked."""
        found = []
        for pattern in self.options.scenarios:
            some = sorted(str(path.relative_to(self.tree / "scenarios").with_suffix("")) for path in (self.tree / "scenarios").glob(pattern + ".yaml"))
            found += [name for name in some if pathlib.Path(name).name != "defaults" and name not in found]
        if not found:
            raise Wrong("no such scenarios: " + " ".join(self.options.scenarios))
        return found

    def ask(self, scenarios, number, seconds, reached=None):
        """Exit status, verdicts, and what it said."""
        out = self.runs / "out"
        shutil.rmtree(out, ignore_errors=True)
        environment, isolate = {**self.environment, "TRAINWRECK_MUTANT": str(number)}, "fork"
        if reached:  # a warm process has used every model before a scenario does
            environment["TRAINWRECK_MUTANTS_REACHED"], isolate = str(reached), "exec"
        status, said, complained = run_marked(
            # No --fail-fast: with fewer seeds than it wants a case is inconclusive, and would cut off the others.
            [self.built["trainwreck"], "run", *scenarios, "--isolate", isolate, *self.options.run_option, "--target", str(self.trainer), "--scenarios-root",
             str(self.tree / "scenarios"), "--output", str(out), "--history", "none", "--keep", "none", "--color", "never"],
            environment, seconds, self.runs)
        path = out / "verdicts.json"
        verdicts = json.loads(path.read_text(encoding="utf-8"))["verdicts"] if status is not None and path.exists() else []
        return status, verdicts, complained or said

    def acts(self, number):
        """Where traces of SHOWN first differ from the plain trainer's, which are made once."""
        found = []
        for recipes in SHOWN:
            unchanged = self.folder / f"unchanged-{recipes.replace('/', '-')}.json"
            if not unchanged.exists():
                said = self.traces(self.folder / "bin" / "plain-trainer", 0, recipes, unchanged)
                if not unchanged.exists():
                    raise Wrong("the plain trainer leaves no traces: " + "\n".join(said))
            found += self.traces(self.trainer, number, recipes, unchanged)
        return found

    def traces(self, trainer, number, recipes, unchanged):
        out, root = self.runs / "acts", SHOWN[recipes]
        shutil.rmtree(out, ignore_errors=True)
        status, said, complained = run_marked(
            [sys.executable, str(self.tree / "tools/real_bug_acts.py"), self.built["trainwreck"], str(trainer), str(self.tree / recipes), str(out),
             str(unchanged), str(self.tree / root)], {**self.environment, "TRAINWRECK_MUTANT": str(number)}, self.options.seconds, self.runs)
        if status == 0:
            return []
        return said.strip().split("\n") if status == 1 else [f"{recipes}: no traces: {complained.strip()[-200:]}"]

    def reach(self):
        """By scenario: its seconds, and the mutants that it reaches; asked once."""
        path = self.folder / "reached.json"
        kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        identity = {**self.identity(), "scenarios": []}
        if kept.get("identity") != identity:
            kept = {"identity": identity, "scenarios": {}, "no_operator": []}
        for scenario in self.names():
            if scenario in kept["scenarios"]:
                continue
            marks = self.runs / "reached"
            marks.write_bytes(bytes(len(self.edits) + 1))
            began = time.monotonic()
            status, verdicts, said = self.ask([scenario], 0, self.options.seconds, marks)
            is_decided = is_green(status, verdicts)
            if not is_decided and status != 5:
                raise Wrong(f"{scenario} is not green without a mutant: {said.strip()[-800:]}")
            if not is_decided:  # as one that compares two seeds, with --run-option=--seeds=1
                print(f"{scenario}: inconclusive without a mutant, so it is not asked", flush=True)
            bytes_now = marks.read_bytes() if is_decided else b""
            kept["scenarios"][scenario] = {"seconds": round(time.monotonic() - began, 1),
                                           "reached": [number for number, byte in enumerate(bytes_now) if byte == 1]}
            kept["no_operator"] = sorted({*kept["no_operator"], *(number for number, byte in enumerate(bytes_now) if byte == 2)})
            path.write_text(json.dumps(kept), encoding="utf-8")
            print(f"{scenario}: {kept['scenarios'][scenario]['seconds']} s, reaches {len(kept['scenarios'][scenario]['reached'])}", flush=True)
        return kept

    def judge(self, edit, scenarios):
        """The mutant's line: by what it is noticed."""
        began, where = time.monotonic(), f"{edit.path}:{edit.line}:{edit.column}"
        line = {"mutant": edit.number, "where": where, "kind": edit.kind, "what": edit.what, "part": part_of(edit.path),
                "outcome": "survived" if scenarios else "unreached", "by": "", "asked": [], **self.identity()}
        # Most are noticed by one of the quickest. The rest are asked in one go, which leaves no core idle.
        for group in filter(None, [*([one] for one in scenarios[:SINGLY]), scenarios[SINGLY:]]):
            names = [name for name, _ in group]
            status, verdicts, said = self.ask(names, edit.number, self.options.patience * sum(seconds for _, seconds in group) + GRACE)
            line["asked"] += names
            if status == 130:
                raise KeyboardInterrupt
            judged = {verdict["case"].partition("[")[0] for verdict in verdicts}
            if status in (0, 5) and len(names) > 1 and (missing := set(names) - judged):
                raise Wrong(f"{edit.number}: no verdict of {', '.join(sorted(missing))}")
            notices = read_notices({"part": line["part"]}, verdicts, [])
            if status is None or status not in (0, 5):
                means = {MEANS.get(verdict["class"], "claim") for verdict in verdicts if noticing(verdict)}
                by = next((each for each in ("invariant", "twin", "claim", "timeout") if each in means), "timeout" if status is None else "crash")
                message = (notices["messages"] or [(said.strip().split("\n") or [""])[-1]])[0]
                scenario = next((verdict["case"] for verdict in verdicts if noticing(verdict)), ", ".join(names))
                line.update({"outcome": "killed", "by": by, "scenario": scenario, "message": message[:400], "named_at": notices["named_at"]})
                break
            if status == 5 and not is_green(status, verdicts) and line["outcome"] == "survived":
                scenario = next((verdict["case"] for verdict in verdicts if verdict["verdict"] != "pass"), ", ".join(names))
                line.update({"outcome": "inconclusive", "scenario": scenario})
        if line["outcome"] in ("survived", "inconclusive"):
            line["acts"] = self.acts(edit.number)[:4]
        line["seconds"] = round(time.monotonic() - began, 1)
        return line


def chosen(edits, options):
    if options.names:
        wanted = {int(name) for name in options.names}
        return [edit for edit in edits if edit.number in wanted]
    if not options.sample:
        return edits
    return random.Random(options.seed).sample(edits, min(options.sample, len(edits)))


def run(options):
    folder = pathlib.Path(options.scratch).resolve()
    if not (folder / "built.json").exists():
        raise Wrong("nothing is built below " + str(folder))
    built = json.loads((folder / "built.json").read_text(encoding="utf-8"))
    workshop, results = Workshop(folder, built, options), pathlib.Path(options.results)
    reach = workshop.reach()
    none = {*built["dropped"], *reach["no_operator"]}
    asked = sorted(((name, reach["scenarios"][name]) for name in workshop.names()), key=lambda item: item[1]["seconds"])
    same = workshop.identity()
    done = {line["mutant"] for line in read_lines(results) if all(line.get(key) == same[key] for key in same)}
    for edit in chosen([edit for edit in workshop.edits if edit.number not in none], options):
        if edit.number in done:
            continue
        line = workshop.judge(edit, [(name, one["seconds"]) for name, one in asked if edit.number in one["reached"]])
        with open(results, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(f"{line['outcome']:<12} {line['by']:<9} {line['seconds']:6.1f} s  {edit.number:>5} {line['where']} {edit.what[:70]}", flush=True)
    print(*summarise(read_lines(results)), sep="\n")


# --- Results ---


def summarise(lines):
    """Tables by kind and by file, then what nobody noticed; of several lines of a mutant the last counts."""
    last = list({(line["program"], line["mutant"]): line for line in lines}.values())
    if len({line["program"] for line in last}) > 1:
        yield "lines of several programs: their numbers are not of the same mutants"
    for title, key in (("kind", lambda line: line["kind"]), ("file", lambda line: line["where"].split(":")[0])):
        groups = collections.defaultdict(list)
        for line in last:
            groups[key(line)].append(line)
        yield f"{title:<42} {'mutants':>7} {'reached':>7} {'killed':>7}  of reached"
        for name, some in [*sorted(groups.items()), ("all", last)]:
            killed = [line for line in some if line["outcome"] == "killed"]
            reached = [line for line in some if line["outcome"] != "unreached"]
            by = ", ".join(f"{word} {count}" for word, count in collections.Counter(line["by"] for line in killed).most_common())
            yield f"{name:<42} {len(some):>7} {len(reached):>7} {len(killed):>7} {100 * len(killed) / max(len(reached), 1):>10.1f}%  {by}".rstrip()
    for outcome in ("survived", "inconclusive", "unreached"):
        some = [line for line in last if line["outcome"] == outcome]
        if some:
            yield f"{outcome}: {len(some)}"
        for line in sorted(some, key=lambda each: each["mutant"]):
            shown = "" if outcome == "unreached" else f"  [{line['acts'][0] if line['acts'] else 'no trace differs'}]"
            yield f"  {line['mutant']:>5} {line['where']} {line['what'][:100]}{shown}"


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("list", "build", "run", "summary"))
    parser.add_argument("names", nargs="*", help="of run: mutants by number; default: a sample, or all")
    parser.add_argument("--scratch", default="/tmp/trainwreck-mutants")
    parser.add_argument("--results", default="mutants.jsonl")
    parser.add_argument("--trainwreck", help="harness of the unchanged tree; default: is built")
    parser.add_argument("--bazel-option", action="append", default=[])
    parser.add_argument("--run-option", action="append", default=[], help="of `trainwreck run`, as --run-option=--cores=2")
    parser.add_argument("--scenarios", nargs="+", default=DEFAULT_SCENARIOS, help="what is asked; default: %(default)s")
    parser.add_argument("--sample", type=int, default=0, help="so many mutants, drawn from those that compile")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--patience", type=float, default=5, help="times what a scenario takes without a mutant, and 20 s")
    parser.add_argument("--seconds", type=float, default=1200, help="for a scenario without a mutant")
    options = parser.parse_args()
    try:
        if options.verb == "list":
            edits = all_edits(root)
            print(*(f"{edit.number:>5} {edit.path}:{edit.line}:{edit.column} {edit.kind}: {edit.what}" for edit in edits), sep="\n")
        elif options.verb == "build":
            build(options, root)
        elif options.verb == "run":
            run(options)
        else:
            print(*summarise(read_lines(pathlib.Path(options.results))), sep="\n")
    except (Wrong, subprocess.CalledProcessError) as error:
        sys.exit(f"mutants: {error} {getattr(error, 'stderr', '') or ''}".strip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
