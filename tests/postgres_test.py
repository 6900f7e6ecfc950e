#!/usr/bin/env python3
"""A history on a real server of PostgreSQL, which this test starts. Skipped where no server is installed.

Usage: postgres_test.py TRAINWRECK FAKE_TARGET HISTORY_TEST DOCUMENT [unittest options]

DOCUMENT is docs/guide/history.md, whose server for a team is started as well.
"""
import glob
import json
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import unittest

import unittest_xml

TRAINWRECK, TARGET, HISTORY_TEST, DOCUMENT = map(os.path.abspath, sys.argv[1:5])
SCENARIO = """apiVersion: trainwreck/v1
kind: Scenario
name: fake/ok
title: A slow descent
recipe: {steps: 20, optimizer.lr: 0.2}
inject:
  slow: {fault: fake.slow_descent, with: {factor: 0.01}}
symptoms:
  stuck: at_end loss > 1
remedies:
  faster: {scale: {optimizer.lr: 50}}
seeds: 5
"""


def server_programs():
    """The folder with initdb, pg_ctl and psql: Debian keeps them out of PATH."""
    found = [*sorted(glob.glob("/usr/lib/postgresql/*/bin/pg_ctl"), reverse=True), shutil.which("pg_ctl")]
    folders = [os.path.dirname(os.path.realpath(program)) for program in found if program]
    return next((folder for folder in folders if all(os.path.exists(f"{folder}/{name}") for name in ("initdb", "psql"))), None)


def not_as_root(command):
    """The server refuses to be root's."""
    if os.geteuid() != 0:
        return command
    return ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", *command]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    def __init__(self, programs):
        self.programs = programs
        self.folder = tempfile.mkdtemp(prefix="trainwreck-postgres-", dir="/tmp")
        if os.geteuid() == 0:
            shutil.chown(self.folder, "nobody", "nogroup")
        self.port = free_port()
        self.address = f"postgresql://tester@127.0.0.1:{self.port}"
        self.call("initdb", "--auth=trust", "--username=tester", "--no-sync", "--encoding=UTF8", "--locale=C.UTF-8")
        self.start()

    def call(self, program, *arguments):
        command = not_as_root([f"{self.programs}/{program}", "-D", self.folder + "/data", *arguments])
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, cwd=self.folder,
                              stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise RuntimeError(f"{program}: {done.stdout}")

    def start(self):
        # pg_ctl's own output would be held open by the server.
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -F -c log_min_messages=fatal"
        self.call("pg_ctl", "-w", "-l", self.folder + "/log", "-o", options, "start")

    def stop(self):
        self.call("pg_ctl", "-w", "-m", "immediate", "stop")

    def end(self):
        self.stop()
        shutil.rmtree(self.folder)


@unittest.skipUnless(server_programs(), "no server of PostgreSQL is installed (Debian: apt-get install postgresql)")
class HistoryOnAServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(server_programs())
        cls.addClassCleanup(cls.server.end)
        cls.databases = 0

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        os.makedirs(self.folder + "/scenarios/fake")
        with open(self.folder + "/scenarios/fake/ok.yaml", "w", encoding="utf-8") as file:
            file.write(SCENARIO)
        type(self).databases += 1
        self.history = f"{self.server.address}/history{self.databases}"
        self.sql("postgres", f"CREATE DATABASE history{self.databases}")

    def sql(self, database, text):
        command = [f"{self.server.programs}/psql", "-qAt", f"{self.server.address}/{database}", "-c", text]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def call(self, *words, **variables):
        return subprocess.run([TRAINWRECK, *words], capture_output=True, text=True, check=False, cwd=self.folder,
                              env={**os.environ, "TRAINWRECK_TARGET": TARGET, "TRAINWRECK_CACHE": self.folder, **variables})

    def passes(self, *words, **variables):
        done = self.call(*words, **variables)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_the_history_s_own_tests_hold_on_it(self):
        of_files = "History.AddsBitsToAnOlderFile:History.RefusesWhatIsNotItsOwnAndSaysWhatToDo"
        done = subprocess.run([HISTORY_TEST, f"--gtest_filter=History.*-{of_files}"], capture_output=True, text=True, check=False,
                              env={**os.environ, "TRAINWRECK_TEST_SERVER": self.server.address, "GTEST_OUTPUT": "", "XML_OUTPUT_FILE": ""})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("[       OK ] History.ManyWritersAtOnceLoseNothing", done.stdout)
        self.assertIn("[       OK ] History.SurvivesWritersThatAreKilled", done.stdout)

    def test_verbs_say_of_it_what_they_say_of_a_file(self):
        self.assertIn(f"# history: run 1 in {self.history}", self.passes("run", "--history", self.history))
        self.passes("run", TRAINWRECK_HISTORY=self.history)
        self.passes("baseline", "set", "1", "--history", self.history)
        self.passes("history", "merge", self.history, "--history", "copy.db")
        for verb in (["history"], ["history", "fake/*"], ["history", "--format", "json"], ["history", "fake/ok", "--format", "json"],
                     ["baseline", "show"], ["compare", "baseline", "latest"]):
            there, here = (self.passes(*verb, "--history", name) for name in (self.history, "copy.db"))
            self.assertEqual(there, here)
            self.assertIn("1", here)

    def test_what_goes_there_and_comes_back_is_the_same(self):
        self.passes("run", "--history", "a.db")
        self.passes("run", "--history", "a.db", "--seeds", "6")
        self.passes("baseline", "set", "2", "--history", "a.db")
        self.assertIn("2 runs added, 0 known", self.passes("history", "merge", "a.db", "--history", self.history))
        self.assertIn("0 runs added, 2 known", self.passes("history", "merge", "a.db", "--history", self.history))
        self.passes("history", "merge", self.history, "--history", "back.db")
        tables = []
        for name in ("a.db", "back.db"):
            with sqlite3.connect(f"{self.folder}/{name}") as database:
                tables.append({table: sorted(map(repr, database.execute(f"SELECT * FROM {table}")))
                               for table in ("run", "verdict", "reading", "training", "bits", "baseline")})
        self.assertEqual(*tables)
        self.assertGreater(len(tables[0]["bits"]), 10)

    def test_runs_of_many_machines_are_all_recorded(self):
        writers = [subprocess.Popen([TRAINWRECK, "run", "--history", self.history, "--output", f"out{i}", "--target", TARGET],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=self.folder) for i in range(4)]
        self.assertEqual([(writer.communicate()[1], writer.returncode) for writer in writers], [("", 0)] * 4)
        runs = json.loads(self.passes("history", "--format", "json", "--history", self.history))["runs"]
        self.assertEqual(sorted(run["run"] for run in runs), [1, 2, 3, 4])

    def test_what_is_not_its_own_is_refused_before_anything_runs(self):
        self.sql(self.history.rpartition("/")[2], "CREATE SCHEMA trainwreck; CREATE TABLE trainwreck.mine(x int)")
        for name, words in ((self.history, "another program's tables"), (self.server.address + "/nowhere", 'database "nowhere" does not exist'),
                            (f"postgresql://tester@127.0.0.1:{free_port()}/x", "Connection refused"),
                            (self.history.replace("tester@", "tester:secret@"), "PGPASSWORD"),
                            (self.history + "?password=secret", "PGPASSWORD")):
            done = self.call("run", "--history", name, "--output", "out")
            self.assertEqual((done.returncode, words in done.stderr), (3, True), done.stderr)
            self.assertNotIn("secret", done.stdout + done.stderr)
            self.assertFalse(os.path.exists(self.folder + "/out"))
        empty = self.call("history", "--history", f"{self.server.address}/postgres")
        self.assertEqual((empty.returncode, "is empty: 'trainwreck run' fills it" in empty.stderr), (3, True), empty.stderr)

    def test_a_newer_one_is_refused(self):
        self.passes("run", "--history", self.history)
        self.sql(self.history.rpartition("/")[2], "UPDATE trainwreck.history_version SET version = 2")
        done = self.call("history", "--history", self.history)
        self.assertEqual((done.returncode, "has schema version 2, this program knows 1" in done.stderr), (3, True), done.stderr)

    def test_a_server_that_goes_takes_nothing_from_the_verdicts(self):
        self.passes("run", "--history", self.history)
        slow = subprocess.Popen([TRAINWRECK, "run", "--history", self.history, "--target", TARGET, "--set", "fake.step_ms=50", "--output", "out"],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder)
        first = slow.stdout.readline()  # it has looked at the history
        self.server.stop()
        self.addCleanup(self.server.start)
        out, errors = slow.communicate()
        self.assertEqual(slow.returncode, 0, first + out + errors)
        self.assertIn("warning: not in the history", errors)


def block_with(words):
    """The one block of the page that has these words, as a script."""
    with open(DOCUMENT, encoding="utf-8") as page:
        blocks = re.findall(r"(?:^    .*\n)+", page.read(), re.MULTILINE)
    found, = [block for block in blocks if words in block]
    return textwrap.dedent(found)


@unittest.skipUnless(server_programs(), "no server of PostgreSQL is installed (Debian: apt-get install postgresql)")
class ServerOfThePage(unittest.TestCase):
    def test_a_team_starts_a_server_as_the_page_says(self):
        folder = tempfile.mkdtemp(prefix="trainwreck-postgres-", dir="/tmp")  # of a short name: its socket is there
        self.addCleanup(shutil.rmtree, folder)
        if os.geteuid() == 0:
            shutil.chown(folder, "nobody", "nogroup")
        data, port = folder + "/server", str(free_port())
        environment = {**{name: value for name, value in os.environ.items() if not name.startswith("PG")},
                       "PATH": f"{server_programs()}:{os.environ['PATH']}"}
        script = block_with("initdb")
        for old, new in (("/srv/trainwreck", data), ("5432", port)):
            self.assertIn(old, script)
            script = script.replace(old, new)
        self.addCleanup(subprocess.run, not_as_root([f"{server_programs()}/pg_ctl", "-D", data, "-m", "immediate", "stop"]), cwd=folder,
                        stdout=subprocess.DEVNULL, check=False)
        # In a session without a terminal, passwords are read from the standard input.
        started = subprocess.run(not_as_root(["sh", "-ec", script]), input="secret\nsecret\n", capture_output=True, text=True, check=False,
                                 cwd=folder, env=environment, start_new_session=True)
        self.assertEqual(started.returncode, 0, started.stdout + started.stderr)

        with tempfile.TemporaryDirectory() as work:
            os.makedirs(work + "/scenarios/fake")
            with open(work + "/scenarios/fake/ok.yaml", "w", encoding="utf-8") as file:
                file.write(SCENARIO)
            os.makedirs(work + "/bin")
            os.symlink(TRAINWRECK, work + "/bin/trainwreck")
            script = block_with("--history postgresql://ci@db.example").replace("db.example", "127.0.0.1")
            environment.update(PATH=f"{work}/bin:{environment['PATH']}", PGPORT=port, TRAINWRECK_TARGET=TARGET, TRAINWRECK_CACHE=work, HOME=work)
            stranger = subprocess.run(["sh", "-ec", script], capture_output=True, text=True, check=False, cwd=work, env=environment)
            self.assertEqual((stranger.returncode, "no password supplied" in stranger.stderr), (3, True), stranger.stderr)
            with open(work + "/.pgpass", "w", encoding="utf-8") as file:
                file.write("*:*:trainwreck:ci:secret\n")
            os.chmod(work + "/.pgpass", 0o600)
            done = subprocess.run(["sh", "-ec", script], capture_output=True, text=True, check=False, cwd=work, env=environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("# history: run 1 in postgresql://ci@127.0.0.1/trainwreck\n", done.stdout)
        self.assertRegex(done.stdout, r"\n1 .* 1 pass\n$")


if __name__ == "__main__":
    unittest_xml.main(sys.argv[5:])
