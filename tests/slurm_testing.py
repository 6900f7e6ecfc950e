"""What tests of `run --on slurm` have in common: a folder with cheap scenarios, and calls of the harness in it."""
import json
import os
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest

from processes import processes_with, words_of

SCENARIO = {
    "apiVersion": "trainwreck/v1", "kind": "Scenario", "title": "A slow descent", "seeds": 2,
    "recipe": {"steps": 20, "optimizer.lr": 0.2},
    "inject": {"slow": {"fault": "fake.slow_descent", "with": {"factor": 0.01}}},
    "symptoms": {"stuck": "at_end loss > 1"},
    "remedies": {"faster": {"scale": {"optimizer.lr": 50}}},
}


class SlurmTestCase(unittest.TestCase):
    trainwreck = target = ""  # set by the test's file
    enter = ()  # the machine where the harness is to run
    patience = 20  # seconds in which all processes have to end

    def setUp(self):
        # Short: sockets lie in it.
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.marker = f"SLURM_TEST={os.getpid()}.{self.id()}"
        name, value = self.marker.split("=")
        self.environment = {**os.environ, "TRAINWRECK_TARGET": self.target, "TRAINWRECK_CACHE": self.folder + "/.cache",
                            name: value}
        self.environment.pop("GITHUB_STEP_SUMMARY", None)
        for case in ("a", "b", "c"):
            self.write_scenario(case)

    # Before all cleanups: one of them ends the nodes, and with them whatever is left there.
    def tearDown(self):
        self.check_processes()

    def check_processes(self):
        deadline = time.monotonic() + self.patience
        while (left := words_of(processes_with(self.marker))) and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertEqual(left, [], "processes are left")

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text=""):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def write_scenario(self, case, recipe=(), **more):
        scenario = {**SCENARIO, "name": "fake/" + case, "recipe": {**SCENARIO["recipe"], **dict(recipe)}, **more}
        self.write(f"scenarios/fake/{case}.yaml", json.dumps(scenario))

    def write_slow_scenario(self, case, seconds):
        """Each of its three runs takes so long."""
        self.write_scenario(case, {"fake.step_ms": int(seconds * 1000 / 20)}, seeds=1,
                            budget={"seconds": 600, "stall_seconds": 600})

    def call(self, *words, timeout=120):
        return subprocess.run([*self.enter, self.trainwreck, *words], cwd=self.folder, env=self.environment, capture_output=True, text=True,
                              check=False, timeout=timeout)

    def on_slurm(self, *words, output="out", shards=3):
        return ["run", "--on", "slurm", "--shards", str(shards), "--output", output, "--history", "history.db", *words]

    def start(self, *words):
        """The harness, with what it prints in the file `said`."""
        with open(self.path("said"), "w", encoding="utf-8") as said:
            return subprocess.Popen([*self.enter, self.trainwreck, *words], cwd=self.folder, env=self.environment, stdout=said,
                                    stderr=subprocess.STDOUT)

    def wait_for(self, what, holds, seconds=60):
        deadline = time.monotonic() + seconds
        while not holds():
            self.assertLess(time.monotonic(), deadline, f"{what} did not come; said: {self.read('said')}")
            time.sleep(0.05)

    def wait_to_hear(self, text, seconds=60):
        self.wait_for(f"'{text}'", lambda: text in self.read("said"), seconds)

    def end(self, harness, number, seconds=60):
        harness.send_signal(number)
        return harness.wait(timeout=seconds)

    def kill(self, harness):
        self.assertEqual(self.end(harness, signal.SIGKILL), -signal.SIGKILL)

    def verdicts(self, output):
        """What is claimed and seen, without times."""
        report = json.loads(self.read(output + "/verdicts.json"))
        return {one["case"]: (one["verdict"], one["class"], [[check["check"], check["arm"], check["readings"]]
                                                             for check in one["checks"]])
                for one in report["verdicts"]}

    def runs_in_history(self):
        with sqlite3.connect(self.path("history.db")) as history:
            return [row[0] for row in history.execute("SELECT command_line FROM run")]

    def assert_as_one_run(self, output="out"):
        done = self.call("run", "--output", "all", "--history", "none", "-j", "1", "--set", "fake.step_ms=0")
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertEqual(self.verdicts(output), self.verdicts("all"))
        return done.returncode
