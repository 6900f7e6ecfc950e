"""Several machines on this one, for tests of `trainwreck rank`. A machine is a pid namespace with a name of its own; the harness, itself
in one, sees no process of the others. A stand-in for srun asks a daemon, which is the test, to start the tasks there. What is shared is a
folder. `Network` gives each machine a network of its own as well, with a cable to a switch (network.py).

The importing test is started with the harness as its first argument.
"""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from network import USER, Switch, first_process, network_works
from processes import processes_with, words_of

TRAINWRECK = os.path.abspath(sys.argv[1])
NEW_MACHINE = ["unshare", *USER, "--uts", "--pid", "--fork", "--mount-proc"]
# What tests mount is seen by their machines alone.
PRIVATE = ["unshare", *USER, "--mount"]
IS_PRIVATE = os.environ.get("MACHINES_ARE_PRIVATE") == "1"
if not IS_PRIVATE and subprocess.run([*PRIVATE, "true"], capture_output=True, check=False).returncode == 0:
    os.environ["MACHINES_ARE_PRIVATE"] = "1"
    os.execvp(PRIVATE[0], [*PRIVATE, sys.executable, *sys.argv])
HAS_NAMESPACES = subprocess.run([*NEW_MACHINE, "true"], capture_output=True, check=False).returncode == 0

# Trains in step with the other ranks: none is more than a step ahead. It has a helper, as a loader has workers. It naps by select: time.sleep
# waits until a time of a clock, which libfaketime does not know, and which a virtual machine has refused (EINVAL), if once in thousands of runs.
TRAIN = """
import os, select, subprocess, sys, time
nap = lambda seconds: select.select([], [], [], seconds)
rank, ranks, folder, steps = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"]), sys.argv[1], int(sys.argv[2])
helper = subprocess.Popen(["sleep", "600"])
for step in range(steps):
    open(f"{folder}/{rank}.{step}", "w").close()
    while not all(os.path.exists(f"{folder}/{other}.{step}") for other in range(ranks)):
        nap(0.005)
    nap(0.02)
    if rank == 0:
        print(f"step {step}: loss {2 - step / steps}", flush=True)
helper.kill()
"""

SRUN = """#!/usr/bin/env python3
import json, os, select, signal, socket, sys, time
told = []
def end(*_):
    told.append(True)
    if not os.environ.get("STUBBORN"):
        open("given back", "w").close()
        os._exit(143)
signal.signal(signal.SIGTERM, end)
command, options, sockets = sys.argv[1:], {}, {}
while command[0].startswith("-"):
    options[command[0]], command = command[1], command[2:]
ranks = int(options["-n"])
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
while told or (failed and os.environ.get("STUBBORN")):  # a stubborn one, which may be told after its ranks have ended
    time.sleep(1)
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


class Machines(unittest.TestCase):
    before_task = ""  # of a machine, for the shell
    patience = 10  # seconds in which all ranks have to end

    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.write("train.py", TRAIN)
        self.write("trainwreck.yaml", TARGETS.replace("TRAINWRECK", TRAINWRECK))
        self.write("bin/srun", SRUN)
        os.chmod(self.folder + "/bin/srun", 0o755)
        self.write("up", "")
        self.marker = f"MACHINES_TEST={os.getpid()}.{self.id()}"
        name, value = self.marker.split("=")
        self.sockets = tempfile.mkdtemp()  # of short names
        self.addCleanup(shutil.rmtree, self.sockets)
        self.environment = {**os.environ, "PATH": self.folder + "/bin:" + os.environ["PATH"], "DAEMON": self.sockets + "/daemon",
                            "TRAINWRECK_CACHE": self.folder + "/.cache", "TRAINWRECK_GUARD_PATIENCE": "3", name: value}
        self.daemon = socket.socket(socket.AF_UNIX)
        self.daemon.bind(self.sockets + "/daemon")
        self.daemon.listen(64)
        self.machines, self.tasks = [], 0
        self.silent = []  # connections that stay open
        threading.Thread(target=self.serve, daemon=True).start()

    def tearDown(self):
        try:
            self.assert_ranks_are_gone()
        finally:
            self.end_machines()

    def end_machines(self):
        """And with them whatever is left there."""
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
        host = self.host_of(task)
        if host is None:
            connection.sendall(b"1")
            return
        words = ["sh", "-c", self.before_task + MACHINE, "sh", str(host), self.folder + "/up", code, *task["command"]]
        variables = {**task["environment"], "ADDRESS": self.address_of(self.tasks)}
        machine = subprocess.Popen([*self.new_machine(), *words], cwd=task["folder"], env=variables, stdin=files[0], stdout=files[1],
                                   stderr=files[2])
        self.machines.append(machine)
        self.connect(machine, host, task["environment"]["TRAINWRECK_RUN"])
        for file in files:
            os.close(file)
        connection.settimeout(0.05)
        is_to_end = False
        while not os.path.exists(code):
            if machine.poll() is not None:
                self.silent.append(connection)
                return  # it was switched off, and nobody tells srun
            try:
                is_to_end = connection.recv(100) == b"kill" or is_to_end
            except socket.timeout:
                pass
            if is_to_end:  # as soon as it has begun
                try:
                    for pid in sorted(self.processes(TRAINWRECK, task["rank"], task["environment"]["TRAINWRECK_RUN"]))[:1]:
                        os.kill(pid, signal.SIGKILL)  # its own child alone: a launcher without control groups
                        is_to_end = False
                except ProcessLookupError:
                    pass
        with open(code, encoding="utf-8") as file:
            try:
                connection.sendall(file.read().encode())
            except OSError:
                pass  # srun is gone

    def host_of(self, task):
        """The number of its machine; None if there is none."""
        return task["rank"]

    def address_of(self, _):
        """All machines have one network."""
        return "127.0.0.1"

    def new_machine(self):
        return NEW_MACHINE

    def connect(self, machine, host, run):
        """To the network, where there is one."""

    def processes(self, program="", rank=None, run=None):
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
            is_shell = words[:2] == ["sh", "-c"] and words[2].endswith(MACHINE)
            is_machine = is_shell or words[0] == "unshare" or words[:2] == ["sleep", "0.1"]
            is_of_run = run is None or f"TRAINWRECK_RUN={run}" in variables
            if own and not is_machine and is_of_run and words[0].startswith(program) and (rank is None or own == [f"SLURM_PROCID={rank}"]):
                found.append(pid)
        return found

    def wait_for(self, condition, seconds=5):
        deadline = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)

    def assert_ranks_are_gone(self, seconds=None):
        deadline = time.monotonic() + (self.patience if seconds is None else seconds)
        while (left := words_of(self.processes())) and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertEqual(left, [])

    # The harness, on a machine of its own.

    def words(self, *more):
        return [*NEW_MACHINE, "--kill-child", TRAINWRECK, "run", "--target", "nodes", "-j", "1", "--keep", "all", "--output", "out",
                "--history", "none", "--no-preflight", *more]

    def run_scenario(self, text, status=0):
        self.write("scenarios/g/it.yaml", text)
        done = subprocess.run(self.words("g/it"), cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False,
                              timeout=200)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr + self.said_by_ranks())
        self.assert_ranks_are_gone(3)
        return done.stdout

    def said_by_ranks(self):
        return "".join(f"{path}:\n{path.read_text(encoding='utf-8', errors='replace')}"
                       for path in sorted(pathlib.Path(self.folder, "out").glob("g/it/*/0/rank0.stderr")))

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


# What a machine with a network does before its task.
NETWORKED = 'until ip link show eth0 >/dev/null 2>&1; do sleep 0.02; done; ip link set lo up; ip addr add "$ADDRESS/16" dev eth0; ' \
            "ip link set eth0 up; "
SLOW_LINK = "tc qdisc add dev t0 root tbf rate 1mbit burst 5kb latency 400ms"


def has_network():
    return network_works(*USER, probe=SLOW_LINK.split())


class Network(Machines):
    """Each machine has a network of its own, with a cable to a switch."""
    before_task = NETWORKED

    def setUp(self):
        super().setUp()
        self.switch = Switch(*USER)
        self.connected, self.is_over = {}, False
        self.count, self.lost = None, set()  # of machines, where none is spare; the name of a run and what it has lost
        self.addCleanup(self.switch.close)

    def end_machines(self):
        self.is_over = True
        super().end_machines()

    def host_of(self, task):
        """A run gets no other machine for one that it has lost, if their number is known."""
        if self.count is None:
            return task["rank"]
        left = [host for host in range(self.count) if (task["environment"]["TRAINWRECK_RUN"], host) not in self.lost]
        return left[task["rank"]] if task["rank"] < len(left) else None

    def address_of(self, task):
        return f"10.0.0.{task}"

    def power_off(self, host):
        """Or a run and its host."""
        machine, cable = self.connected[host]
        self.switch.cut(cable)
        os.kill(first_process(machine), signal.SIGKILL)  # and all of its namespace with it
        machine.wait()

    def new_machine(self):
        return self.switch.inside("unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--mount-proc")

    def connect(self, machine, host, run):
        cable = self.switch.connect(first_process(machine))
        self.connected[run, host] = self.connected[host] = machine, cable
