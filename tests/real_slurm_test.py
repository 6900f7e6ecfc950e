#!/usr/bin/env python3
"""`run --on slurm` and `parallel.launcher=srun` with a real Slurm, whose nodes are hosts of a network on this machine (slurm_cluster.py).
Skipped where Debian's packages are missing, or no namespaces may be made.

Usage: real_slurm_test.py TRAINWRECK FAKE_TARGET TRAINER [unittest options]
"""
import glob
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import unittest_xml
from network import first_process
from processes import SEARCHED, assert_it_finds_what_it_leaves, kill_all, of, parent_of, processes_with, torchrun_settings, with_all_below
from slurm_cluster import Cluster, why_not
from slurm_testing import SlurmTestCase

SlurmTestCase.trainwreck, SlurmTestCase.target, TRAINER = map(os.path.abspath, sys.argv[1:4])
WHY_NOT = why_not()

# Ranks in step, by files that all see.
TRAIN = """
import os, select, sys
folder, steps, rank, ranks = sys.argv[1], int(sys.argv[2]), int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
for step in range(steps):
    open(f"{folder}/{rank}.{step}", "w").close()
    while not all(os.path.exists(f"{folder}/{other}.{step}") for other in range(ranks)):
        select.select([], [], [], 0.005)
    select.select([], [], [], 0.04)
    if rank == 0:
        print(f"step {step}: loss {2 - step / steps}", flush=True)
"""
TARGETS = """
apiVersion: trainwreck/v1
kind: Targets
targets:
  spread:
    command: [srun, -N2, --ntasks-per-node=1, --kill-on-bad-exit, torchrun, --nnodes=2, --nproc_per_node=1, --rdzv_backend=c10d,
              --no_python, TRAINWRECK, rank, --, python3, train.py, "{run.folder}", "{steps}"]
    recipe: {steps: 60}
    ranks: {default: 2, launcher: torchrun}
    signals: {loss: {}}
    sources:
      - {stdout: 'step (?P<step>\\d+): loss (?P<loss>\\S+)'}
    budget: {seconds: 120, stall_seconds: 30}
"""


@unittest.skipIf(WHY_NOT, WHY_NOT)
class RealSlurmTest(SlurmTestCase):
    long_run = "out/l/long/control/0"
    nodes = 2  # of a run

    def setUp(self):
        super().setUp()
        # Paths of sockets have at most 108 characters.
        self.cluster_folder = tempfile.mkdtemp(prefix="slurm-", dir="/tmp")
        self.cluster = Cluster(self.cluster_folder, **getattr(getattr(self, self._testMethodName), "cluster", {}))
        self.environment.update(self.cluster.environment)
        self.addCleanup(shutil.rmtree, self.cluster_folder)
        self.addCleanup(self.cluster.close)
        self.cluster.start()
        self.enter = self.cluster.machines["head"].inside("env", "--chdir=" + self.folder)

    def end(self, harness, number, seconds=60):
        os.kill(first_process(harness), number)
        return harness.wait(timeout=seconds)

    def tasks(self):
        """(array job, task) -> state, for all that the controller knows."""
        lines = self.cluster.call("squeue", "--noheader", "--array", "--states=all",
                                  "--Format=ArrayJobID:|,ArrayTaskID:|,State:|,NodeList:|").stdout.splitlines()
        return {(int(fields[0]), int(fields[1])): fields[2:4] for fields in (line.split("|") for line in lines)}

    def jobs(self):
        return sorted({job for job, _ in self.tasks()})

    def node_of(self, shard):
        return next(node for (_, task), (state, node) in self.tasks().items() if task == shard and state == "RUNNING")

    def kill_watcher_of(self, shard):
        """The slurmstepd that would report the end of a task."""
        task = set(processes_with(self.marker)) & set(processes_with(f"SLURM_ARRAY_TASK_ID={shard}"))
        [watcher] = {parent for pid in task if of(parent := parent_of(pid), "comm").strip() == "slurmstepd"}
        os.kill(watcher, signal.SIGKILL)

    def make_slow(self, seconds):
        for case in ("a", "b", "c"):
            self.write_slow_scenario(case, seconds)

    def follow(self, harness, seconds=120):
        self.assertEqual(harness.wait(timeout=seconds), 0, self.read("said"))

    def words_of_two_nodes(self, *words):
        self.environment.update(SLURM_JOB_NUM_NODES=str(self.nodes), SLURM_OVERCOMMIT="1")
        return ["run", *words, "--seeds", "1", "--set", "parallel.launcher=srun", "--scenarios-root", os.path.abspath("scenarios"),
                "--target", TRAINER, "--history", "none", "--no-html", "--keep", "all", "--output", "out", "-v"]

    def run_on_two_nodes(self, *words):
        done = self.call(*self.words_of_two_nodes(*words))
        # Every arm is as claimed; one seed is too few for a verdict.
        self.assertIn("INCONCLUSIVE too_few_seeds", done.stdout, done.stderr)

    def submit(self, *words):
        """The harness within a job."""
        self.write("said")
        self.write("job.sh", "#!/bin/sh\nexec " + shlex.join([self.trainwreck, *words]) + "\n")
        del self.environment["SLURM_JOB_NUM_NODES"]
        sent = subprocess.run([*self.enter, "sbatch", f"--nodes={self.nodes}", "--overcommit", "--output=said", "job.sh"], env=self.environment,
                              capture_output=True, text=True, check=False)
        self.assertEqual(sent.returncode, 0, sent.stderr)

    def words_of_long_run(self, *words, stall_seconds=3, **recipe):
        self.write("nodes/l/long.yaml", json.dumps({
            "apiVersion": "trainwreck/v1", "kind": "Scenario", "title": "A long run", "no_remedy": "a test of the harness",
            "recipe": {"model.kind": "mlp", "data": {"kind": "features", "samples": 640, "batch_size": 4}, "sampler.deal_out": True,
                       "checkpoint": {"every": 10, "keep": 3, "elastic": True}, "parallel.ranks": 2, "steps": 1500, **recipe},
            "inject": {"hot": {"fault": "recipe.high_lr", "with": {"factor": 2}}}, "symptoms": {"differs": "abs(loss[9] - control.loss[9]) > 0"},
            "budget": {"seconds": 200, "stall_seconds": stall_seconds}}))
        words = self.words_of_two_nodes("l/long", "--arm", "control", "--seed", "0", *words)
        words[words.index("--scenarios-root") + 1] = self.path("nodes")
        return words

    def words_of_run_that_goes_on(self):
        return self.words_of_long_run(**{"parallel.ranks": 4, "supervisor": {"max_restarts": 4, "backoff_s": 8, "resume_ranks": 2}})

    def steps(self, rank=0):
        path = self.path(self.long_run, f"rank{rank}.jsonl")
        lines = self.read(path).splitlines(keepends=True) if os.path.exists(path) else []
        return [json.loads(line) for line in lines if line.endswith("\n") and '"t":"step"' in line]

    def wait_for_steps(self, count):
        self.wait_for(f"step {count} of rank 1", lambda: len(self.steps(rank=1)) >= count)

    def events(self, name):
        lines = [json.loads(line) for line in self.read(self.long_run + "/launcher.jsonl").splitlines()]
        return [line for line in lines if line.get("event") == name]

    def wait_for_failed_job(self):
        self.wait_for("the end of the job", lambda: "ExitCode=7:0" in self.cluster.call("scontrol", "show", "job").stdout, 30)

    def assert_quiet_nodes(self, seconds=60):
        """No node is given up, and nothing but its slurmd is left on it."""
        quiet = {node: ["idle", "slurmd"] for node in self.cluster.machines if node != "head"}
        deadline = time.monotonic() + seconds
        while (seen := {node: [self.cluster.state(node), *self.running_on(node)] for node in quiet}) != quiet and time.monotonic() < deadline:
            time.sleep(0.5)
        self.assertEqual(seen, quiet)

    def running_on(self, node):
        return [of(pid, "comm").strip() for pid in self.cluster.machines[node].processes()]

    def guards(self, folder):
        return {os.path.basename(path): json.loads(open(path, encoding="utf-8").read()) for path in glob.glob(self.path(folder, "rank*.json"))}

    def test_ranks_of_the_reference_trainer_on_two_nodes(self):
        self.run_on_two_nodes("hang/silent-rank-death", "--point", "sigkill-two")
        guards = self.guards("out/hang/silent-rank-death/sigkill-two/fault/0/guards.train.0")
        self.assertEqual({name: guard["host"] for name, guard in guards.items()}, {"rank0.json": "n1", "rank1.json": "n2"})
        self.assertEqual((guards["rank1.json"]["state"], guards["rank1.json"]["signal"]), ("ended", 9))

    def test_ranks_of_torchrun_on_two_nodes(self):
        torchrun = shutil.which("torchrun", path=SEARCHED)
        if torchrun is None:
            self.skipTest("no torchrun: ci/test.sh installs Debian's")
        self.environment.update(torchrun_settings(os.path.dirname(torchrun) + "/python3"), PATH=SEARCHED, MASTER_ADDR="n1")
        self.write("train.py", TRAIN)
        self.write("trainwreck.yaml", TARGETS.replace("TRAINWRECK", self.trainwreck))
        self.write("nodes/l/killed.yaml", json.dumps({
            "apiVersion": "trainwreck/v1", "kind": "Scenario", "title": "A rank is killed", "seeds": 1, "no_remedy": "a test of the harness",
            "inject": {"it": {"fault": "process.crash_rank", "with": {"how": "sigkill"}, "at": 20, "ranks": [1]}},
            "healthy": {"completes": "ended(rank=0, why=completed)"},
            "symptoms": {"lost": "not ended(rank=0, why=completed)", "killed": "exited(rank=1, signal=9)"}}))
        done = self.call("run", "l/killed", "--scenarios-root", "nodes", "--target", "spread", "-j", "1", "--keep", "all", "--output", "out",
                         "--history", "none", "--no-preflight")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for arm in ("control", "fault"):
            guards = self.guards(f"out/l/killed/{arm}/0/guards.*.0")
            self.assertEqual(sorted(guard["host"] for guard in guards.values()), ["n1", "n2"])
        lines = map(json.loads, self.read("out/l/killed/fault/0/launcher.jsonl").splitlines())
        fired, = [line for line in lines if line.get("event") == "fired"]
        self.assertEqual((fired["host"], fired["signal"]), (guards["rank1.json"]["host"], 9))
        self.assert_quiet_nodes()

    def test_a_job_goes_on_without_the_ranks_of_a_node_that_were_killed(self):
        self.run_on_two_nodes("resume/node-lost")
        before, after = (self.guards(f"out/resume/node-lost/others_go_on/0/guards.train.{attempt}") for attempt in (0, 1))
        # Slurm fills one node first. Which ones it takes is its own choice: one of the run before may not be given back yet.
        hosts, signals = zip(*((guard["host"], guard["signal"]) for _, guard in sorted(before.items())))
        self.assertEqual((hosts[0], hosts[2]), (hosts[1], hosts[3]))
        self.assertNotEqual(hosts[0], hosts[2])
        self.assertEqual(signals[2:], (9, 9))
        self.assertEqual(sorted(after), ["rank0.json", "rank1.json"])

    def test_a_job_goes_on_without_a_node_that_died(self):
        harness = self.start(*self.words_of_run_that_goes_on())
        self.wait_for_steps(100)
        self.cluster.machines["n2"].power_off()
        self.follow(harness)
        self.assert_goes_on_elsewhere()

    def assert_goes_on_elsewhere(self):
        lost = {(event["rank"], event["host"]) for event in self.events("node_lost") if event["attempt"] == 0}
        self.assertEqual(lost, {(2, "n2"), (3, "n2")})
        restarts = self.events("restarted")
        self.assertRegex(restarts[0]["why"], r"rank [23] \(?(is )?lost")
        self.assertGreater(restarts[-1]["from_step"], 0)
        # Slurm gives the lost node out until it has noticed.
        guards = self.guards(f"{self.long_run}/guards.train.{restarts[-1]['attempt']}")
        self.assertEqual({name: guard["host"] for name, guard in guards.items()}, {"rank0.json": "n1", "rank1.json": "n3"})

    def test_ranks_meet_over_the_network(self):
        together = self.words_of_long_run("--no-preflight", "--set", "parallel.rendezvous=tcp", steps=20)
        alone = ["parallel.launcher=own" if word == "parallel.launcher=srun" else word for word in together]
        self.environment["MASTER_ADDR"] = "localhost"
        losses = self.losses(alone)
        self.assertEqual(len(losses), 20)
        self.environment["MASTER_ADDR"] = "n1"
        before = self.received("n2")
        self.assertEqual(self.losses(together), losses)
        self.assertGreater(self.received("n2") - before, 100_000)

    def losses(self, words):
        done = self.call(*words)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        losses = [step["loss"] for step in self.steps()]
        shutil.rmtree(self.path("out"))
        return losses

    def received(self, node):
        done = subprocess.run(self.cluster.machines[node].inside("cat", "/proc/net/dev"), capture_output=True, text=True, check=True)
        return int(done.stdout.partition("eth0:")[2].split()[0])

    def test_a_node_whose_link_is_cut_is_named(self):
        # Longer than Slurm takes to notice, both.
        harness = self.start(*self.words_of_long_run(stall_seconds=60, **{"parallel.timeout_s": 60}))
        self.wait_for_steps(100)
        self.cluster.machines["n2"].cut()
        self.assertEqual(harness.wait(timeout=60), 7, self.read("said"))
        failed, = self.events("rank_failed")
        self.assertEqual((failed["rank"], failed["last_words"]), (1, "Node failure on n2"))
        self.assertEqual(self.events("stalled"), [])
        self.assertIn("rank 1 was lost with its node", self.read("said"))
        self.check_processes()  # n2 is still cut off, but the guards see the folder
        self.cluster.machines["n2"].mend()
        self.assert_quiet_nodes()

    def test_a_node_that_loses_its_link_and_the_shared_folder_is_named(self):
        self.environment["TRAINWRECK_GUARD_PATIENCE"] = "4"
        self.submit(*self.words_of_long_run())
        self.wait_for_steps(100)
        self.cluster.machines["n2"].cut(self.folder)
        self.wait_for_failed_job()
        lost, = self.events("node_lost")  # before Slurm knows of it
        self.assertEqual((lost["rank"], lost["host"]), (1, "n2"))
        stalled, = self.events("stalled")
        self.assertEqual((stalled["lagging_rank"], stalled["lagging_state"]), (1, "lost"))
        self.assertLess(stalled["idle_s"], 8)
        self.check_processes()  # that of n2 has ended for want of a harness
        self.cluster.machines["n2"].mend(self.folder)
        self.assert_quiet_nodes()

    def stall_of(self, cut):
        """Of a run that hangs since `cut` was called, while the folder shows that all ranks live."""
        self.submit(*self.words_of_long_run(**{"parallel.ranks": self.nodes}))
        self.wait_for_steps(100)
        cut(self.cluster.machines["n2"])
        self.wait_for_failed_job()
        self.assertEqual(self.events("node_lost"), [])
        self.check_processes()
        stalled, = self.events("stalled")
        return stalled

    def test_a_node_without_a_link_is_named_while_all_are_seen_to_live(self):
        stalled = self.stall_of(cut=lambda node: node.cut())
        self.assertEqual((stalled["lagging_rank"], stalled["lagging_state"]), (1, "cut_off"))
        self.assertRegex(self.read("said"), "; rank [01] on n[12] gets no answer from rank [01] on n[12]")

    def test_of_two_nodes_that_a_switch_keeps_apart_none_is_named(self):
        stalled = self.stall_of(cut=lambda node: node.isolate())
        self.assertEqual((stalled["waiting_op"], stalled["lagging_rank"]), ("all_reduce", -1))
        self.assertRegex(self.read("said"), "no rank is known to lag; rank [01] on n[12] gets no answer from rank [01] on n[12]")

    def test_of_three_nodes_the_one_that_a_switch_keeps_from_the_others_is_named(self):
        self.nodes = 3
        stalled = self.stall_of(cut=lambda node: node.isolate())
        # None, where two ranks wait for data, so that one alone has sent some.
        self.assertIn((stalled["lagging_rank"], stalled["lagging_state"]), [(1, "cut_off"), (-1, "")])
        self.assertRegex(stalled["dead_link"], "^rank . on n. gets no answer from rank . on n.$")

    def test_a_job_goes_on_without_a_node_whose_link_is_cut(self):
        harness = self.start(*self.words_of_run_that_goes_on())
        self.wait_for_steps(100)
        self.cluster.machines["n2"].cut(self.folder)
        self.follow(harness)
        self.assert_goes_on_elsewhere()

    def test_srun_gives_back_the_job_of_a_run_that_hangs(self):
        harness = self.start(*self.words_of_long_run())
        self.wait_for_steps(100)
        trainer, = [pid for pid in self.cluster.machines["n2"].processes() if of(pid, "comm").startswith("trainwreck-trai")]
        os.kill(trainer, signal.SIGSTOP)
        self.assertNotEqual(harness.wait(timeout=60), 0)
        self.assertEqual([event["lagging_rank"] for event in self.events("stalled")], [1])
        self.assert_quiet_nodes(10)  # where srun was killed, Slurm kept the job for a minute

    def test_nothing_is_left_of_a_job_whose_batch_step_is_killed(self):
        self.environment["TRAINWRECK_GUARD_PATIENCE"] = "4"
        self.submit(*self.words_of_run_that_goes_on())
        self.wait_for_steps(100)
        harness = {pid for pid in processes_with(self.marker) if of(pid, "cmdline").startswith("\0".join([self.trainwreck, "run", ""]))}
        watchers = {parent_of(pid) for pid in harness if of(parent_of(pid), "comm").strip() == "slurmstepd"}
        self.assertEqual(len(watchers), 1)
        killed = with_all_below(watchers)
        kill_all(killed)
        self.assertNotEqual(set(processes_with(self.marker)) - killed, set())  # guards and ranks of another step
        self.check_processes()

    def test_an_array_of_shards_is_as_one_run(self):
        self.write_scenario("weak", quality="at_end loss < 0.0001")
        done = self.call(*self.on_slurm("--sbatch", "partition=main", "--sbatch", "time=10", "--report", "junit=junit.xml"))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("# 4 cases: 3 pass, 1 fail; ", done.stdout)
        self.assertIn('tests="4" failures="1"', self.read("junit.xml"))
        self.assertEqual(self.assert_as_one_run(), 1)
        self.assertEqual(len(self.runs_in_history()), 1)
        self.assertEqual(sorted(task for _, task in self.tasks()), [1, 2, 3])

    def test_a_node_that_dies_is_replaced(self):
        self.make_slow(60)  # longer than Slurm takes to notice
        harness = self.start(*self.on_slurm("--sbatch", "no-requeue"))
        self.wait_to_hear("3 running")
        node = self.node_of(2)
        self.cluster.stop(node, "slurmd")
        self.kill_watcher_of(2)  # the task itself goes on, and Slurm does not hear of it any more
        self.wait_to_hear(f"shard 2/3 ended with NODE_FAIL on {node}: submitting it again", 120)
        self.follow(harness, 200)
        self.assertEqual(len(self.jobs()), 2)
        self.assert_as_one_run()

    def test_a_node_whose_link_is_cut_is_replaced(self):
        self.make_slow(60)  # longer than Slurm takes to notice, and to find it again
        harness = self.start(*self.on_slurm("--report", "junit=junit.xml"))
        self.wait_to_hear("3 running")
        node = self.node_of(2)
        self.cluster.machines[node].cut(self.folder)
        self.wait_to_hear("1 waiting (BeginTime)", 120)
        job, = self.jobs()
        self.cluster.call("scontrol", "update", f"JobId={job}_2", "StartTime=now")
        self.wait_for("another node", lambda: self.tasks()[job, 2][0] == "RUNNING")
        self.assertIn("fake_target", self.running_on(node))
        self.cluster.machines[node].mend(self.folder)
        self.wait_for("the end of what still ran", lambda: self.running_on(node) == ["slurmd"])  # by Slurm, when it reaches the node again
        self.assertIsNone(harness.poll())
        self.follow(harness, 200)
        self.assertEqual(self.tasks().keys(), {(job, 1), (job, 2), (job, 3)})
        self.assertNotEqual(self.tasks()[job, 2][1], node)
        self.assertIn('tests="3" failures="0"', self.read("junit.xml"))
        self.assertEqual(len(self.runs_in_history()), 1)
        self.assert_as_one_run()
        self.check_processes()
        self.assert_quiet_nodes()

    test_a_node_whose_link_is_cut_is_replaced.cluster = {"nodes": 4}

    def test_what_slurm_requeues_itself_is_followed(self):
        self.make_slow(8)
        harness = self.start(*self.on_slurm())
        self.wait_to_hear("3 running")
        node = self.node_of(2)
        self.cluster.call("scontrol", "update", "NodeName=" + node, "State=DOWN", "Reason=test")
        self.wait_to_hear("1 waiting (BeginTime)")
        self.cluster.call("scontrol", "update", "NodeName=" + node, "State=RESUME")
        # Else Slurm waits for two minutes, in which old credentials become invalid.
        self.cluster.call("scontrol", "update", f"JobId={self.jobs()[0]}_2", "StartTime=now")
        self.follow(harness)
        self.assertEqual(len(self.jobs()), 1)
        name = json.loads(self.read("out/slurm/job.json"))["name"]
        self.assertEqual(sorted(os.listdir(self.path("out/slurm", name, "2"))), [f"{self.jobs()[0]}.0", f"{self.jobs()[0]}.1"])
        self.assert_as_one_run()

    def test_a_drained_node_makes_shards_wait(self):
        self.cluster.call("scontrol", "update", "NodeName=n[2-3]", "State=DRAIN", "Reason=test")
        done = self.call(*self.on_slurm())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("2 waiting", done.stdout)
        self.assertEqual({node for _, node in self.tasks().values()}, {"n1"})
        self.assert_as_one_run()

    def test_a_job_past_its_time_limit_is_named(self):
        self.write_slow_scenario("a", 1000)
        done = self.call(*self.on_slurm("--sbatch", "time=1"), timeout=400)
        self.assertEqual(done.returncode, 7, done.stdout + done.stderr)
        self.assertRegex(done.stderr, r"shard (./3) has not come: TIMEOUT on n., after TIMEOUT")
        self.assertRegex(done.stderr, r"SHARDS ARE MISSING: ./3 \(cut off, without 1 cases; TIMEOUT on n., after TIMEOUT\)")
        self.assertEqual({one: verdict[0] for one, verdict in self.verdicts("out").items()}, {"fake/b": "pass", "fake/c": "pass"})
        self.assertEqual(len(self.jobs()), 2)

    def test_a_killed_harness_finds_its_job_again(self):
        self.make_slow(8)
        for number, status in ((signal.SIGHUP, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -signal.SIGKILL)):
            harness = self.start(*self.on_slurm())
            self.wait_to_hear("3 running")
            self.assertEqual(self.end(harness, number), status)
        done = self.call(*self.on_slurm())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("following the job that is in out", done.stdout)
        self.assertEqual(len(self.jobs()), 1)
        self.assertEqual(len(self.runs_in_history()), 1)
        self.assert_as_one_run()

    def test_an_interruption_cancels(self):
        self.make_slow(100)
        harness = self.start(*self.on_slurm())
        self.wait_to_hear("3 running")
        self.assertEqual(self.end(harness, signal.SIGINT), 130)
        self.cluster.wait_for("CANCELLED", lambda: {state for state, _ in self.tasks().values()} == {"CANCELLED"})

    def test_a_controller_that_is_away_is_waited_for(self):
        self.make_slow(10)
        harness = self.start(*self.on_slurm())
        self.wait_to_hear("3 running")
        # One that is killed forgets what it has not saved yet, and holds what it then starts again.
        self.cluster.stop("head", "slurmctld", signal.SIGTERM)
        self.wait_to_hear("Slurm does not answer (slurm_load_jobs error: ", 120)
        self.cluster.start_controller()
        self.follow(harness)
        self.assertEqual(len(self.jobs()), 1)
        self.assert_as_one_run()

    def test_shards_that_slurm_holds_wait_for_somebody(self):
        harness = self.start(*self.on_slurm("--sbatch", "hold"))
        self.wait_to_hear("3 waiting (JobHeldUser), see 'scontrol release ")
        job, = self.jobs()
        released = self.cluster.call("scontrol", "release", str(job))
        self.assertEqual(released.returncode, 0, released.stderr)
        self.follow(harness)
        self.assert_as_one_run()

    def test_a_job_that_slurm_forgot_is_known_by_its_files(self):
        self.make_slow(2)
        harness = self.start(*self.on_slurm())
        self.wait_to_hear("3 running")
        self.kill(harness)
        self.cluster.wait_for("an empty queue", lambda: not self.tasks(), 150)
        done = self.call(*self.on_slurm())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.jobs(), [])
        self.assert_as_one_run()

    test_a_job_that_slurm_forgot_is_known_by_its_files.cluster = {"min_job_age": 2}

    def test_what_slurm_refuses_is_said(self):
        done = self.call(*self.on_slurm("--sbatch", "partition=nope"))
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn("Slurm does not take the job: sbatch: error: invalid partition specified: nope", done.stderr)


@unittest.skipIf(WHY_NOT, WHY_NOT)
class ClusterTest(unittest.TestCase):
    def test_what_a_test_leaves_on_a_node_is_found(self):
        class Leaky(RealSlurmTest):
            patience = 1

            def runTest(self):
                subprocess.run(self.cluster.machines["n1"].inside("setsid", "--fork", "sleep", "600"), env=self.environment, check=True)

        assert_it_finds_what_it_leaves(self, Leaky())

    def test_it_ends_with_a_test_that_is_killed(self):
        with tempfile.TemporaryDirectory(prefix="slurm-", dir="/tmp") as folder:
            code = f"from slurm_cluster import Cluster; cluster = Cluster('{folder}'); cluster.start(); print('up', flush=True); input()"
            with subprocess.Popen([sys.executable, "-c", code], cwd=sys.path[0], env={**os.environ, "CLUSTER_TEST": folder},
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as test:
                self.assertEqual(test.stdout.readline(), "up\n")
                self.assertGreater(len(processes_with("CLUSTER_TEST=" + folder)), 10)
                test.kill()
            deadline = time.monotonic() + 10
            while (left := processes_with("CLUSTER_TEST=" + folder)) and time.monotonic() < deadline:
                time.sleep(0.1)
            self.assertEqual(left, [])


if __name__ == "__main__":
    unittest_xml.main(sys.argv[4:])
