"""A Slurm of our own on this machine, in a folder of its own, with its own key: munged and slurmctld on the machine `head`, and a slurmd on
each of n1, n2 and so on. They are namespaces with a network of their own (network.py), and share all folders.

Needs the Debian packages slurmctld, slurmd, slurm-client, munge and iproute2, and root (a slurmd starts tasks as their users).
"""
import os
import shutil
import signal
import subprocess
import time

from network import OF_A_MACHINE, Machine, Switch, first_process, network_works

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol", "sinfo", "srun", "ip")
PACKAGES = "slurmctld slurmd slurm-client munge iproute2"
NETWORK = "10.0.0"
HEAD = NETWORK + ".100"
CONFIGURATION = """ClusterName=trainwreck
SlurmctldHost=head({head})
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
NodeName=n[1-{nodes}] NodeAddr={network}.[1-{nodes}] CPUs=1
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def why_not():
    """Why there can be no cluster here; empty: there can."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        return f"NO SLURM HERE ({', '.join(missing)} missing): apt-get install {PACKAGES}"
    if os.getuid() != 0:
        return "NO SLURM HERE: slurmd needs root"
    is_possible = network_works(probe=["unshare", *OF_A_MACHINE, "true"])
    return "" if is_possible else "NO SLURM HERE: no namespaces with a network may be made, which are its nodes"


class Cluster:
    def __init__(self, folder, nodes=3, min_job_age=300):
        self.folder, self.nodes = folder, nodes
        self.daemons = {}  # machine, program -> who has entered the machine for it
        self.environment = {"SLURM_CONF": folder + "/slurm.conf"}
        os.makedirs(folder + "/state")
        with open(folder + "/key", "wb") as file:
            file.write(os.urandom(128))
        os.chmod(folder + "/key", 0o400)
        os.chmod(folder, 0o755)
        self.addresses = {"head": HEAD, **{f"n{number}": f"{NETWORK}.{number}" for number in range(1, nodes + 1)}}
        with open(folder + "/slurm.conf", "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(folder=folder, nodes=nodes, network=NETWORK, head=HEAD, min_job_age=min_job_age))
        with open(folder + "/hosts", "w", encoding="utf-8") as file:
            file.writelines(f"{address} {name}\n" for name, address in {"localhost": "127.0.0.1", **self.addresses}.items())
        self.switch, self.machines = Switch(), {}

    def start(self):
        self.switch_on("head")
        self.start_daemon("head", "munged", "--foreground", "--force", "--key-file=" + self.folder + "/key",
                          "--socket=" + self.folder + "/munge.sock", "--pid-file=" + self.folder + "/munged.pid",
                          "--log-file=" + self.folder + "/munged.log", "--seed-file=" + self.folder + "/munged.seed")
        self.wait_for("munged", lambda: os.path.exists(self.folder + "/munge.sock"))
        self.start_controller()
        nodes = [f"n{number}" for number in range(1, self.nodes + 1)]
        for node in nodes:
            self.switch_on(node)
            self.start_daemon(node, "slurmd", "-D")
        self.wait_for("idle nodes", lambda: all(self.state(node) == "idle" for node in nodes))

    def switch_on(self, name):
        self.machines[name] = Machine(self.switch, name, self.addresses[name], self.folder + "/hosts")

    def start_controller(self):
        self.start_daemon("head", "slurmctld", "-D")

    def start_daemon(self, machine, program, *options):
        with open(f"{self.folder}/{program}.{machine}.out", "a", encoding="utf-8") as out:
            self.daemons[machine, program] = subprocess.Popen(self.machines[machine].inside(program, *options), stdin=subprocess.DEVNULL,
                                                              stdout=out, stderr=out, env={**os.environ, **self.environment})

    def stop(self, machine, program, number=signal.SIGKILL):
        daemon = self.daemons.pop((machine, program))
        os.kill(first_process(daemon), number)
        daemon.wait(timeout=60)

    def call(self, *words):
        return subprocess.run(self.machines["head"].inside(*words), env={**os.environ, **self.environment}, capture_output=True,
                              text=True, check=False, timeout=60)

    def state(self, node):
        return self.call("sinfo", "--noheader", "--nodes=" + node, "--format=%T").stdout.strip()

    def wait_for(self, what, holds, seconds=60):
        deadline = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > deadline:
                raise RuntimeError(f"{what} did not come; see {self.folder}")
            time.sleep(0.1)

    def close(self):
        """Whatever still runs on its machines ends with them."""
        for machine in self.machines.values():
            machine.power_off()
        for daemon in self.daemons.values():
            daemon.wait()
        self.switch.close()
