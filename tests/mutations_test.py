#!/usr/bin/env python3
"""Breaks scenarios, targets and the harness itself, and asserts that trainwreck says what is wrong.

Run from the root of the checkout. Each case prints "ok NAME" or "FAILED NAME: why". The last case
asserts that every class of verdict has been seen here, planted by a scenario or by a case.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import uuid

import unittest_xml

CASES = []
SCENARIOS = pathlib.Path("scenarios")
TESTS = pathlib.Path("tests")
CALL_SECONDS = 240


class Mismatch(Exception):
    """What was found is not what had to be found."""


def case(function):
    CASES.append(function)
    return function


def require(condition, why):
    if not condition:
        raise Mismatch(why)


class Bench:
    """The programs under test, and a folder for each case."""

    def __init__(self, options, folder):
        self.trainwreck = os.path.abspath(options.trainwreck)
        self.trainer = os.path.abspath(options.trainer)
        self.fake_target = os.path.abspath(options.fake_target)
        self.mutant = os.path.abspath(TESTS / "mutant_target.py")
        self.folder = pathlib.Path(folder)
        self.classes = set()  # that have been seen where they were planted

    def fresh(self, name):
        folder = self.folder / f"{name}-{uuid.uuid4().hex[:6]}"
        folder.mkdir()
        return folder

    def command(self, *arguments, target, root, output):
        return [self.trainwreck, "run", "--target", target, "--scenarios-root", str(root),
                "--output", str(output), "--color", "never", *map(str, arguments)]

    def run(self, *arguments, target=None, root=SCENARIOS, env=None):
        """The exit status, the verdicts by case and the folder with the output."""
        folder = self.fresh("run")
        report = folder / "report.json"
        command = self.command(*arguments, "--report", f"json={report}",
                               target=target or self.trainer, root=root, output=folder / "out")
        done = subprocess.run(command, env=dict(os.environ, **(env or {})), text=True, check=False,
                              capture_output=True, timeout=CALL_SECONDS)
        verdicts = {}
        if report.exists():
            verdicts = {each["case"]: each for each in json.loads(report.read_text())["verdicts"]}
        if done.returncode in (2, 3, 70):
            raise Mismatch(f"exit status {done.returncode}: {done.stderr.strip()[-800:]}")
        return done.returncode, verdicts, folder / "out"

    def require_class(self, wanted, *arguments, status=1, **more):
        """Runs one case, which must end with the verdict and class `wanted` and this status."""
        found_status, verdicts, _ = self.run(*arguments, **more)
        require(len(verdicts) == 1, f"{len(verdicts)} verdicts instead of 1")
        (verdict,) = verdicts.values()
        found = f"{verdict['verdict']}/{verdict['class']}"
        require(found == wanted, f"{found} instead of {wanted}: {verdict['reason']}")
        require(found_status == status, f"exit status {found_status} instead of {status}")
        self.classes.add(verdict["class"])
        return verdict

    def root_with(self, *names, change=lambda text: text):
        """A folder of scenarios with changed copies of these, of one seed each."""
        root = self.fresh("root")
        for path in SCENARIOS.rglob("defaults.yaml"):
            copy = root / path.relative_to(SCENARIOS)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(re.sub(r"(?m)^seeds: .*$", "seeds: 1", path.read_text(encoding="utf-8")), encoding="utf-8")
        for name in names:
            text = (SCENARIOS / f"{name}.yaml").read_text(encoding="utf-8")
            text = re.sub(r"(?m)^seeds: .*$", "seeds: 1", text)
            copy = root / f"{name}.yaml"
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(change(text), encoding="utf-8")
        return root

    def flipped(self, name, pattern, replacement):
        def change(text):
            changed, count = re.subn(pattern, replacement, text)
            require(count == 1, f"{name}: {count} places look like {pattern}")
            return changed

        return self.root_with(name, change=change)


# --- Claims that are wrong ---


@case
def copies_as_they_are_pass(bench):
    """Without which none of the reds below would mean anything."""
    for name, more in (("nan/corrupt-sample", ()),
                       ("not-learning/frozen-params", ("--point", "head"))):
        status, verdicts, _ = bench.run(name, *more, root=bench.root_with(name))
        require(status == 0, f"{name}: {[v['reason'] for v in verdicts.values()]}")


@case
def flipped_symptom_of_frozen_params(bench):
    root = bench.flipped("not-learning/frozen-params", r": always \(updated\{head\.\*\} == 0 and",
                         ": always (updated{head.*} > 0 and")
    bench.require_class("fail/symptom_in_control", "not-learning/frozen-params", "--point", "head",
                        root=root)


@case
def flipped_loss_of_frozen_params(bench):
    root = bench.flipped("not-learning/frozen-params", r"mean\(loss\[-20:\]\) > 1\.\d+ \*",
                         "mean(loss[-20:]) < 0.5 *")
    bench.require_class("fail/symptom_absent", "not-learning/frozen-params", "--point", "head",
                        root=root)


@case
def flipped_symptom_of_corrupt_sample(bench):
    root = bench.flipped("nan/corrupt-sample", r"eventually(\[:\d+\] nonfinite)", r"never\1")
    bench.require_class("fail/symptom_in_control", "nan/corrupt-sample", root=root)


@case
def wrong_sample_named_by_corrupt_sample(bench):
    root = bench.flipped("nan/corrupt-sample", r"samples=\d+", "samples=1")
    bench.require_class("fail/symptom_absent", "nan/corrupt-sample", root=root)


@case
def flipped_healthy_check_of_corrupt_sample(bench):
    root = bench.flipped("nan/corrupt-sample", r"(learns: .*) < ", r"\1 > ")
    bench.require_class("fail/control_unhealthy", "nan/corrupt-sample", root=root)


@case
def flipped_quality_of_corrupt_sample(bench):
    root = bench.flipped("nan/corrupt-sample", r"(quality: .*) <= 1\.\d+", r"\1 >= 100")
    bench.require_class("fail/remedy_costly", "nan/corrupt-sample", root=root)


# --- Targets that are broken ---


def require_class_of_mutant(bench, mutation, wanted, name, *arguments, **env):
    bench.require_class(wanted, name, *arguments, target=bench.mutant, root=bench.root_with(name),
                        env=dict(env, MUTATION=mutation, TRAINER=bench.trainer))


@case
def mutant_that_breaks_nothing_passes(bench):
    name = "negative/sound"
    status, verdicts, _ = bench.run(name, target=bench.mutant, root=bench.root_with(name),
                                    env={"MUTATION": "none", "TRAINER": bench.trainer})
    require(status == 0, str([verdict["reason"] for verdict in verdicts.values()]))


@case
def injector_that_does_nothing(bench):
    require_class_of_mutant(bench, "noop_injector", "fail/fault_not_fired", "nan/corrupt-sample")


@case
def remedy_that_is_ignored(bench):
    require_class_of_mutant(bench, "ignore_remedy", "fail/remedy_ineffective", "nan/corrupt-sample",
                            IGNORED=json.dumps({"skip_bad_batches": {"loader.guard": "none"}}))


@case
def loss_that_is_constant(bench):
    require_class_of_mutant(bench, "constant_loss", "fail/control_unhealthy", "negative/sound")


@case
def training_that_differs_each_time(bench):
    require_class_of_mutant(bench, "nondeterministic", "fail/nondeterministic",
                            "negative/sound", "--verify-determinism")


@case
def process_left_behind(bench):
    status, verdicts, _ = bench.run("leak", target=bench.fake_target, root=TESTS / "fake")
    require(status == 0 and verdicts["leak"]["expected_limit"], verdicts["leak"]["reason"])
    bench.classes.add("leak")


@case
def target_that_cannot_be_started(bench):
    target = bench.fresh("gone") / "target.sh"
    target.write_text(f'#!/bin/sh\nrm "$0"\nexec "{bench.fake_target}" "$@"\n')
    target.chmod(0o755)
    bench.require_class("error/infrastructure", "infrastructure", "--isolate", "exec", target=str(target),
                        root=TESTS / "fake", status=7)


@case
def target_that_stops_halfway(bench):
    status, verdicts, _ = bench.run("incomplete", "--full", target=bench.fake_target, root=TESTS / "fake")
    require(status == 0 and verdicts["incomplete"]["expected_limit"], verdicts["incomplete"]["reason"])
    bench.classes.add("incomplete")


# --- Errors planted in scenarios ---


def negatives():
    return sorted(f"negative/{path.stem}" for path in (SCENARIOS / "negative").glob("*.yaml") if path.stem != "defaults")


@case
def planted_errors_are_found(bench):
    status, verdicts, _ = bench.run("negative/*")
    for name, verdict in verdicts.items():
        require(verdict["verdict"] == "pass", f"{name}: {verdict['reason']}")
        require(verdict["expected_limit"] == (name != "negative/sound"),
                f"{name}: expected_limit is {verdict['expected_limit']}")
        text = (SCENARIOS / f"{name}.yaml").read_text(encoding="utf-8")
        bench.classes.update(re.findall(r"\bclass: (\w+)", text))
    require(len(verdicts) == len(negatives()),
            f"only {sorted(verdicts)} were run")
    require(status == 0, f"exit status {status}")


@case
def planted_errors_that_are_removed_are_missed(bench):
    """A scenario of the folder `negative` is its head, the planted error and `expect`."""
    names = negatives()

    def change(text):
        if "expect:" not in text:
            return text
        head, extends, rest = re.split(r"(?m)^(extends: .*\n)", text)
        return head + extends + rest[rest.index("expect:"):]

    texts = [(SCENARIOS / f"{name}.yaml").read_text(encoding="utf-8") for name in names]
    bases = {base for text in texts for base in re.findall(r"(?m)^extends: (.*)\.yaml$", text)}
    root = bench.root_with(*bases.union(names), change=change)
    status, verdicts, _ = bench.run("negative/*", root=root)
    for name, verdict in verdicts.items():
        wanted = "pass" if name == "negative/sound" else "fail/unexpected_pass"
        found = "/".join(filter(None, (verdict["verdict"], verdict["class"])))
        require(found == wanted, f"{name} is {found}: {verdict['reason']}")
    require(len(verdicts) == len(names), f"only {sorted(verdicts)} were run")
    require(status == 1, f"exit status {status} instead of 1")
    bench.classes.add("unexpected_pass")


@case
def too_few_seeds(bench):
    bench.require_class("inconclusive/too_few_seeds", "negative/sound", "--seeds", 2, status=5)


# --- The same bits however a run is made ---


def is_of_time_or_memory(key):
    return key == "time" or key.endswith("_s") or key.startswith("memory_")


def steps_of(trace):
    """The step records by step, the last one counts; without what differs from run to run."""
    steps = {}
    for line in trace.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if record["t"] == "step":
            steps[record["step"]] = {key: value for key, value in record.items()
                                     if not is_of_time_or_memory(key)}
    return steps


def require_same_steps(left, right, what, count):
    a, b = steps_of(left), steps_of(right)
    require(sorted(a) == sorted(b) == list(range(count)),
            f"{what}: {len(a)} and {len(b)} steps instead of {count}")
    for step, record in a.items():
        different = sorted(key for key in record.keys() | b[step].keys()
                           if record.get(key) != b[step].get(key))
        require(not different, f"{what}: step {step} differs in {different}")


@case
def fork_and_exec_give_the_same_bits(bench):
    for name, more, steps in (("nan/corrupt-sample", (), 96),
                              ("not-learning/frozen-params", ("--point", "head"), 80)):
        traces = []
        for isolation in ("fork", "exec"):
            status, _, output = bench.run(name, *more, "--arm", "control", "--seed", 0, "--full",
                                          "--keep", "all", "--isolate", isolation)
            require(status == 0, f"{name} by {isolation}: exit status {status}")
            traces += output.rglob("rank0.jsonl")
        require(len(traces) == 2, f"{name}: {len(traces)} traces instead of 2")
        require_same_steps(*traces, name, steps)


@case
def restarts_after_sigkill_are_bitwise_equal(bench):
    """Each of 20 seeds loses a rank, restarts from the checkpoint and ends as if it had not."""
    name, seeds = "hang/silent-rank-death", 20
    status, _, output = bench.run(name, "--point", "sigkill-two", "--seeds", seeds, "--arm",
                                  "supervisor", "--arm", "reference", "--full", "--keep", "all")
    require(status == 0, f"exit status {status}")
    for seed in range(seeds):
        runs = {}
        for arm in ("supervisor", "reference"):
            (trace,) = output.rglob(f"{arm}/{seed}/rank0.jsonl")
            runs[arm] = trace
        events = runs["supervisor"].with_name("launcher.jsonl").read_text(encoding="utf-8")
        require(events.count('"restarted"') == 1, f"seed {seed} was not restarted once")
        require_same_steps(runs["supervisor"], runs["reference"], f"seed {seed}", 40)


# --- A harness that is killed ---


def processes_with(mark):
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if mark in (path / "environ").read_bytes():
                found.append(int(path.name))
        except OSError:
            pass  # ended meanwhile, or a zombie
    return found


def wait_for(condition, seconds, why):
    end = time.monotonic() + seconds
    while not condition():
        require(time.monotonic() < end, why() if callable(why) else why)
        time.sleep(0.05)


def kill_harness_in_the_middle(bench, is_in_the_middle, *arguments, target, root):
    output = bench.fresh("killed") / "out"
    mark = uuid.uuid4().hex  # every process of the run inherits it
    harness = subprocess.Popen(
        bench.command(*arguments, target=target, root=root, output=output),
        env=dict(os.environ, MUTATIONS_TEST_MARK=mark), stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)
    others = lambda: [pid for pid in processes_with(mark.encode()) if pid != harness.pid]
    try:
        wait_for(lambda: is_in_the_middle(output), 60, "the run did not get to its middle")
        require(harness.poll() is None, "the harness ended by itself")
        require(others(), "no process of the run was found: nothing would be proved")
        harness.send_signal(signal.SIGKILL)
        harness.wait()
        wait_for(lambda: not others(), 15, lambda: f"{len(others())} processes are left")
        require(not (output / "verdicts.json").exists(), "there is a verdicts.json")
    finally:
        if harness.poll() is None:
            harness.kill()
            harness.wait()
        for pid in others():
            os.kill(pid, signal.SIGKILL)


@case
def killed_harness_leaves_no_ranks(bench):
    def has_stopped(output):
        return any("fired" in trace.read_text() for trace in output.rglob("rank1.jsonl"))

    for isolation in ("fork", "exec"):
        kill_harness_in_the_middle(bench, has_stopped, "hang/silent-rank-death", "--point",
                                   "sigstop-two", "--arm", "longer_timeout", "--seed", 0, "--isolate",
                                   isolation, target=bench.trainer, root=SCENARIOS)


@case
def killed_harness_leaves_no_process_that_hides(bench):
    def has_hidden(output):  # half a second after it was started
        return any('"spawned"' in log.read_text() and time.time() - log.stat().st_mtime > 0.5
                   for log in output.rglob("launcher.jsonl"))

    for isolation in ("fork", "exec"):
        kill_harness_in_the_middle(bench, has_hidden, "slow", "--isolate", isolation,
                                   target=bench.fake_target, root=TESTS / "fake")


# --- Nothing left out ---


@case
def every_class_is_covered(bench):
    """Against the product's own list; runs last, and means nothing when cases were left out."""
    told = subprocess.run([bench.trainwreck, "explain", "verdicts", "--target", bench.fake_target],
                          text=True, check=True, capture_output=True, timeout=60).stdout
    known = set(re.findall(r"(?m)^verdict class (\w+)", told))
    require(len(known) >= 17, f"only these classes are listed: {sorted(known)}")
    require(bench.classes == known, f"not covered: {sorted(known - bench.classes)}, "
                                    f"not listed: {sorted(bench.classes - known)}")


def run_case(function, bench):
    try:
        function(bench)
    except Mismatch as mismatch:
        return str(mismatch)
    except Exception:  # a broken report is a finding, and must not hide the cases that follow
        return traceback.format_exc()
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for program in ("--trainwreck", "--trainer", "--fake-target"):
        parser.add_argument(program, required=True)
    parser.add_argument("--keep", help="folder for what the runs write, kept")
    parser.add_argument("cases", nargs="*", help="only these")
    options = parser.parse_args()
    unknown = set(options.cases) - {function.__name__ for function in CASES}
    if unknown:
        parser.error(f"no such case: {sorted(unknown)}")
    folder = options.keep or tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
    os.makedirs(folder, exist_ok=True)
    bench = Bench(options, folder)
    results = []
    for function in CASES:
        if options.cases and function.__name__ not in options.cases:
            continue
        begin = time.monotonic()
        why = run_case(function, bench)
        seconds = time.monotonic() - begin
        results.append((function.__name__, seconds, why))
        print(f"FAILED {function.__name__}: {why}" if why
              else f"ok {function.__name__} ({seconds:.1f} s)", flush=True)
    unittest_xml.write_results("mutations_test", results)
    if not options.keep:
        shutil.rmtree(folder)
    return 1 if any(why for _, _, why in results) else 0


if __name__ == "__main__":
    sys.exit(main())
