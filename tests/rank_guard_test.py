#!/usr/bin/env python3
"""`trainwreck rank`: ranks on other machines. A machine is a pid namespace with a name of its own, in which the harness, itself in one,
sees no process. A stand-in for srun asks a daemon, which is this test, to start the tasks there. What is shared is a folder.

Usage: rank_guard_test.py TRAINWRECK [unittest options]
"""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import unittest_xml
from processes import processes_with

TRAINWRECK = os.path.abspath(sys.argv[1])
NEW_MACHINE = ["unshare", "--user", "--map-root-user", "--uts", "--pid", "--fork", "--mount-proc"]
HAS_NAMESPACES = subprocess.run([*NEW_MACHINE, "true"], capture_output=True, check=False).returncode == 0

# Trains in step with the other ranks: none is more than a step ahead. It has a helper, as a loader has workers.
TRAIN = """
import os, subprocess, sys, time
rank, ranks, folder, steps = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"]), sys.argv[1], int(sys.argv[2])
helper = subprocess.Popen(["sleep", "600"])
for step in range(steps):
    open(f"{folder}/{rank}.{step}", "w").close()
    while not all(os.path.exists(f"{folder}/{other}.{step}") for other in range(ranks)):
        time.sleep(0.005)
    time.sleep(0.02)
    if rank == 0:
        print(f"step {step}: loss {2 - step / steps}", flush=True)
helper.kill()
"""

SRUN = """#!/usr/bin/env python3
import json, os, select, socket, sys
ranks, command, sockets = int(sys.argv[2]), sys.argv[3:], {}
for rank in range(ranks):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(os.environ["DAEMON"])
    variables = {**os.environ, "SLURM_PROCID": str(rank), "SLURM_NTASKS": str(ranks)}
    task = json.dumps({"rank": rank, "command": command, "environment": variables, "folder": os.getcwd()})
    socket.send_fds(connection, [task.encode() + b"\\n"], [0, 1, 2])
    sockets[connection] = rank
failed = None
while sockets:
    for connection in select.select(list(sockets), [], [])[0]:
        status = int(connection.recv(100) or b"1")
        rank = sockets.pop(connection)
        if status and failed is None:
            failed = status
            how = "Killed" if status == 137 else f"Exited with exit code {status}"
            print(f"srun: error: n{rank}: task {rank}: {how}", file=sys.stderr, flush=True)
            for other in sockets:
                other.sendall(b"kill")
sys.exit(failed or 0)
"""

# What a machine does with a task: its first process outlives it, as an operating system does.
MACHINE = 'hostname "n$1"; up="$2"; code="$3"; shift 3; "$@"; echo $? >"$code.new"; mv "$code.new" "$code"; while [ -e "$up" ]; do sleep 0.1; done'

TARGETS = """
apiVersion: trainwreck/v1
kind: Targets
targets:
  nodes:
    command: [srun, -n, "{parallel.ranks}", TRAINWRECK, rank, --, python3, train.py, "{run.folder}", "{steps}"]
    recipe: {steps: 60}
    ranks: {default: 3, launcher: srun}
    signals: {loss: {}}
    sources:
      - {stdout: 'step (?P<step>\\d+): loss (?P<loss>\\S+)'}
    budget: {seconds: 60, stall_seconds: 8}
"""


def scenario(how, symptoms, **fault):
    return {"apiVersion": "trainwreck/v1", "kind": "Scenario", "title": "A fault on another machine", "seeds": 1,
            "inject": {"it": {"fault": how, "at": 20, "ranks": [1], **fault}}, "symptoms": symptoms, "no_remedy": "a test of the harness"}


@unittest.skipUnless(HAS_NAMESPACES, "no user and pid namespaces may be made here")
class RankGuardTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.write("train.py", TRAIN)
        self.write("trainwreck.yaml", TARGETS.replace("TRAINWRECK", TRAINWRECK))
        self.write("bin/srun", SRUN)
        os.chmod(self.folder + "/bin/srun", 0o755)
        self.write("up", "")
        self.marker = f"RANK_GUARD_TEST={os.getpid()}.{self.id()}"
        name, value = self.marker.split("=")
        self.sockets = tempfile.mkdtemp()  # of short names
        self.addCleanup(shutil.rmtree, self.sockets)
        self.environment = {**os.environ, "PATH": self.folder + "/bin:" + os.environ["PATH"], "DAEMON": self.sockets + "/daemon",
                            "TRAINWRECK_CACHE": self.folder + "/.cache", "TRAINWRECK_GUARD_PATIENCE": "3", name: value}
        self.daemon = socket.socket(socket.AF_UNIX)
        self.daemon.bind(self.sockets + "/daemon")
        self.daemon.listen(64)
        self.machines, self.tasks = [], 0
        threading.Thread(target=self.serve, daemon=True).start()

    def tearDown(self):
        self.daemon.close()
        os.remove(self.folder + "/up")
        for machine in self.machines:
            machine.kill()
            machine.wait()
        deadline = time.monotonic() + 10
        while processes_with(self.marker) and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertEqual(processes_with(self.marker), [])

    def write(self, name, text):
        os.makedirs(os.path.dirname(f"{self.folder}/{name}"), exist_ok=True)
        with open(f"{self.folder}/{name}", "w", encoding="utf-8") as file:
            file.write(text if isinstance(text, str) else json.dumps(text))

    # The daemon of all machines.

    def serve(self):
        while True:
            try:
                connection, _ = self.daemon.accept()
            except OSError:
                return
            threading.Thread(target=self.run_task, args=[connection], daemon=True).start()

    def run_task(self, connection):
        data, files, _, _ = socket.recv_fds(connection, 1 << 20, 3)
        while not data.endswith(b"\n"):
            data += connection.recv(1 << 20)
        task = json.loads(data)
        self.tasks += 1
        code = f"{self.folder}/code.{self.tasks}"
        words = ["sh", "-c", MACHINE, "sh", str(task["rank"]), self.folder + "/up", code, *task["command"]]
        self.machines.append(subprocess.Popen([*NEW_MACHINE, *words], cwd=task["folder"], env=task["environment"], stdin=files[0],
                                              stdout=files[1], stderr=files[2]))
        for file in files:
            os.close(file)
        connection.settimeout(0.05)
        while not os.path.exists(code):
            try:
                if connection.recv(100) == b"kill":
                    for pid in sorted(self.processes(TRAINWRECK, task["rank"]))[:1]:
                        os.kill(pid, signal.SIGKILL)  # its own child alone: a launcher without control groups
            except socket.timeout:
                pass
        with open(code, encoding="utf-8") as file:
            try:
                connection.sendall(file.read().encode())
            except OSError:
                pass  # srun is gone

    def processes(self, program="", rank=None):
        """Those of ranks, without what the machines themselves are."""
        found = []
        for pid in processes_with(self.marker):
            try:
                with open(f"/proc/{pid}/cmdline", encoding="utf-8") as file:
                    words = file.read().split("\0")
                with open(f"/proc/{pid}/environ", encoding="utf-8", errors="replace") as file:
                    variables = file.read().split("\0")
            except OSError:
                continue
            own = [word for word in variables if word.startswith("SLURM_PROCID=")]
            is_machine = words[0] in ("unshare", "sh") or words[:2] == ["sleep", "0.1"]
            if own and not is_machine and words[0].startswith(program) and (rank is None or own == [f"SLURM_PROCID={rank}"]):
                found.append(pid)
        return found

    def assert_ranks_are_gone(self, seconds=10):
        deadline = time.monotonic() + seconds
        while self.processes() and time.monotonic() < deadline:
            time.sleep(0.1)
        left = [open(f"/proc/{pid}/cmdline").read().replace("\0", " ") for pid in self.processes()]
        self.assertEqual(left, [])

    # The harness, on a machine of its own.

    def words(self, *more):
        return [*NEW_MACHINE, "--kill-child", TRAINWRECK, "run", "--target", "nodes", "-j", "1", "--keep", "all", "--output", "out",
                "--history", "none", "--no-preflight", *more]

    def run_scenario(self, text, status=0):
        self.write("scenarios/g/it.yaml", text)
        done = subprocess.run(self.words("g/it"), cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False,
                              timeout=120)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assert_ranks_are_gone(3)
        return done.stdout

    def start(self, text):
        """Until the fault's run has made some steps."""
        self.write("scenarios/g/it.yaml", text)
        harness = subprocess.Popen(self.words("--arm", "control", "--seed", "0"), cwd=self.folder, env=self.environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        deadline = time.monotonic() + 30
        while not os.path.exists(f"{self.run_folder('control')}/work") or len(self.processes("python3")) < 3:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        return harness

    def run_folder(self, arm):
        return f"{self.folder}/out/g/it/{arm}/0"

    def events(self, arm, name):
        found = []
        for trace in ("rank0", "launcher"):
            with open(f"{self.run_folder(arm)}/{trace}.jsonl", encoding="utf-8") as file:
                found += [record for record in map(json.loads, file) if record.get("event") == name]
        return found

    def test_a_rank_is_killed_on_its_machine(self):
        self.run_scenario(scenario("process.crash_rank", {"killed": "exited(rank=1, signal=9)"}, **{"with": {"how": "sigkill"}}))
        fired, = self.events("fault", "fired")
        self.assertEqual((fired["host"], fired["rank"], fired["signal"], fired["before"], fired["after"], fired["processes"]),
                         ("n1", 1, 9, "running", "killed", 2))
        self.assertGreaterEqual(fired["step"], 20)
        failed, = self.events("fault", "rank_failed")
        self.assertEqual((failed["rank"], failed["signal"]), (1, 9))
        self.assertEqual(self.events("control", "fired") + self.events("control", "rank_failed"), [])

    def test_a_rank_is_paused_and_goes_on(self):
        self.run_scenario(scenario("process.suspend", {"paused": "event(stopped, rank=1) and ended(rank=0, why=completed)"},
                                   **{"with": {"seconds": 1.0}}))
        fired, = self.events("fault", "fired")
        self.assertEqual((fired["host"], fired["signal"]), ("n1", signal.SIGSTOP))
        self.assertEqual([event["rank"] for event in self.events("fault", "stopped")], [1])

    def test_a_stopped_rank_is_named(self):
        self.run_scenario(scenario("process.crash_rank", {"hangs": "stalled(lagging_rank=1)"}, **{"with": {"how": "sigstop"}}))
        stalled, = self.events("fault", "stalled")
        self.assertEqual((stalled["lagging_rank"], stalled["lagging_state"]), (1, "stopped"))

    def test_a_machine_that_vanishes_is_named(self):
        self.environment["TRAINWRECK_GUARD_PATIENCE"] = "60"
        self.write("trainwreck.yaml", TARGETS.replace("TRAINWRECK", TRAINWRECK).replace("steps: 60", "steps: 6000"))
        harness = self.start(scenario("process.crash_rank", {"x": "exited(rank=1)"}))
        time.sleep(1)
        gone = self.processes(rank=2)
        for pid in gone:
            os.kill(pid, signal.SIGSTOP)
        harness.communicate(timeout=60)
        lost, = self.events("control", "node_lost")
        self.assertEqual((lost["rank"], lost["host"]), (2, "n2"))
        stalled, = self.events("control", "stalled")
        self.assertEqual((stalled["lagging_rank"], stalled["lagging_state"]), (2, "lost"))
        # It comes back, and its guard finds that the run is over.
        for pid in gone:
            os.kill(pid, signal.SIGCONT)
        self.assert_ranks_are_gone(5)

    def test_no_rank_outlives_a_killed_harness(self):
        self.write("trainwreck.yaml", TARGETS.replace("TRAINWRECK", TRAINWRECK).replace("steps: 60", "steps: 6000"))
        harness = self.start(scenario("process.crash_rank", {"x": "exited(rank=1)"}))
        time.sleep(0.5)
        self.assertGreaterEqual(len(self.processes()), 9)  # guard, program and helper, three times
        harness.kill()
        harness.wait()
        self.assert_ranks_are_gone(8)

    def test_no_process_outlives_a_killed_guard_or_its_server(self):
        self.write("trainwreck.yaml", TARGETS.replace("TRAINWRECK", TRAINWRECK).replace("steps: 60", "steps: 6000"))
        for is_guard in (True, False):
            shutil.rmtree(self.folder + "/out", ignore_errors=True)
            harness = self.start(scenario("process.crash_rank", {"x": "exited(rank=1)"}))
            guard, server = sorted(self.processes(TRAINWRECK, 1))
            os.kill(guard if is_guard else server, signal.SIGKILL)
            harness.communicate(timeout=60)
            self.assert_ranks_are_gone(5)

    def test_without_a_harness_it_is_the_command(self):
        done = subprocess.run([TRAINWRECK, "rank", "--", "sh", "-c", "echo here; exit 5"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (5, "here\n"))
        done = subprocess.run([TRAINWRECK, "rank", "--", "no-such-program"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("cannot start 'no-such-program'", done.stderr)
        self.assertEqual(subprocess.run([TRAINWRECK, "rank"], capture_output=True, check=False).returncode, 2)


if __name__ == "__main__":
    unittest_xml.main(sys.argv[2:])
