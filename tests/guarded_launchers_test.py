#!/usr/bin/env python3
"""`trainwreck rank` under torchrun, which starts failed ranks again, and under mpirun, which does not.

Usage: guarded_launchers_test.py TRAINWRECK [unittest options]

Stand-ins set the variables of torchrun and MPICH. The real torchrun and mpirun are used where they are installed; torchrun is looked for
beside TRAINWRECK_STACKS_PYTHON and in PATH.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import unittest_xml
from processes import SEARCHED, of, processes_with, torchrun_settings

TRAINWRECK = os.path.abspath(sys.argv[1])

# Trains in step with the other ranks. Rank 0 saves, and a rank that is started again goes on from there.
TRAIN = """
import os, select, sys
def number(*names):
    return int(next(os.environ[name] for name in names if name in os.environ))
folder, steps, life = sys.argv[1], int(sys.argv[2]), os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
rank, ranks = number("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"), number("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
life += "." + os.path.basename(os.environ["TRAINWRECK_PLAN"])
saved = folder + "/saved"
begin = int(open(saved).read()) if os.path.exists(saved) else 0
for step in range(begin, steps):
    open(f"{folder}/{life}.{rank}.{step}", "w").close()
    while not all(os.path.exists(f"{folder}/{life}.{other}.{step}") for other in range(ranks)):
        select.select([], [], [], 0.005)
    select.select([], [], [], 0.04)
    if rank == 0:
        print(f"step {step}: loss {2 - step / steps}", flush=True)
        if step % 5 == 4:
            with open(saved + ".new", "w") as file:
                file.write(str(step + 1))
            os.replace(saved + ".new", saved)
"""

# As torchrun does: when a rank fails, all are ended, and started again so often.
STAND_IN = """#!/usr/bin/env python3
import os, subprocess, sys, time
count, restarts, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
for life in range(restarts + 1):
    ranks = []
    for rank in range(count):
        names = {RANK: rank, RANKS: count, "TORCHELASTIC_RESTART_COUNT": life}
        ranks.append(subprocess.Popen(command, env={**os.environ, **{name: str(value) for name, value in names.items()}}))
    while None in [rank.poll() for rank in ranks] and not any(rank.returncode for rank in ranks):
        time.sleep(0.1)
    if not any(rank.returncode for rank in ranks):
        sys.exit(0)
    for rank in ranks:
        rank.terminate()
    for rank in ranks:
        rank.wait()
sys.exit(1)
"""

TARGETS = """
apiVersion: trainwreck/v1
kind: Targets
targets:
  guarded:
    command: [LAUNCHER, TRAINWRECK, rank, --, python3, train.py, "{run.checkpoints}", "{steps}"]
    resume: {when_exists: "{run.checkpoints}/saved"}
    recipe: {steps: 60, launcher.restarts: 0}
    ranks: {default: 2, launcher: KIND}
    signals: {loss: {}}
    sources:
      - {stdout: 'step (?P<step>\\d+): loss (?P<loss>\\S+)'}
    budget: {seconds: 60, stall_seconds: 8}
"""
BY_RESTARTS = {"launcher": {"set": {"launcher.restarts": 1}, "resolves": ["lost"]}}
BY_SUPERVISOR = {"supervisor": {"set": {"supervisor.max_restarts": 1}, "resolves": ["lost"]}}


class GuardedLaunchersTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.marker = f"GUARDED_LAUNCHERS_TEST={os.getpid()}.{self.id()}"
        name, value = self.marker.split("=")
        self.environment = {**os.environ, "PATH": self.folder + "/bin:" + SEARCHED, "TRAINWRECK_CACHE": self.folder + "/.cache", name: value}
        self.write("train.py", TRAIN)

    def tearDown(self):
        deadline = time.monotonic() + 5
        while processes_with(self.marker) and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertEqual(processes_with(self.marker), [], "processes are left")

    def write(self, name, text):
        os.makedirs(os.path.dirname(f"{self.folder}/{name}"), exist_ok=True)
        with open(f"{self.folder}/{name}", "w", encoding="utf-8") as file:
            file.write(text)

    def stand_in(self, name, rank, ranks):
        self.write("bin/" + name, STAND_IN.replace("RANKS", repr(ranks)).replace("RANK:", repr(rank) + ":"))
        os.chmod(f"{self.folder}/bin/{name}", 0o755)
        return [name, "{parallel.ranks}", "{launcher.restarts}"]

    def write_target(self, kind, words):
        launcher = ", ".join(json.dumps(word) for word in words)
        self.write("trainwreck.yaml", TARGETS.replace("LAUNCHER", launcher).replace("KIND", kind).replace("TRAINWRECK", TRAINWRECK))

    def check(self, kind, words, remedies):
        """A rank is killed once, and what is started again ends well."""
        self.write_target(kind, words)
        self.write("scenarios/g/it.yaml", json.dumps({
            "apiVersion": "trainwreck/v1", "kind": "Scenario", "title": "A rank is killed under its guard", "seeds": 1,
            "inject": {"it": {"fault": "process.crash_rank", "with": {"how": "sigkill"}, "at": 20, "ranks": [1], "attempt": 0}},
            "symptoms": {"lost": "not ended(rank=0, why=completed)", "killed": "exited(rank=1, signal=9)"}, "remedies": remedies}))
        done = subprocess.run([TRAINWRECK, "run", "g/it", "--target", "guarded", "-j", "1", "--keep", "all", "--output", "out", "--history",
                               "none", "--no-preflight"], cwd=self.folder, env=self.environment, capture_output=True, text=True,
                              check=False, timeout=200)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        arm, = remedies
        fired, = self.events(arm, "fired")
        self.assertEqual((fired["rank"], fired["signal"], fired["before"]), (1, 9, "running"))
        self.assertEqual(len([event for event in self.events(arm, "exited") if event["rank"] == 1 and event["signal"] == 9]), 1)
        return arm

    def events(self, arm, name):
        with open(f"{self.folder}/out/g/it/{arm}/0/launcher.jsonl", encoding="utf-8") as file:
            return [record for record in map(json.loads, file) if record.get("event") == name and "cpu_s" not in record]

    def check_ends_after_restart(self):
        self.assertEqual([event["code"] for event in self.events("launcher", "exited") if event["rank"] == 1], [-1, 0])

    def test_stand_in_for_torchrun(self):
        self.check("torchrun", self.stand_in("torchrun", "RANK", "WORLD_SIZE"), BY_RESTARTS)
        self.check_ends_after_restart()

    def test_stand_in_for_mpich(self):
        self.check("mpirun", self.stand_in("mpiexec", "PMI_RANK", "PMI_SIZE"), BY_RESTARTS)
        self.check_ends_after_restart()

    def test_ranks_that_lost_their_launcher_are_no_leak_of_the_program(self):
        self.write_target("torchrun", self.stand_in("torchrun", "RANK", "WORLD_SIZE"))
        self.write("scenarios/g/it.yaml", json.dumps({
            "apiVersion": "trainwreck/v1", "kind": "Scenario", "title": "A launcher is killed", "no_remedy": "a test of the harness",
            "recipe": {"steps": 2000}, "inject": {"it": {"fault": "process.suspend", "at": 1999}}, "symptoms": {"lost": "not ended()"}}))
        words = [TRAINWRECK, "run", "g/it", "--target", "guarded", "--arm", "control", "--seed", "0", "--output", "out", "--keep", "all",
                 "--history", "none", "--no-preflight"]
        with subprocess.Popen(words, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, text=True) as harness:
            deadline = time.monotonic() + 60
            while not os.path.exists(f"{self.folder}/out/g/it/control/0/checkpoints/saved"):
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.05)
            launcher, = [pid for pid in processes_with(self.marker) if of(pid, "cmdline").split("\0")[1:2] == [self.folder + "/bin/torchrun"]]
            os.kill(launcher, signal.SIGKILL)
            said = harness.communicate(timeout=60)[0]
        self.assertIn("g/it/control/0: failed: the launcher was killed by SIGKILL", said)
        self.assertNotIn("left processes behind", said)

    def test_torchrun(self):
        torchrun = shutil.which("torchrun", path=SEARCHED)
        if torchrun is None:
            self.skipTest("no torchrun: ci/test.sh installs Debian's")
        self.environment.update(torchrun_settings(os.path.dirname(torchrun) + "/python3"))
        self.check("torchrun", [torchrun, "--rdzv_backend=c10d", "--rdzv_endpoint=localhost:0", "--no_python", "--nproc_per_node", "{parallel.ranks}",
                                "--max_restarts={launcher.restarts}"], BY_RESTARTS)
        self.check_ends_after_restart()

    def test_mpirun(self):
        if shutil.which("mpirun", path=SEARCHED) is None:
            self.skipTest("no mpirun: install openmpi-bin")
        self.environment.update({"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
                                 "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"})
        self.environment["TMPDIR"] = self.folder + "/tmp"
        os.mkdir(self.environment["TMPDIR"])
        self.check("mpirun", ["mpirun", "-n", "{parallel.ranks}"], BY_SUPERVISOR)
        self.assertEqual(os.listdir(self.environment["TMPDIR"]), [], "session folders are left")


if __name__ == "__main__":
    unittest_xml.main(sys.argv[2:])
