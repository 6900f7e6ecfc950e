#!/usr/bin/env python3
"""`run --on slurm` with a stand-in for Slurm's programs (fake_slurm.py). real_slurm_test.py has a real one.

Usage: slurm_test.py TRAINWRECK FAKE_TARGET [unittest options]
"""
import glob
import json
import os
import shutil
import signal
import sys
import time

import unittest_xml
from slurm_testing import SlurmTestCase

SlurmTestCase.trainwreck, SlurmTestCase.target = map(os.path.abspath, sys.argv[1:3])
STAND_IN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fake_slurm.py")


class SlurmTest(SlurmTestCase):
    def setUp(self):
        super().setUp()
        os.makedirs(self.path("bin"))
        os.makedirs(self.path("slurm/ends"))
        for program in ("sbatch", "squeue", "sacct", "scancel"):
            shutil.copy(STAND_IN, self.path("bin", program))
            os.chmod(self.path("bin", program), 0o755)
        self.environment["PATH"] = self.path("bin") + ":" + os.environ["PATH"]
        self.environment["FAKE_SLURM"] = self.path("slurm")

    def calls(self, program):
        return [line for line in self.read("slurm/calls").splitlines() if line.startswith(program + " ")]

    def submitted(self):
        """The array of each submission: "1-3"."""
        return [line.split("--array=")[1].split()[0] for line in self.calls("sbatch")]

    def job(self, output="out"):
        return json.loads(self.read(output + "/slurm/job.json"))

    def test_shards_are_as_one_run(self):
        self.write_scenario("weak", quality="at_end loss < 0.0001")
        options = ["partition=gpu", "time=1:00:00", "account=ml", "gpus=1"]
        done = self.call(*self.on_slurm(*[word for option in options for word in ("--sbatch", option)], "--report", "junit=junit.xml",
                                        "--require", "fake/a", "--set", "steps=21"))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("# 4 cases: 3 pass, 1 fail; ", done.stdout)
        self.assertIn("# slurm: job 17: shards 1-3 of 3", done.stdout)
        self.assertIn("# slurm: 3 of 3 shards done", done.stdout)
        self.assertIn('tests="4" failures="1"', self.read("junit.xml"))
        self.assertIn("fake/weak", self.read("out/report.html"))
        one = self.call("run", "--output", "all", "--history", "none", "-j", "1", "--set", "steps=21")
        self.assertEqual(one.returncode, 1)
        self.assertEqual(self.verdicts("out"), self.verdicts("all"))
        self.assertEqual(len(self.runs_in_history()), 1)
        self.assertIn("--on slurm", self.runs_in_history()[0])
        self.assertNotIn("split by", done.stdout)
        [sbatch] = self.calls("sbatch")
        for option in [*options, "array=1-3", "requeue"]:
            self.assertIn(f" --{option} ", sbatch)
        # It is over: the same folder takes a new one.
        again = self.call(*self.on_slurm())
        self.assertIn("job 18", again.stdout, again.stderr)
        # This one knows what cases take.
        self.assertIn("# slurm: split by what 4 cases took, of the history", again.stdout)
        self.assertEqual(set(self.verdicts("out")), set(self.verdicts("all")))
        costs = json.loads(self.read(next(glob.iglob(self.path("out/slurm/*/costs.json")))))
        self.assertEqual(sorted(costs["seconds"]), ["fake/a", "fake/b", "fake/c", "fake/weak"])

    def test_shards_are_split_by_what_their_cases_took(self):
        self.write_scenario("slow", {"fake.step_ms": 40})
        self.assertEqual(self.call(*self.on_slurm(shards=2)).returncode, 0)
        self.assertEqual([len(cases) for cases in self.cases_of_shards()], [2, 2])
        again = self.call(*self.on_slurm(shards=2, output="again"))
        self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
        seconds = json.loads(self.read(glob.glob(self.path("again/slurm/*/costs.json"))[0]))["seconds"]
        slow = seconds.pop("fake/slow")
        self.assertGreater(slow, sum(seconds.values()))
        self.assertEqual(sorted(self.cases_of_shards("again")), [["fake/a", "fake/b", "fake/c"], ["fake/slow"]])

    def cases_of_shards(self, output="out"):
        folder = f"{self.path(output)}/slurm/{self.job(output)['name']}"
        return [sorted(self.verdicts(os.path.relpath(os.path.dirname(report), self.folder)))
                for report in glob.glob(folder + "/*/*/verdicts.json")]

    def test_what_a_node_took_down_is_submitted_again(self):
        self.write("slurm/ends/1", "NODE_FAIL\nPREEMPTED\n")
        self.write("slurm/ends/2", "TIMEOUT\n")
        done = self.call(*self.on_slurm())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("shard 1/3 ended with NODE_FAIL on n1: submitting it again", done.stdout)
        self.assertEqual(self.submitted(), ["1-3", "1-2", "1"])
        self.assert_as_one_run()

    def test_a_shard_that_never_came_is_named(self):
        self.write("slurm/ends/1", "TIMEOUT\nTIMEOUT\n")
        self.write("slurm/ends/2", "OUT_OF_MEMORY\n")
        done = self.call(*self.on_slurm())
        self.assertEqual(done.returncode, 7, done.stdout + done.stderr)
        self.assertIn("shard 1/3 has not come: TIMEOUT on n1, after TIMEOUT", done.stderr)
        self.assertIn("shard 2/3 has not come: OUT_OF_MEMORY on n1", done.stderr)
        self.assertRegex(done.stderr, r"SHARDS ARE MISSING: 1/3 \(TIMEOUT on n1, after TIMEOUT\), 2/3 \(OUT_OF_MEMORY on n1\)")
        self.assertEqual(self.submitted(), ["1-3", "1"])
        there, = self.verdicts("out")
        self.assertIn("cases without a verdict: " + ", ".join(sorted({"fake/a", "fake/b", "fake/c"} - {there})) + "\n", done.stderr)
        self.assertEqual(self.runs_in_history(), [])

    def test_a_shard_that_cannot_start_is_named_with_its_last_words(self):
        self.write("slurm/prolog", "rm -f scenarios/fake/a.yaml")
        done = self.call(*self.on_slurm("fake/a"))
        self.assertEqual(done.returncode, 7, done.stdout + done.stderr)
        self.assertRegex(done.stderr, r"shard 1/1 has not come: FAILED on n1, exit status 2; its last words: .*fake/a")
        self.assertEqual(self.submitted(), ["1"])

    def test_a_killed_harness_finds_its_job_again(self):
        for case in ("a", "b", "c"):
            self.write_slow_scenario(case, 2)
        harness = self.start(*self.on_slurm())
        self.wait_to_hear("3 running")
        self.kill(harness)
        done = self.call(*self.on_slurm())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("following the job that is in out", done.stdout)
        self.assertEqual(self.submitted(), ["1-3"])
        self.assertEqual(len(self.runs_in_history()), 1)
        self.assert_as_one_run()

    def test_a_harness_killed_while_it_submits_finds_its_job_again(self):
        self.write("slurm/holds")
        harness = self.start(*self.on_slurm())
        self.wait_to_hear("3 waiting")
        self.kill(harness)
        job = self.job()
        for shard in job["shards"]:
            shard["job"] = 0  # as it was before sbatch answered
        self.write("out/slurm/job.json", json.dumps(job))
        harness = self.start(*self.on_slurm())
        self.wait_to_hear("3 waiting")
        self.assertEqual(self.job()["shards"][2]["job"], 17)
        self.assertEqual(self.end(harness, signal.SIGINT), 130)
        self.assertEqual(self.submitted(), ["1-3"])

    def test_a_harness_that_is_told_to_end_leaves_its_job(self):
        for case in ("a", "b", "c"):
            self.write_slow_scenario(case, 4)
        for number, first in ((signal.SIGTERM, "job 17: shards 1-3 of 3"), (signal.SIGHUP, "following the job that is in out")):
            harness = self.start(*self.on_slurm())
            self.wait_to_hear("3 running")
            self.assertEqual(self.end(harness, number), 130)
            self.assertIn(first, self.read("said"))
            self.assertIn(f"ended by {number.name}, and the job goes on; the same command with --output out follows it, "
                          f"'scancel --name={self.job()['name']}' ends it\n", self.read("said"))
        done = self.call(*self.on_slurm())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.submitted(), ["1-3"])
        self.assertEqual(self.calls("scancel"), [])
        self.assert_as_one_run()

    def test_a_harness_under_nohup_follows_on(self):
        for case in ("a", "b", "c"):
            self.write_slow_scenario(case, 2)
        self.enter = ("env", "--ignore-signal=HUP")  # as nohup does
        harness = self.start(*self.on_slurm())
        self.wait_to_hear("3 running")
        self.assertEqual(self.end(harness, signal.SIGHUP), 0)
        self.assert_as_one_run()

    def test_an_interruption_cancels(self):
        for case in ("a", "b", "c"):
            self.write_slow_scenario(case, 60)
        harness = self.start(*self.on_slurm())
        self.wait_to_hear("3 running")
        self.assertEqual(self.end(harness, signal.SIGINT), 130)
        self.assertIn("cancelled; 0 of 3 shards were done", self.read("said"))
        self.assertTrue(self.job()["over"])
        [scancel] = self.calls("scancel")
        self.assertIn("--name=" + self.job()["name"], scancel)
        self.assertFalse(os.path.exists(self.path("out/verdicts.json")))

    def test_a_lost_connection_is_waited_for(self):
        for case in ("a", "b", "c"):
            self.write_slow_scenario(case, 1)
        harness = self.start(*self.on_slurm())
        self.wait_to_hear("3 running")
        self.write("slurm/silent")
        self.wait_to_hear("Slurm does not answer (slurm_load_jobs error: Unable to contact slurm controller")
        time.sleep(2)  # the shards end meanwhile
        self.assertEqual(self.read("said").count("does not answer"), 1)
        os.remove(self.path("slurm/silent"))
        self.assertEqual(harness.wait(timeout=60), 0, self.read("said"))
        self.assertIn("it answers again", self.read("said"))
        self.assert_as_one_run()

    def test_jobs_that_slurm_forgot_are_known_by_their_files_and_accounts(self):
        self.write("slurm/holds")
        self.write("slurm/ends/2", "OUT_OF_MEMORY\n")
        harness = self.start(*self.on_slurm())
        self.wait_to_hear("2 waiting")
        self.kill(harness)
        script = f"{self.path('out/slurm')}/{self.job()['name']}/shard.sh"
        for shard in (1, 3):  # while nobody looks
            self.assertEqual(os.system(f"cd {self.folder} && SLURM_ARRAY_TASK_ID={shard} SLURM_ARRAY_JOB_ID=17 "
                                       f"TRAINWRECK_TARGET={self.target} sh {script} >/dev/null 2>&1"), 0)
            for name in os.listdir(self.path("slurm/tasks")):
                if name.endswith(f"_{shard}.json"):
                    os.remove(self.path("slurm/tasks", name))
        self.write("slurm/forgets")
        done = self.call(*self.on_slurm())
        self.assertEqual(done.returncode, 7, done.stdout + done.stderr)
        self.assertEqual(len(self.verdicts("out")), 2)
        self.assertIn("SHARDS ARE MISSING: 2/3 (OUT_OF_MEMORY on n1)", done.stderr)
        self.assertEqual(self.submitted(), ["1-3"])

    def test_a_shard_that_was_told_to_end_is_not_whole(self):
        self.write_slow_scenario("long", 60)
        self.write("slurm/limit", "4")
        done = self.call(*self.on_slurm("-j", "2", shards=1))
        self.assertEqual(done.returncode, 7, done.stdout + done.stderr)
        self.assertEqual(self.submitted(), ["1", "1"])
        self.assertIn("SHARDS ARE MISSING: 1/1 (cut off, without 1 cases; TIMEOUT on n1, after TIMEOUT)", done.stderr)
        self.assertIn("cases without a verdict: fake/long\n", done.stderr)
        self.assertEqual({one: verdict[0] for one, verdict in self.verdicts("out").items()},
                         {"fake/a": "pass", "fake/b": "pass", "fake/c": "pass"})

    def test_files_that_are_seen_late_are_waited_for(self):
        self.write_scenario("weak", quality="at_end loss < 0.0001")
        self.write("slurm/late", "4")
        done = self.call(*self.on_slurm())
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("# 4 cases: 3 pass, 1 fail; ", done.stdout)
        self.assertNotIn("has not come", done.stderr)

    def test_what_slurm_refuses_is_said(self):
        self.write("slurm/refuses", "sbatch: error: Batch job submission failed: Invalid partition name specified")
        done = self.call(*self.on_slurm("--sbatch", "partition=nope"))
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn("Slurm does not take the job: sbatch: error: Batch job submission failed: Invalid partition", done.stderr)
        self.write("slurm/refuses", "sbatch: error: Batch job submission failed: Invalid job array specification")
        done = self.call(*self.on_slurm())
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn("MaxArraySize", done.stderr)
        os.remove(self.path("slurm/refuses"))
        # Another command may have the folder: nothing was submitted.
        self.assertEqual(self.call(*self.on_slurm()).returncode, 0)

    def test_a_machine_without_slurm_is_named(self):
        self.environment["PATH"] = os.path.dirname(sys.executable)
        if shutil.which("squeue", path=self.environment["PATH"]):
            self.environment["PATH"] = "/nowhere"
        done = self.call(*self.on_slurm())
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn("there is no 'squeue' on this machine's PATH", done.stderr)

    def test_another_command_does_not_take_the_folder(self):
        self.write("slurm/holds")
        harness = self.start(*self.on_slurm())
        self.wait_to_hear("3 waiting")
        self.kill(harness)
        done = self.call(*self.on_slurm("-k", "a"))
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("the output folder 'out' has another job", done.stderr)

    def test_options_that_do_not_go_together_are_refused(self):
        for words, said in ((["--shards", "2"], "--shards requires --on slurm"),
                            (["--sbatch", "time=1"], "--sbatch requires --on slurm"),
                            (["--on", "slurm"], "--on slurm requires --shards N"),
                            (["--on", "slurm", "--shards", "2", "--shard", "1/2"], "does not go with --shard"),
                            (["--on", "slurm", "--shards", "2", "--sbatch", "-p"], "say an option of sbatch by its long name"),
                            (["--on", "slurm", "--shards", "2", "--sbatch", "array=1"], "is set by 'run --on slurm'")):
            done = self.call("run", *words)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    unittest_xml.main(sys.argv[3:])
