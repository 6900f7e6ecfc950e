#!/usr/bin/env python3
"""Ranks on machines (machines.py) that see the run's folder late: each has one of its own in that place, and this test copies what a
machine writes into the shared one after one to two seconds, in pieces, the name of a trace last.

Usage: late_folder_test.py TRAINWRECK [unittest options]
"""
import glob
import json
import os
import pathlib
import random
import shutil
import sys
import threading
import time
import unittest

import unittest_xml
from machines import HAS_NAMESPACES, IS_PRIVATE, NEW_MACHINE, TARGETS, TRAINWRECK, Machines, scenario

STEPS = 120

# Writes its own trace, in step with the other ranks, which it meets in a folder that is not late.
TRAIN = """
import json, os, select, sys
rank, ranks, steps = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"]), int(sys.argv[1])
meet = "meet/" + os.environ["TRAINWRECK_RUN"].replace("/", ".") + "/"
os.makedirs(meet, exist_ok=True)
with open(os.environ["TRAINWRECK_TRACE"] + f"/rank{rank}.jsonl", "a", buffering=1) as trace:
    trace.write(json.dumps({"t": "start", "rank": rank}) + "\\n")
    for step in range(steps):
        open(f"{meet}{rank}.{step}", "w").close()
        while not all(os.path.exists(f"{meet}{other}.{step}") for other in range(ranks)):
            select.select([], [], [], 0.005)
        select.select([], [], [], 0.03)
        trace.write(json.dumps({"t": "step", "step": step, "time": step / 10, "loss": 2 - step / steps + rank}) + "\\n")
    trace.write(json.dumps({"t": "end", "why": "completed", "step": steps}) + "\\n")
"""

WHOLE = f"ended(rank=0, why=completed) and ended(rank=1, why=completed) and count(loss[:]) == {STEPS} and count(loss@1[:]) == {STEPS}"


class Late:
    """What one file of a machine still has to show on the others."""

    def __init__(self, is_whole):
        self.is_whole, self.seen, self.due, self.waiting = is_whole, None, 0, []

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
        self.due = max(self.due, time.monotonic() + random.uniform(1, 1.8))
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
            with open(path if os.path.exists(path) else hidden, "ab") as file:
                file.write(data)
            if os.path.exists(hidden) and (whole := pathlib.Path(hidden).read_bytes()).endswith(b"}\n") and b'"end"' in whole:
                os.rename(hidden, path)


@unittest.skipUnless(HAS_NAMESPACES and IS_PRIVATE, "nothing may be mounted here")
class LateFolderTest(Machines):
    def setUp(self):
        super().setUp()
        self.write("train.py", TRAIN)
        target = TARGETS.replace("TRAINWRECK", TRAINWRECK).replace("default: 3", "default: 2").replace("{steps: 60}", f"{{steps: {STEPS}}}")
        target = target.replace('"{run.folder}", ', "").replace("    command:", "    level: 1\n    command:")
        self.write("trainwreck.yaml", "\n".join(line for line in target.split("\n") if "sources" not in line and "stdout" not in line))
        self.files, self.is_over, self.lock = {}, False, threading.Lock()
        thread = threading.Thread(target=self.copy, daemon=True)
        thread.start()
        self.addCleanup(thread.join)

    def end_machines(self):
        self.is_over = True
        super().end_machines()

    def run_task(self, connection):
        with self.lock:
            if self.before_task:
                self.copy_down()
        super().run_task(connection)

    def new_machine(self):
        return [*NEW_MACHINE, "--mount"]

    def copy(self):
        while not self.is_over:
            with self.lock:
                if self.before_task:
                    self.copy_down()
                    self.copy_up()
            time.sleep(0.02)

    def copy_down(self):
        """What the harness writes: at once."""
        for source in [path for name in ("plan.*", "guards.*/orders.json", "guards.*/over")
                       for path in glob.glob(f"{self.folder}/out/g/it/*/0/{name}")]:
            for rank in range(2):
                target = source.replace("/out/", f"/private.{rank}/")
                state = os.stat(source).st_mtime_ns
                if self.files.get(target) != state:
                    self.files[target] = state
                    os.makedirs(os.path.dirname(target), exist_ok=True)
                    shutil.copyfile(source, target + ".new")
                    os.replace(target + ".new", target)

    def copy_up(self):
        for rank in range(2):
            for name, is_whole in ((f"guards.*/rank{rank}.json", True), (f"rank{rank}.jsonl", False)):
                for source in glob.glob(f"{self.folder}/private.{rank}/g/it/*/0/{name}"):
                    late = self.files.setdefault(source, Late(is_whole))
                    late.look(source)
                    late.show(source.replace(f"/private.{rank}/", "/out/"))

    def verdict(self):
        self.run_scenario({**scenario("process.suspend", {"paused": f"event(stopped, rank=1) and {WHOLE}"}, **{"with": {"seconds": 1.0}}),
                           "healthy": {"whole": WHOLE}})
        with open(self.folder + "/out/verdicts.json", encoding="utf-8") as file:
            verdict, = json.load(file)["verdicts"]
        fired, = self.events("fault", "fired")
        self.assertEqual((fired["host"], fired["rank"], fired["signal"]), ("n1", 1, 19))
        exits = {(event["rank"], event["code"]) for event in self.events("control", "exited") if "cpu_s" not in event}
        self.assertEqual(exits, {(0, 0), (1, 0)})
        return [[check["readings"][0]["truth"] for check in verdict["checks"]], [arm["loss"] for arm in verdict["arms"]]]

    def test_a_folder_that_is_seen_late_changes_no_verdict(self):
        at_once = self.verdict()
        shutil.rmtree(self.folder + "/out")
        shutil.rmtree(self.folder + "/meet")
        self.before_task = 'mkdir -p "private.$1"; mount --bind "private.$1" out; '
        self.assertEqual(self.verdict(), at_once)
        late, = {os.path.basename(path) for path in glob.glob(self.folder + "/private.1/g/it/fault/0/rank*.jsonl")}
        self.assertEqual(late, "rank1.jsonl")


if __name__ == "__main__":
    unittest_xml.main(sys.argv[2:])
