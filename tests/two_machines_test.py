#!/usr/bin/env python3
"""The reference trainer with a rank on each of two machines, which are namespaces with a network of their own (machines.py).

Usage: two_machines_test.py TRAINWRECK TRAINER [unittest options]
"""
import json
import os
import subprocess
import sys
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


@unittest.skipUnless(HAS_NAMESPACES and has_network(), "no network namespaces with ip and tc may be made here")
class TwoMachinesTest(Network):
    # What a Slurm of two nodes says. None has an address that another could look up.
    before_task = 'ADDRESS="10.0.0.$(($1 + 1))"; export SLURM_LOCALID=0 SLURM_NODEID=$1 SLURM_STEP_TASKS_PER_NODE="1(x2)"; ' + NETWORKED

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


if __name__ == "__main__":
    unittest_xml.main(sys.argv[3:])
