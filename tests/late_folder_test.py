#!/usr/bin/env python3
"""Ranks on machines (machines.py) that see the run's folder late: each has one of its own in that place, and this test copies what a
machine writes into the shared one, and what the harness writes into the machine's, after some seconds; what grows comes in pieces, the name of a
trace last.

Usage: late_folder_test.py TRAINWRECK [unittest options]
"""
import glob
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import threading
import time
import unittest

import unittest_xml
from machines import HAS_NAMESPACES, IS_PRIVATE, NEW_MACHINE, TARGETS, TRAINWRECK, Machines, scenario

STEPS = 240  # longer than it takes until a fault acts at step 20
LATE = (1.5, 3)
LATE_OF_THE_FAILED = (0.5, 1.5)  # killed guards say nothing more: they are waited for half as long

# In step with the other rank, which it meets in a folder that is not late.
TRAIN = """
import json, os, select, sys
rank, ranks, steps = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"]), int(sys.argv[1])
meet = "meet/" + os.environ["TRAINWRECK_RUN"].replace("/", ".") + "/"
os.makedirs(meet, exist_ok=True)
def train(say):
    for step in range(steps):
        open(f"{meet}{rank}.{step}", "w").close()
        while not all(os.path.exists(f"{meet}{other}.{step}") for other in range(ranks)):
            select.select([], [], [], 0.005)
        select.select([], [], [], 0.03)
        # HERE
        say(step)
"""

# Writes its own trace.
TRACES = TRAIN + """
with open(os.environ["TRAINWRECK_TRACE"] + f"/rank{rank}.jsonl", "a", buffering=1) as trace:
    def say(step):
        trace.write(json.dumps({"t": "step", "step": step, "time": step / 10, "loss": 2 - step / steps + rank}) + "\\n")
    trace.write(json.dumps({"t": "start", "rank": rank}) + "\\n")
    train(say)
    trace.write(json.dumps({"t": "end", "why": "completed", "step": steps}) + "\\n")
"""

# Prints, which its guard keeps.
PRINTS = TRAIN + """
train(lambda step: print(f"step {step}: loss {2 - step / steps + rank}", flush=True))
"""

WHOLE = f"ended(rank=0, why=completed) and count(loss[:]) == {STEPS} and count(loss@1[:]) == {STEPS}"


class Late:
    """What one file still has to show on other machines."""

    def __init__(self, is_whole, seconds, has_name_last):
        self.is_whole, self.seconds, self.has_name_last = is_whole, seconds, has_name_last
        self.seen, self.due, self.waiting = None, 0, []

    def look(self, path):
        state = os.stat(path)
        if self.is_whole:
            if self.seen != state.st_mtime_ns:
                self.seen = state.st_mtime_ns
                with open(path, "rb") as file:
                    self.add(file.read())
            return
        begin = self.seen or 0
        with open(path, "rb") as file:
            file.seek(begin)
            data = file.read()
        self.seen = begin + len(data)
        while data:
            size = random.randint(1, len(data))
            self.add(data[:size])
            data = data[size:]

    def add(self, data):
        self.due = max(self.due, time.monotonic() + random.uniform(*self.seconds))
        self.waiting.append((self.due, data))

    def show(self, path):
        while self.waiting and self.waiting[0][0] <= time.monotonic():
            data = self.waiting.pop(0)[1]
            os.makedirs(os.path.dirname(path), exist_ok=True)
            hidden = f"{os.path.dirname(path)}/.late.{os.path.basename(path)}"
            if self.is_whole:
                with open(hidden, "wb") as file:
                    file.write(data)
                os.replace(hidden, path)
                continue
            with open(hidden if self.has_name_last and not os.path.exists(path) else path, "ab") as file:
                file.write(data)
            if os.path.exists(hidden) and self.is_last(pathlib.Path(hidden).read_bytes()):
                os.rename(hidden, path)

    @staticmethod
    def is_last(trace):
        return trace.endswith(b"}\n") and b'"end"' in trace


@unittest.skipUnless(HAS_NAMESPACES and IS_PRIVATE, "nothing may be mounted here")
class LateFolderTest(Machines):
    def setUp(self):
        super().setUp()
        self.environment["TRAINWRECK_GUARD_PATIENCE"] = "15"
        self.files, self.is_over, self.lock, self.seconds, self.have_names_last = {}, False, threading.Lock(), LATE, True
        thread = threading.Thread(target=self.copy, daemon=True)
        thread.start()
        self.addCleanup(thread.join)

    def use(self, program, here="pass"):
        self.write("train.py", program.replace("# HERE", here))
        target = TARGETS.replace("TRAINWRECK", TRAINWRECK).replace("default: 3", "default: 2").replace("{steps: 60}", f"{{steps: {STEPS}}}")
        target = target.replace('"{run.folder}", ', "")
        if program == TRACES:
            target = target.replace("    command:", "    level: 1\n    command:")
            target = "\n".join(line for line in target.split("\n") if "sources" not in line and "stdout" not in line)
        self.write("trainwreck.yaml", target)

    def end_machines(self):
        self.is_over = True
        super().end_machines()

    def new_machine(self):
        return [*NEW_MACHINE, "--mount"]

    def copy(self):
        while not self.is_over:
            with self.lock:
                if self.before_task:
                    self.copy_all()
            time.sleep(0.02)

    def copy_all(self):
        for rank in range(2):
            shared, private = f"{self.folder}/out", f"{self.folder}/private.{rank}"
            for name in ("plan.*", "guards.*/orders.json", "guards.*/over"):
                self.copy_late(name, shared, private, True)
            self.copy_late(f"guards.*/rank{rank}.json", private, shared, True)
            for name in (f"guards.*/rank{rank}.std*", f"rank{rank}.jsonl"):
                self.copy_late(name, private, shared, False)

    def copy_late(self, name, begin, end, is_whole):
        for source in glob.glob(f"{begin}/g/it/*/0/{name}"):
            target = source.replace(begin, end)
            late = self.files.setdefault(target, Late(is_whole, self.seconds, self.have_names_last and source.endswith(".jsonl")))
            try:
                late.look(source)
            except FileNotFoundError:  # it is being replaced
                continue
            late.show(target)

    def make_late(self):
        with self.lock:
            self.before_task = 'mkdir -p "private.$1"; mount --bind "private.$1" out; '

    def assert_same_verdict(self):
        at_once = self.verdict()
        for name in ("out", "meet"):
            shutil.rmtree(f"{self.folder}/{name}")
        self.make_late()
        self.assertEqual(self.verdict(), at_once)

    def verdict(self):
        self.run_scenario({**scenario("process.suspend", {"paused": f"event(stopped, rank=1) and {WHOLE}"}, **{"with": {"seconds": 2.5}}),
                           "healthy": {"whole": WHOLE}})
        with open(self.folder + "/out/verdicts.json", encoding="utf-8") as file:
            verdict, = json.load(file)["verdicts"]
        fired, = self.events("fault", "fired")
        self.assertEqual((fired["host"], fired["rank"], fired["signal"]), ("n1", 1, 19))
        exits = {(event["rank"], event["code"]) for event in self.events("control", "exited") if "cpu_s" not in event}
        self.assertEqual(exits, {(0, 0), (1, 0)})
        self.assertEqual(self.events("fault", "node_lost") + self.events("control", "node_lost"), [])
        return [[check["readings"][0]["truth"] for check in verdict["checks"]], [arm["loss"] for arm in verdict["arms"]]]

    def test_no_verdict_about_traces_changes(self):
        self.use(TRACES)
        self.assert_same_verdict()
        name, = {os.path.basename(path) for path in glob.glob(self.folder + "/private.1/g/it/fault/0/rank*.jsonl")}
        self.assertEqual(name, "rank1.jsonl")

    def test_no_verdict_about_what_ranks_print_changes(self):
        self.use(PRINTS)
        self.assert_same_verdict()
        self.assertNotEqual(glob.glob(self.folder + "/private.1/g/it/fault/0/guards.*/rank1.stdout"), [])

    def run_late(self, arm):
        self.make_late()
        self.write("scenarios/g/it.yaml", scenario("process.crash_rank", {"hangs": "stalled()"}, **{"with": {"how": "sigstop"}}))
        subprocess.run(self.words("--arm", arm, "--seed", "0"), cwd=self.folder, env=self.environment, capture_output=True, check=False,
                       timeout=100)
        self.assert_ranks_are_gone(8)
        self.assertEqual(self.events(arm, "node_lost"), [])

    def stalled(self, arm, *fields):
        self.run_late(arm)
        event, = self.events(arm, "stalled")
        return [event[field] for field in fields]

    def test_the_rank_that_hangs_is_named(self):
        self.have_names_last = False
        self.use(TRACES, "if rank == 1 and step == 30: select.select([], [], [], 600)")
        self.assertEqual(self.stalled("control", "lagging_rank", "lagging_step", "waiting_rank", "waiting_step"), [1, 29, 0, 30])

    def test_the_rank_that_was_stopped_is_named(self):
        self.use(PRINTS)
        self.assertEqual(self.stalled("fault", "lagging_rank", "lagging_state", "waiting_rank"), [1, "stopped", 0])

    def test_the_rank_that_failed_is_named_and_no_step_is_lost(self):
        self.seconds = LATE_OF_THE_FAILED
        self.use(PRINTS, "if rank == 1 and step == 60: sys.exit('this is enough')")
        self.run_late("control")
        event, = self.events("control", "rank_failed")
        self.assertEqual((event["rank"], event["code"], event["last_words"]), (1, 1, "this is enough"))
        with open(f"{self.run_folder('control')}/rank0.jsonl", encoding="utf-8") as file:
            steps = [record["step"] for record in map(json.loads, file) if record["t"] == "step"]
        self.assertEqual(steps[-1], 60)


if __name__ == "__main__":
    unittest_xml.main(sys.argv[2:])
