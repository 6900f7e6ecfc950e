#!/usr/bin/env python3
"""Programs that know nothing of trainwreck under the srun of a real Slurm (slurm_cluster.py), whose daemon starts their tasks. The harness is
on the node where they run: they are nobody's descendants there. Skipped where Debian's packages are missing, or no namespaces may be made.

Usage: srun_test.py TRAINWRECK FOLDER [unittest options]
"""
import shutil
import sys
import tempfile
import unittest

import unittest_xml
from slurm_cluster import Cluster, why_not
from stacks_case import StacksCase, needs, takes_long

WHY_NOT = why_not()


@unittest.skipIf(WHY_NOT, WHY_NOT)
class SrunTest(StacksCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="slurm-", dir="/tmp")  # short: sockets lie in it
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.cluster = Cluster(folder, nodes=1)
        cls.addClassCleanup(cls.cluster.close)
        cls.cluster.start()

    def setUp(self):
        super().setUp()
        self.environment.update(self.cluster.environment)
        self.enter = self.cluster.machines["n1"].inside("env", "--chdir=" + self.folder)

    def test_tasks_of_srun(self):
        self.run_scenario("rate/averaging", "srun")

    def test_one_task_of_srun_is_killed(self):
        self.run_scenario("rate/killed-slurm", "srun")
        self.assert_second_rank_was_killed("rate/killed-slurm")

    def test_tasks_of_srun_that_hang_do_not_outlive_their_run(self):
        done = self.run_scenario("rate/hung-slurm", "srun", status=None)
        self.assertIn("stalled, no progress for 5.0 s", done.stdout + done.stderr)

    @takes_long
    @needs("torch")
    def test_a_rank_that_fails_under_srun_is_named_within_5_s(self):
        self.assert_all_ways_are_named("fails-srun")


if __name__ == "__main__":
    unittest_xml.main(sys.argv[3:])
