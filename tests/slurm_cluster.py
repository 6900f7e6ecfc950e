"""A Slurm of our own on this machine: munged, slurmctld and several slurmd, in a folder of their own, with their own key and ports.

Needs the Debian packages slurmctld, slurmd, slurm-client and munge, and root (a slurmd starts tasks as their users).
"""
import os
import shutil
import signal
import socket
import subprocess
import time

from processes import processes_with

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol", "sinfo")
PACKAGES = "slurmctld slurmd slurm-client munge"
CONFIGURATION = """ClusterName=trainwreck
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.sock
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SlurmdParameters=config_overrides
SlurmdTimeout=6
KillWait=5
ReturnToService=2
JobRequeue=0
MinJobAge={min_job_age}
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{node_ports}] CPUs=1
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def why_not():
    """Why there can be no cluster here; empty: there can."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        return f"NO SLURM HERE ({', '.join(missing)} missing): apt-get install {PACKAGES}"
    return "" if os.getuid() == 0 else "NO SLURM HERE: slurmd needs root"


def free_ports(count):
    """Neighbours, since slurm.conf wants a range."""
    for first in range(20000 + os.getpid() % 1000 * 10, 32000, count):
        sockets = [socket.socket() for _ in range(count)]
        try:
            for number, one in enumerate(sockets):
                one.bind(("127.0.0.1", first + number))
            return first
        except OSError:
            pass
        finally:
            for one in sockets:
                one.close()
    raise RuntimeError("no free ports")


class Cluster:
    def __init__(self, folder, nodes=3, min_job_age=300):
        self.folder, self.nodes = folder, nodes
        self.processes = {}
        self.environment = {"SLURM_CONF": folder + "/slurm.conf"}
        os.makedirs(folder + "/state")
        with open(folder + "/key", "wb") as file:
            file.write(os.urandom(128))
        os.chmod(folder + "/key", 0o400)
        os.chmod(folder, 0o755)
        port = free_ports(nodes + 1)
        with open(folder + "/slurm.conf", "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(folder=folder, nodes=nodes, port=port, node_ports=f"{port + 1}-{port + nodes}",
                                            host=socket.gethostname().partition(".")[0], min_job_age=min_job_age))

    def start(self):
        self.start_daemon("munged", "--foreground", "--force", "--key-file=" + self.folder + "/key",
                          "--socket=" + self.folder + "/munge.sock", "--pid-file=" + self.folder + "/munged.pid",
                          "--log-file=" + self.folder + "/munged.log", "--seed-file=" + self.folder + "/munged.seed")
        self.wait_for("munged", lambda: os.path.exists(self.folder + "/munge.sock"))
        self.start_controller()
        for number in range(1, self.nodes + 1):
            self.start_node(f"n{number}")
        self.wait_for("idle nodes", lambda: all(self.state(f"n{number}") == "idle" for number in range(1, self.nodes + 1)))

    def start_controller(self):
        self.start_daemon("slurmctld", "-D")

    def start_node(self, node):
        self.start_daemon(f"slurmd.{node}", "-D", "-N", node)

    def start_daemon(self, name, *options):
        with open(f"{self.folder}/{name}.out", "a", encoding="utf-8") as out:
            self.processes[name] = subprocess.Popen([name.partition(".")[0], *options], env={**os.environ, **self.environment},
                                                    stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def stop(self, name, number=signal.SIGKILL):
        process = self.processes.pop(name)
        process.send_signal(number)
        process.wait(timeout=60)

    def call(self, *words):
        return subprocess.run(words, env={**os.environ, **self.environment}, capture_output=True, text=True, check=False,
                              timeout=60)

    def state(self, node):
        return self.call("sinfo", "--noheader", "--nodes=" + node, "--format=%T").stdout.strip()

    def wait_for(self, what, holds, seconds=60):
        deadline = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > deadline:
                raise RuntimeError(f"{what} did not come; see {self.folder}")
            time.sleep(0.1)

    def close(self):
        self.call("scancel", "--user=root")
        time.sleep(0.5)
        for name in sorted(self.processes, reverse=True):  # slurmd, slurmctld, munged
            self.stop(name, signal.SIGTERM)
        for pid in processes_with("SLURM_CONF=" + self.folder):  # tasks of a slurmd that was killed, and who watches them
            os.kill(pid, signal.SIGKILL)
