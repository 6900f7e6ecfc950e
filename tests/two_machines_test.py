#!/usr/bin/env python3
"""The reference trainer with a rank on each of two machines or four, which are namespaces with a network of their own (machines.py).

Usage: two_machines_test.py TRAINWRECK TRAINER [unittest options]
"""
import glob
import json
import os
import subprocess
import sys
import threading
import time
import unittest

import unittest_xml
from machines import HAS_NAMESPACES, NETWORKED, NEW_MACHINE, TRAINWRECK, Network, has_network

TRAINER = os.path.abspath(sys.argv[2])

SCENARIO = {
    "apiVersion": "trainwreck/v1", "kind": "Scenario", "title": "Two ranks", "seeds": 1, "no_remedy": "a test of the launcher",
    "recipe": {"model": {"kind": "mlp", "width": 32}, "data": {"kind": "features", "samples": 512}, "steps": 20,
               "parallel": {"ranks": 2, "timeout_s": 20}},
    "inject": {"hot": {"fault": "recipe.high_lr", "with": {"factor": 2}}},
    "symptoms": {"differs": "abs(loss[19] - control.loss[19]) > 0"},
}

# The rank that stops is that of a machine which the test then switches off.
NODE_LOST = {
    "apiVersion": "trainwreck/v1", "kind": "Scenario", "title": "A machine is lost, and none is spare", "seeds": 1, "reference": True,
    "recipe": {"model": {"kind": "mlp"}, "data": {"kind": "features", "samples": 640, "batch_size": 4}, "sampler": {"deal_out": True},
               "checkpoint": {"every": 10, "keep": 3}, "parallel": {"ranks": 4, "launcher": "srun", "timeout_s": 60}, "steps": 60},
    "inject": {"gone": {"fault": "process.crash_rank", "with": {"how": "sigstop"}, "at": 33, "ranks": [1], "attempt": 0}},
    "healthy": {"completes": "ended(rank=0, why=completed)"},
    "symptoms": {"hangs": "stalled(lagging_rank=1)", "lost": "not ended(rank=0, why=completed)"},
    "remedies": {"others_go_on": {"set": {"supervisor.max_restarts": 1, "supervisor.resume_ranks": 2, "checkpoint.elastic": True},
                                  "resolves": ["lost"]}},
    "quality": "event(resumed, from_step=30) and always abs(loss - reference.loss) <= 1e-5 * reference.loss and "
               "always (total(epoch_samples) == 640 and 2 * total(epoch_id_sum) == 640 * 639)",
    "budget": {"seconds": 90, "stall_seconds": 4},
}


@unittest.skipUnless(HAS_NAMESPACES and has_network(), "no network namespaces with ip and tc may be made here")
class TwoMachinesTest(Network):
    # What a Slurm with a rank on each node says. None has an address that another could look up.
    before_task = 'ADDRESS="10.0.0.$(($1 + 1))"; export SLURM_LOCALID=0 SLURM_NODEID=$SLURM_PROCID ' \
                  'SLURM_STEP_TASKS_PER_NODE="1(x$SLURM_NTASKS)"; ' + NETWORKED

    def losses(self, output, *words, **variables):
        self.write("scenarios/g/it.yaml", SCENARIO)
        done = subprocess.run([*NEW_MACHINE, "--kill-child", TRAINWRECK, "run", "g/it", "--target", TRAINER, "--arm", "control", "--seed", "0",
                               "--keep", "all", "--output", output, "--history", "none", "--no-preflight", *words],
                              cwd=self.folder, env={**self.environment, **variables}, capture_output=True, text=True, check=False, timeout=100)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(f"{self.folder}/{output}/g/it/control/0/rank0.jsonl", encoding="utf-8") as file:
            losses = [record["loss"] for record in map(json.loads, file) if record["t"] == "step"]
        return losses, done.stdout + done.stderr

    def assert_trains_as_on_one(self, *words, **variables):
        alone, said = self.losses("one")
        self.assertEqual(len(alone), 20, said)
        together, said = self.losses("two", "--set", "parallel.launcher=srun", *words, **variables)
        self.assertEqual(together, alone, said)
        self.assertEqual(self.tasks, 2)

    def test_ranks_that_meet_at_the_address_of_the_job(self):
        self.assert_trains_as_on_one("--set", "parallel.rendezvous=tcp", MASTER_ADDR="10.0.0.1", GLOO_SOCKET_IFNAME="eth0")

    def test_ranks_that_meet_in_a_file(self):
        self.assert_trains_as_on_one(GLOO_SOCKET_IFNAME="eth0")

    def test_a_job_goes_on_without_a_machine_that_stays_lost(self):
        self.count = 4
        self.before_task = self.before_task[self.before_task.index("export"):]  # with another address in each run: two may run at once
        threading.Thread(target=self.switch_off_who_stops, daemon=True).start()
        self.environment.update(GLOO_SOCKET_IFNAME="eth0", TRAINWRECK_GUARD_PATIENCE="20")  # many processes begin at once
        self.write("scenarios/g/it.yaml", NODE_LOST)
        done = subprocess.run([*NEW_MACHINE, "--kill-child", TRAINWRECK, "run", "g/it", "--target", TRAINER, "-j", "1", "--keep", "all", "--output",
                               "out", "--history", "none", "--no-preflight"],
                              cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False, timeout=200)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr + self.said_by_ranks())
        for arm in ("fault", "others_go_on"):
            self.assertIn((f"g/it/{arm}/0", 1), self.lost)
        self.assertEqual([self.hosts("others_go_on", attempt) for attempt in (0, 1)], [["n0", "n1", "n2", "n3"], ["n0", "n2"]])

    def switch_off_who_stops(self):
        while not self.is_over:
            for trace in glob.glob(self.folder + "/out/g/it/*/0/rank1.jsonl"):
                arm = trace.split("/")[-3]
                run = f"g/it/{arm}/0"
                if (run, 1) not in self.lost and self.events_of(trace, "fired"):
                    self.lost.add((run, 1))
                    self.power_off((run, 1))
            time.sleep(0.05)

    def events_of(self, trace, name):
        with open(trace, encoding="utf-8") as file:
            return [line for line in file if f'"event":"{name}"' in line]

    def hosts(self, arm, attempt):
        """Of the ranks, as their guards say."""
        found = []
        for path in sorted(glob.glob(f"{self.run_folder(arm)}/guards.*.{attempt}/rank*.json")):
            with open(path, encoding="utf-8") as file:
                found.append(json.load(file)["host"])
        return found


if __name__ == "__main__":
    unittest_xml.main(sys.argv[3:])
