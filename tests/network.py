"""A network on this machine, for tests. Its switch is a bridge in a namespace of its own, with a cable to eth0 of each machine, which is a
namespace as well. Nothing of it is seen outside, and it ends with the test, even with one that is killed: what holds it reads from the test.
"""
import itertools
import os
import signal
import subprocess
import time

os.environ["PATH"] += ":/usr/sbin:/sbin"  # where ip and tc are
USER = ("--user", "--map-root-user")  # who may do in a namespace what root may
SWITCH = "ip link add br0 type bridge && ip link set br0 up && ip link set lo up && ip link add name t0 type veth peer name t1"
MACHINE = 'hostname "$1" && mount --bind "$2" /etc/hosts && ip link set lo up'
OF_A_MACHINE = ("--net", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
# Whoever ends on a machine, and has lost its parent, is not left as a zombie.
STAY = "echo up && exec env --ignore-signal=CHLD cat >/dev/null"


def hold(unshare, script, *arguments):
    """A process in namespaces that are made as the script says, which stays there as long as the test."""
    holder = subprocess.Popen(["unshare", *unshare, "sh", "-c", f"{script} && {STAY}", "sh", *arguments], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if holder.stdout.readline() != b"up\n":
        raise RuntimeError(f"no namespaces: {holder.communicate()[1].decode()}")
    return holder


def first_process(parent):
    """The child that is in the namespace of processes which unshare or nsenter enters."""
    children = f"/proc/{parent.pid}/task/{parent.pid}/children"
    while not (child := open(children, encoding="utf-8").read().split()):
        time.sleep(0.01)
    return int(child[0])


class Switch:
    def __init__(self, *rights):
        self.rights = rights
        self.holder = hold([*rights, "--net"], SWITCH)
        self.cables = map("v{}".format, itertools.count(1))

    def inside(self, *words):
        user = ["--user", "--preserve-credentials"] if self.rights else []
        return ["nsenter", "-t", str(self.holder.pid), *user, "--net", *words]

    def ip_link(self, *words):
        subprocess.run(self.inside("ip", "link", *words), check=True)

    def connect(self, pid):
        """The name of a new cable to the machine of a process."""
        cable = next(self.cables)
        self.ip_link("add", "name", cable, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
        self.ip_link("set", cable, "master", "br0", "up")
        return cable

    def cut(self, cable):
        self.ip_link("set", cable, "down")

    def isolate(self, cable):
        """Its two ends still have a link, and the switch passes nothing on."""
        self.ip_link("set", cable, "nomaster")

    def mend(self, cable):
        self.ip_link("set", cable, "up")

    def close(self):
        self.holder.communicate()


def network_works(*rights, probe=("true",)):
    try:
        switch = Switch(*rights)
    except (OSError, RuntimeError):
        return False
    try:
        return subprocess.run(switch.inside(*probe), capture_output=True, check=False).returncode == 0
    finally:
        switch.close()


class Machine:
    """It has an address, a name, processes and mounts of its own. `hosts` is its /etc/hosts. Needs root."""

    def __init__(self, switch, name, address, hosts):
        self.switch = switch
        self.holder = hold(OF_A_MACHINE, MACHINE, name, hosts)
        self.first = first_process(self.holder)
        self.cable = switch.connect(self.first)
        for words in (["addr", "add", address + "/24", "dev", "eth0"], ["link", "set", "eth0", "up"]):
            subprocess.run(self.inside("ip", *words), check=True)

    def inside(self, *words):
        """As what nsenter starts there, in the root folder."""
        return ["nsenter", "-t", str(self.first), "--net", "--uts", "--mount", "--pid", *words]

    def processes(self):
        """The pids, as they are seen here, of all but the first."""
        own, found = os.readlink(f"/proc/{self.first}/ns/pid"), []
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            try:
                if os.readlink(f"/proc/{pid}/ns/pid") == own and pid != self.first:
                    found.append(pid)
            except OSError:  # it has ended
                pass
        return found

    def cut(self, folder=None):
        """Its link, and a folder that comes over it."""
        self.switch.cut(self.cable)
        if folder:
            subprocess.run(self.inside("mount", "-t", "tmpfs", "none", folder), check=True)

    def isolate(self):
        self.switch.isolate(self.cable)

    def mend(self, folder=None):
        if folder:
            subprocess.run(self.inside("umount", "-l", folder), check=True)
        self.switch.mend(self.cable)

    def power_off(self):
        """Nobody on it says a word more."""
        if self.holder.poll() is None:
            self.cut()
            os.kill(self.first, signal.SIGKILL)  # and all others with it
        self.holder.communicate()
