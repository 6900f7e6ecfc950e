#!/usr/bin/env python3
"""The reference trainer under torchrun, mpirun and srun (parallel.launcher), with ranks that meet over TCP.

Usage: launchers_test.py TRAINWRECK TRAINER [unittest options]

mpirun and srun are stand-ins that set the variables of Open MPI, MPICH and Slurm. The real mpirun and torchrun are used where
they are installed; torchrun is looked for beside TRAINWRECK_STACKS_PYTHON and in PATH. real_slurm_test.py has the real srun.
"""
import glob
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
from processes import SEARCHED, processes_with, torchrun_settings

TRAINWRECK, TRAINER = map(os.path.abspath, sys.argv[1:3])

SCENARIO = {
    "apiVersion": "trainwreck/v1", "kind": "Scenario", "name": "l/killed", "seeds": 1, "title": "A rank is killed",
    "recipe": {"model": {"kind": "mlp", "width": 32}, "data": {"kind": "features", "samples": 512}, "checkpoint.every": 10,
               "parallel": {"ranks": 2, "rendezvous": "tcp", "timeout_s": 60}, "steps": 40},
    "inject": {"crash": {"fault": "process.crash_rank", "with": {"how": "sigkill"}, "at": 25, "ranks": [1], "attempt": 0}},
    "healthy": {"completes": "ended(rank=0, why=completed) and ended(rank=1, why=completed)",
                "digests": "count(param_digest[:]) == 40"},
    "symptoms": {"lost": "not ended(rank=0, why=completed)", "killed": "exited(rank=1, signal=9)"},
    "remedies": {"supervisor": {"set": {"supervisor.max_restarts": 1}, "resolves": ["lost"]}},
}

# Starts its ranks with the variables that are given. Ends with the first ones that fail, those with a signal before others,
# and says so in the launcher's own words.
STAND_IN = """#!/usr/bin/env python3
import os, subprocess, sys, time
count, command = int(sys.argv[2]), sys.argv[3:]
ranks = []
for rank in range(count):
    names = {%s: rank, %s: count}
    ranks.append(subprocess.Popen(command, env={**os.environ, **{name: str(value) for name, value in names.items()}}))
while any(rank.poll() is None for rank in ranks) and not any(rank.returncode for rank in ranks):
    time.sleep(0.1)
failed = sorted((rank.returncode, number) for number, rank in enumerate(ranks) if rank.returncode)
for rank in ranks:
    rank.kill()
if failed and failed[0][0] < 0:
    print(%s.format(rank=failed[0][1]), file=sys.stderr)
if failed:
    sys.exit(128 - failed[0][0] if failed[0][0] < 0 else failed[0][0])
"""
KILLED = {"mpirun": "mpirun noticed that process rank {rank} with PID 0 on node box exited on signal 9 (Killed).",
          "srun": "srun: error: box: task {rank}: Killed"}


def records(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


class LaunchersTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        os.makedirs(self.folder + "/scenarios/l")
        os.makedirs(self.folder + "/bin")
        self.marker = f"LAUNCHERS_TEST={os.getpid()}.{self.id()}"
        name, value = self.marker.split("=")
        self.environment = {**os.environ, "TRAINWRECK_CACHE": self.folder + "/.cache", name: value,
                            "PATH": self.folder + "/bin:" + SEARCHED}
        with open(self.folder + "/scenarios/l/killed.yaml", "w", encoding="utf-8") as file:
            json.dump(SCENARIO, file)

    def tearDown(self):
        time.sleep(0.2)
        self.assertEqual(processes_with(self.marker), [], "processes are left")

    def stand_in(self, launcher, rank, world_size):
        path = self.folder + "/bin/" + launcher
        with open(path, "w", encoding="utf-8") as file:
            file.write(STAND_IN % (repr(rank), repr(world_size), repr(KILLED[launcher])))
        os.chmod(path, 0o755)

    def command(self, launcher, *more):
        return [TRAINWRECK, "run", "l/killed", "--target", TRAINER, "--scenarios-root", self.folder + "/scenarios", "-j", "1",
                "--keep", "all", "--output", self.folder + "/out-" + launcher, "--set", "parallel.launcher=" + launcher, *more]

    def run_under(self, launcher):
        return subprocess.run(self.command(launcher), env=self.environment, capture_output=True, text=True, check=False,
                              timeout=200)

    def losses(self, launcher, arm):
        return {record["step"]: record["loss"]
                for record in records(f"{self.folder}/out-{launcher}/l/killed/{arm}/0/rank0.jsonl") if record["t"] == "step"}

    def check(self, launcher):
        done = self.run_under(launcher)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("PASS", done.stdout)
        own = self.run_under("own")
        self.assertEqual(own.returncode, 0, own.stdout + own.stderr)
        for arm in ("control", "supervisor"):  # the same run, whoever starts its ranks
            self.assertEqual(self.losses(launcher, arm), self.losses("own", arm))
        with open(f"{self.folder}/out-{launcher}/l/killed/fault/0/run.json", encoding="utf-8") as file:
            detail = json.load(file)["detail"]
        self.assertIn("rank 1 was killed by SIGKILL", detail)
        self.assertIn("its launcher", detail)
        self.assertRegex(detail, "last calls: rank 0 (failed|is) in all_reduce")  # it may be put down before its error

    def test_torchrun(self):
        torchrun = shutil.which("torchrun", path=SEARCHED)
        if torchrun is None:
            self.skipTest("no torchrun: ci/test.sh installs Debian's")
        self.environment.update(torchrun_settings(os.path.dirname(torchrun) + "/python3"))
        self.check("torchrun")

    def test_mpirun(self):
        if shutil.which("mpirun", path=SEARCHED) is None:
            self.skipTest("no mpirun: install openmpi-bin")
        self.check("mpirun")

    def test_stand_in_for_mpirun(self):
        self.stand_in("mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")
        self.check("mpirun")

    def test_stand_in_for_srun(self):
        self.stand_in("srun", "SLURM_PROCID", "SLURM_NTASKS")
        self.check("srun")

    def test_a_launcher_that_is_not_there_is_named(self):
        self.environment["PATH"] = "/nowhere"
        done = self.run_under("srun")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("cannot start 'srun'", done.stdout)

    def test_a_launcher_that_gives_no_ranks_is_named(self):
        self.stand_in("srun", "NOBODY_KNOWS", "THIS")
        done = self.run_under("srun")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("no launcher gave this process a rank", done.stdout)

    def test_nothing_outlives_a_killed_harness(self):
        self.stand_in("mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")
        self.check_after_kill("mpirun")

    def check_after_kill(self, launcher):
        with subprocess.Popen(self.command(launcher, "--set", "steps=100000"), env=self.environment,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as harness:
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                steps = [path for path in glob.glob(f"{self.folder}/out-{launcher}/l/killed/*/0/rank1.jsonl")
                         if any(record["t"] == "step" for record in records(path)[:9])]
                if steps:
                    break
                time.sleep(0.1)
            self.assertTrue(steps, "no rank came to a step")
            harness.send_signal(signal.SIGKILL)
        deadline = time.monotonic() + 10
        while processes_with(self.marker) and time.monotonic() < deadline:
            time.sleep(0.1)


if __name__ == "__main__":
    unittest_xml.main(sys.argv[3:])
