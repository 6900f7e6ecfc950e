#!/usr/bin/env python3
"""`trainwreck rank`: ranks on other machines (machines.py), and faults of machines, networks and shared folders.

Usage: rank_guard_test.py TRAINWRECK [unittest options]
"""
import glob
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest

import unittest_xml
from machines import HAS_NAMESPACES, IS_PRIVATE, NEW_MACHINE, TARGETS, TRAIN, TRAINWRECK, Machines, Network, has_network, scenario
from processes import assert_it_finds_what_it_leaves
from stale_folder import SharedFolder, has_shared_folders

EXAMPLES = os.path.abspath("examples/nodes")


def example(name, replaced=()):
    """A scenario of examples/nodes, with what these machines have in place of real ones."""
    with open(f"{EXAMPLES}/scenarios/nodes/{name}.yaml", encoding="utf-8") as file:
        text = file.read()
    for old, new in dict(replaced).items():
        assert old in text
        text = text.replace(old, new)
    with open(EXAMPLES + "/scenarios/defaults.yaml", encoding="utf-8") as file:
        return file.read() + text


def write_example(machines, store):
    """Its target, with a folder in place of /shared, and its program."""
    os.makedirs(store, exist_ok=True)
    shutil.copy(EXAMPLES + "/train.py", machines.folder)
    with open(EXAMPLES + "/trainwreck.yaml", encoding="utf-8") as file:
        target = file.read().replace("trainwreck, rank,", f"{TRAINWRECK}, rank,").replace("--store=/shared", "--store=" + store)
    assert TRAINWRECK in target and store in target
    machines.write("trainwreck.yaml", target)


@unittest.skipUnless(HAS_NAMESPACES, "no user and pid namespaces may be made here")
class MachinesTest(unittest.TestCase):
    def test_what_a_test_leaves_on_a_machine_is_found(self):
        class Leaky(Machines):
            patience = 1

            def runTest(self):
                task = [self.folder + "/bin/srun", "-n", "1", "setsid", "--fork", "sleep", "600"]
                subprocess.run(task, env={**self.environment, "TRAINWRECK_RUN": "none"}, check=True)

        assert_it_finds_what_it_leaves(self, Leaky())


@unittest.skipUnless(HAS_NAMESPACES, "no user and pid namespaces may be made here")
class RankGuardTest(Machines):
    def test_a_rank_is_killed_on_its_machine(self):
        self.run_scenario(scenario("process.crash_rank", {"killed": "exited(rank=1, signal=9) and event(rank_failed, rank=1)"}, **{"with": {"how": "sigkill"}}))
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

    def test_a_launcher_is_told_to_end_before_it_is_killed(self):
        for stubborn in ("", "1"):
            self.environment["STUBBORN"] = stubborn
            self.run_scenario(scenario("process.crash_rank", {"hangs": "stalled(lagging_rank=1)"}, **{"with": {"how": "sigstop"}}))
            self.assertEqual(os.path.exists(self.folder + "/given back"), not stubborn)
            put_down, = self.events("fault", "put_down")
            self.assertEqual(put_down["signal"] if stubborn else put_down["code"], signal.SIGKILL if stubborn else 143)
            self.assertEqual(self.events("fault", "rank_failed"), [])
            if not stubborn:
                os.remove(self.folder + "/given back")

    def test_no_rank_is_named_by_what_it_prints(self):
        hangs = TRAIN.replace("    if rank == 0:", "    if rank == 1 and step == 30:\n        nap(600)\n    if SAYS:")
        for says in ("rank == 0", "rank == 0 or step % 10 == 0"):
            self.write("train.py", hangs.replace("SAYS", says))
            self.run_control()
            stalled, = self.events("control", "stalled")
            self.assertEqual((stalled["lagging_rank"], stalled["waiting_rank"]), (-1, 0))

    def test_a_rank_may_print_one_step_alone(self):
        self.write("train.py", TRAIN.replace("if rank == 0:", "if rank == 0 or step == 0:"))
        out = self.run_control()
        self.assertEqual(self.events("control", "ended_early"), [], out)

    def test_a_machine_that_vanishes_is_named(self):
        self.environment["TRAINWRECK_GUARD_PATIENCE"] = "60"
        target = TARGETS.replace("TRAINWRECK", TRAINWRECK).replace("steps: 60", "steps: 6000")
        self.write("trainwreck.yaml", target.replace("stall_seconds: 8", "stall_seconds: 3"))  # less than it takes to know
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
        self.assertLess(stalled["idle_s"], 8)
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
            harness = self.start(scenario("process.crash_rank", {"x": "exited(rank=1)"}))
            guard, server = sorted(self.processes(TRAINWRECK, 1))
            os.kill(guard if is_guard else server, signal.SIGKILL)
            harness.communicate(timeout=60)
            self.assert_ranks_are_gone(5)

    def test_the_kernel_ends_the_rank_of_a_guard_that_is_killed_with_its_server(self):
        self.write("trainwreck.yaml", TARGETS.replace("TRAINWRECK", TRAINWRECK).replace("steps: 60", "steps: 6000"))
        harness = self.start(scenario("process.crash_rank", {"x": "exited(rank=1)"}))
        self.wait_for(lambda: self.processes("sleep", 1))
        both, helpers = self.processes(TRAINWRECK, 1), self.processes("sleep", 1)
        for number in (signal.SIGSTOP, signal.SIGKILL):  # neither sees the other one's end
            for pid in both:
                os.kill(pid, number)
        self.wait_for(lambda: not self.processes("python3", 1))
        harness.communicate(timeout=60)
        # What the rank has started stays: nobody there knows of it any more.
        self.assertEqual((len(both), len(helpers)), (2, 1))
        self.wait_for(lambda: self.processes() == helpers)
        os.kill(helpers[0], signal.SIGKILL)
        self.assert_ranks_are_gone(5)

    def test_each_rank_has_the_signals_that_it_prints(self):
        self.write("train.py", TRAIN.replace("if rank == 0:", "if True:").replace("loss {2 - step / steps}", "loss {rank + 2 - step / steps}"))
        own = {"healthy": {"own": "always (loss@1 > loss + 0.99 and loss@2 > loss + 1.99)"}}
        self.run_scenario({**scenario("process.suspend", {"paused": "event(stopped, rank=1)"}, **{"with": {"seconds": 0.5}}), **own})
        for rank in range(3):
            with open(f"{self.run_folder('control')}/rank{rank}.jsonl", encoding="utf-8") as file:
                losses = [record["loss"] for record in map(json.loads, file) if record["t"] == "step"]
            self.assertEqual(losses, [rank + 2 - step / 60 for step in range(60)])

    def test_the_place_where_ranks_meet_is_handed_on(self):
        for address in ("n7", None):
            self.environment.pop("MASTER_ADDR", None)
            if address is not None:
                self.environment["MASTER_ADDR"] = address
            self.run_control()
            with open(self.run_folder("control") + "/environment.train.0.rank0.json", encoding="utf-8") as file:
                variables = json.load(file)
            self.assertEqual(variables["set"].get("MASTER_ADDR"), address)
            self.assertEqual("MASTER_ADDR" in variables["unset"], address is None)
            self.assertEqual("MASTER_PORT" in variables["set"], address is not None)

    def test_a_rank_whose_signal_is_no_number_is_named(self):
        self.write("train.py", TRAIN.replace("    if rank == 0:", "    if rank == 2 and step == 5:\n        print('step 5: loss x', flush=True)\n    if rank == 0:"))
        self.run_control()
        unreadable, = self.events("control", "unreadable")
        self.assertEqual((unreadable["rank"], unreadable["text"]), (2, "x"))

    def test_the_last_words_are_those_of_the_rank_that_failed(self):
        ending = """    if step == 30 and rank == 1:
        helper.kill()
        sys.exit("this is enough")
    print(f"rank {rank} is at {step}", file=sys.stderr, flush=True)
    if rank == 0:
"""
        self.write("train.py", TRAIN.replace("    if rank == 0:\n", ending))
        self.run_control()
        failed, = self.events("control", "rank_failed")
        self.assertEqual((failed["rank"], failed["code"]), (1, 1))
        self.assertTrue(failed["last_words"].endswith("rank 1 is at 29\nthis is enough"), failed["last_words"])
        self.assertNotIn("rank 2", failed["last_words"])

    def run_control(self):
        self.write("scenarios/g/it.yaml", scenario("process.crash_rank", {"x": "exited(rank=1)"}))
        done = subprocess.run(self.words("--arm", "control", "--seed", "0"), cwd=self.folder, env=self.environment, capture_output=True,
                              text=True, check=False, timeout=100)
        return done.stdout + done.stderr

    def test_without_a_harness_it_is_the_command(self):
        done = subprocess.run([TRAINWRECK, "rank", "--", "sh", "-c", "echo here; exit 5"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (5, "here\n"))
        done = subprocess.run([TRAINWRECK, "rank", "--", "no-such-program"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("cannot start 'no-such-program'", done.stderr)
        self.assertEqual(subprocess.run([TRAINWRECK, "rank"], capture_output=True, check=False).returncode, 2)


def has_netem():
    words = ["unshare", "--user", "--map-root-user", "--net", "tc", "qdisc", "add", "dev", "lo", "root", "netem", "loss", "5%"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def has_packet_filter():
    table = "table inet t { chain c { type filter hook input priority 0; numgen random mod 2 < 1 drop; }; }"
    words = ["unshare", "--user", "--map-root-user", "--net", "nft", table]
    return shutil.which("nft") is not None and subprocess.run(words, capture_output=True, check=False).returncode == 0


@unittest.skipUnless(HAS_NAMESPACES and has_network(), "no network namespaces with ip and tc may be made here")
class NetworkTest(Network):
    def setUp(self):
        super().setUp()
        write_example(self, self.folder + "/saved")

    def fault(self, symptoms, **parameters):
        return scenario("node.command", symptoms, **{"with": parameters})

    def test_a_link_gets_slow(self):
        self.run_scenario(example("slow-link"))
        fired, = self.events("fault", "fired")
        self.assertEqual((fired["host"], fired["rank"]), ("n1", 1))
        self.assertIn("200Kbit", fired["after"])
        self.assertNotIn("tbf", fired["before"])

    @unittest.skipUnless(has_packet_filter(), "no packets may be lost here: it needs nft, and a kernel with its numgen")
    def test_a_lossy_link_changes_nothing_but_time(self):
        self.run_scenario(example("lossy-link"))
        fired, = self.events("fault", "fired")
        self.assertIn("drop", fired["after"])
        self.assertNotIn("drop", fired["before"])

    @unittest.skipUnless(HAS_NAMESPACES and has_netem(), "no link may be made late or lossy by netem here: this kernel does not have it")
    def test_a_late_and_a_lossy_link_of_netem_change_nothing_but_time(self):
        for how in ("delay 60ms", "loss 30%"):
            self.run_scenario(self.fault({"waits": "max(time[:]) > control.max(time[:]) + 0.4 and abs(loss[59] - control.loss[59]) <= 1e-9"},
                                         run=f"tc qdisc add dev eth0 root netem {how}", undo="tc qdisc del dev eth0 root",
                                         probe="tc qdisc show dev eth0"))
            fired, = self.events("fault", "fired")
            self.assertIn(how.split()[0], fired["after"])
            self.assertNotIn("netem", fired["before"])

    def test_a_cut_link_that_comes_back_changes_nothing_but_time(self):
        self.run_scenario(self.fault({"waits": "max(time[:]) > control.max(time[:]) + 0.7 and abs(loss[59] - control.loss[59]) <= 1e-9"},
                                     run="ip link set eth0 down", undo="ip link set eth0 up", probe="ip -br link show eth0", seconds=1.0))
        fired, = self.events("fault", "fired")
        self.assertIn("DOWN", fired["after"])

    def test_a_supervisor_starts_again_what_a_cut_link_holds_up(self):
        self.run_scenario(example("cut-link"))
        self.assertEqual(len(self.events("supervisor", "fired")), 1)

    def test_a_job_is_started_again_after_a_machine_died(self):
        # A switch for each run: runs that wait are beside others.
        switch = f'{self.folder}/power-off."$(echo "$TRAINWRECK_RUN" | tr / _)"'
        threading.Thread(target=self.switch_off, args=[1], daemon=True).start()
        self.run_scenario(example("node-dies", {
            "ipmitool -H n1-ipmi power off": f"f={switch}; echo $TRAINWRECK_RUN > $f; while [ -e $f ]; do sleep 0.05; done",
            "ipmitool -H n1-ipmi power on": f"rm {switch}.done", "ipmitool -H n1-ipmi power status": f"ls {switch}.done 2>&1; true"}))
        lost, = self.events("fault", "node_lost")
        self.assertEqual((lost["rank"], lost["host"]), (1, "n1"))
        for arm, hosts in (("supervisor", ["n0", "n1"]), ("others_go_on", ["n0"])):
            paths = sorted(glob.glob(self.run_folder(arm) + "/guards.train.1/rank*.json"))
            self.assertEqual([json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["host"] for path in paths], hosts)
            said = pathlib.Path(self.run_folder(arm) + "/rank0.stderr").read_text(encoding="utf-8")
            self.assertRegex(said, fr"goes on from step [1-9]\d* with {len(hosts)} of 2 ranks\n")

    def switch_off(self, host):
        while not self.is_over:
            for switch in pathlib.Path(self.folder).glob("power-off.*"):
                run = switch.read_text(encoding="utf-8")
                if run.endswith("\n"):
                    self.power_off((run.strip(), host))
                    switch.with_name(switch.name + ".done").touch()
                    switch.unlink()
            time.sleep(0.05)

    def test_a_command_that_fails_is_no_fault(self):
        said = self.run_scenario(self.fault({"x": "stalled()"}, run="ip link set eth9 down", probe="ip -br link"), status=1)
        self.assertIn("fault_not_fired", said)
        with open(self.run_folder("fault") + "/rank0.stderr", encoding="utf-8") as file:
            self.assertIn("'ip link set eth9 down' ended with 1 on n1", file.read())


FAKE_CLOCK = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"


@unittest.skipUnless(HAS_NAMESPACES and os.path.exists(FAKE_CLOCK), "no namespaces may be made here, or libfaketime is missing")
class ClockTest(Machines):
    """The machines' clocks are files, which libfaketime reads at each call."""
    before_task = f'export LD_PRELOAD={FAKE_CLOCK} FAKETIME_TIMESTAMP_FILE="$PWD/clock.$1" FAKETIME_NO_CACHE=1 DONT_FAKE_MONOTONIC=1; '

    def setUp(self):
        super().setUp()
        write_example(self, self.folder + "/saved")

    def test_a_clock_that_jumps_changes_nothing(self):
        for jump in ("+1h", "-1h"):
            for rank in range(2):
                self.write(f"clock.{rank}", "+0")
            self.run_scenario(example("clock-jumps", {"date -s '+1 hour'": f"echo {jump} > {self.folder}/clock.0",
                                                      "date -s '-1 hour'": f"echo +0 > {self.folder}/clock.0"}))
            self.assertEqual(self.events("fault", "node_lost") + self.events("fault", "stalled"), [])
            fired, = self.events("fault", "fired")
            hours = (int(fired["after"]) - int(fired["before"])) / 3600
            self.assertAlmostEqual(hours, 1 if jump == "+1h" else -1, delta=0.1)


# As TRAIN, with a helper less, in a folder that may be away.
MEET = """
import os, select, sys
nap = lambda seconds: select.select([], [], [], seconds)
rank, ranks, folder, steps = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"]), sys.argv[1], int(sys.argv[2])
def there(path, makes):
    try:
        if makes:
            open(path, "w").close()
        return os.path.exists(path)
    except OSError:
        return False
for step in range(steps):
    while not there(f"{folder}/{rank}.{step}", True):  # it comes back
        nap(0.02)
    while not all(there(f"{folder}/{other}.{step}", False) for other in range(ranks)):
        nap(0.005)
    nap(0.02)
    if rank == 0:
        print(f"step {step}: loss {2 - step / steps}", flush=True)
"""


@unittest.skipUnless(HAS_NAMESPACES and IS_PRIVATE, "nothing may be mounted here")
class SharedFolderTest(Machines):
    def setUp(self):
        super().setUp()
        self.saved = self.folder + "/saved"
        write_example(self, self.saved)

    def test_a_shared_folder_that_is_full(self):
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "none", self.saved], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", self.saved], check=True)
        self.run_scenario(example("full-folder", {"/shared": self.saved}))
        fired, = self.events("goes_on_without", "fired")
        self.assertEqual(fired["after"].split()[-1], "0")
        for arm, says in (("fault", "OSError: [Errno 28] No space left on device"), ("goes_on_without", "No space left on device")):
            with open(self.run_folder(arm) + "/rank0.stderr", encoding="utf-8") as file:
                self.assertIn(says, file.read())

    def test_a_shared_folder_that_one_machine_loses_for_a_while(self):
        self.write("train.py", MEET)
        self.write("trainwreck.yaml", TARGETS.replace("TRAINWRECK", TRAINWRECK))
        # Its guard sees no orders and is not seen, either.
        self.environment["TRAINWRECK_GUARD_PATIENCE"] = "20"
        fault = {"run": f"mount -t tmpfs none {self.folder}/out", "undo": f"umount -l {self.folder}/out", "probe": f"ls {self.folder}/out | wc -l",
                 "seconds": 1.5}
        symptoms = {"waits": "max(time[:]) > control.max(time[:]) + 1 and abs(loss[59] - control.loss[59]) <= 1e-9"}
        self.run_scenario(scenario("node.command", symptoms, **{"with": fault}))
        fired, = self.events("fault", "fired")
        self.assertEqual(fired["after"], "0")

    def new_machine(self):
        return [*NEW_MACHINE, "--mount"]


@unittest.skipUnless(HAS_NAMESPACES and IS_PRIVATE and has_shared_folders(), "no file system of one's own may be mounted here: it needs /dev/fuse")
class FileServerTest(Machines):
    """What the shared folder's server does to all machines."""

    def setUp(self):
        super().setUp()
        self.saved = self.folder + "/saved"
        write_example(self, self.saved)
        self.addCleanup(SharedFolder(self.saved, self.folder).end)

    def said(self, arm):
        with open(self.run_folder(arm) + "/rank0.stderr", encoding="utf-8") as file:
            return file.read()

    def test_handles_that_go_stale_end_a_job_which_is_started_again(self):
        self.run_scenario(example("stale-folder", {"ssh fileserver exportfs -u '*:/shared'": f"touch {self.folder}/stale",
                                                   "ssh fileserver exportfs -r": f"rm {self.folder}/stale", "/shared 2>&1": f"{self.saved} 2>&1"}))
        for arm in ("fault", "supervisor"):
            self.assertIn("OSError: [Errno 116] Stale file handle", self.said(arm))
            fired, = self.events(arm, "fired")
            self.assertEqual(fired["before"], "directory")
            self.assertIn("Stale file handle", fired["after"])
        self.assertRegex(self.said("supervisor"), r"goes on from step 2\d with 2 of 2 ranks\n")

    def test_a_server_that_does_not_answer_for_a_while_changes_nothing_but_time(self):
        fault = {"run": f"touch {self.folder}/hangs", "undo": f"rm {self.folder}/hangs", "probe": f"ls {self.folder}/hangs 2>&1; true", "seconds": 1.5}
        symptoms = {"waits": "max(time[:]) > control.max(time[:]) + 1 and abs(loss[59] - control.loss[59]) <= 1e-9"}
        self.run_scenario(scenario("node.command", symptoms, **{"with": fault}))
        self.assertEqual(self.said("fault"), "")

    def new_machine(self):
        return [*NEW_MACHINE, "--mount"]


@unittest.skipUnless(HAS_NAMESPACES and IS_PRIVATE and has_shared_folders(), "no file system of one's own may be mounted here: it needs /dev/fuse")
class LostFolderTest(Machines):
    """The run's folder has a server, for machine 1 alone. The training does not need that folder."""
    before_task = 'if [ "$1" = 1 ]; then mount --bind seen out; fi; '

    def setUp(self):
        super().setUp()
        target = TARGETS.replace("TRAINWRECK", TRAINWRECK).replace('"{run.folder}"', "meet").replace("steps: 60", "steps: 6000")
        self.write("trainwreck.yaml", target)
        for name in ("meet", "seen"):
            os.mkdir(f"{self.folder}/{name}")
        self.addCleanup(SharedFolder(self.folder + "/seen", self.folder, self.folder + "/out").end)

    def test_no_rank_outlives_a_harness_whose_folder_does_not_answer(self):
        harness = self.start(scenario("process.crash_rank", {"x": "exited(rank=1)"}))
        guard_file = self.run_folder("control") + "/guards.train.0/rank1.json"
        self.wait_for(lambda: os.path.exists(guard_file))
        with open(guard_file, encoding="utf-8") as file:  # which came through that server
            self.assertEqual(json.load(file)["host"], "n1")
        self.write("hangs", "")
        time.sleep(0.5)
        harness.kill()
        harness.wait()
        self.wait_for(lambda: not self.processes("python3") + self.processes("sleep"), 10)  # a patience of 3 s, and some
        self.assertNotEqual(self.processes(TRAINWRECK, 1), [])  # still waits for the folder, and then has to end
        os.remove(self.folder + "/hangs")
        self.assert_ranks_are_gone(5)

    def new_machine(self):
        return [*NEW_MACHINE, "--mount"]


class ExamplesTest(unittest.TestCase):
    def test_they_are_valid_and_in_their_one_form(self):
        for words in (["validate", "--target", "nodes"], ["fmt", "--check"]):
            done = subprocess.run([TRAINWRECK, *words], cwd=EXAMPLES, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest_xml.main(sys.argv[2:])
