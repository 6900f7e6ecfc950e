#!/usr/bin/env python3
"""Targets of trainwreck.yaml from end to end: programs of level 0, 1 and 2, their faults, and those that misbehave.

Usage: foreign_test.py TRAINWRECK FOLDER FAKE_NCCL [unittest options]
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import unittest_xml
from processes import processes_with

TRAINWRECK, FOLDER, FAKE_NCCL, SUITE = map(os.path.abspath, [*sys.argv[1:4], "scenarios"])

LEARNS = "mean(loss[-5:]) < 0.5 * mean(loss[:3])"
SCENARIO = {
    "apiVersion": "trainwreck/v1", "kind": "Scenario", "title": "A test", "seeds": 1,
    "inject": {"slow": {"fault": "recipe.scale_lr", "with": {"factor": 0.001}}},
    "healthy": {"learns": LEARNS},
    "symptoms": {"stuck": "mean(loss[-5:]) > 0.9 * mean(loss[:3])"},
    "remedies": {"faster": {"scale": {"lr": 900}}},
}

# The same without a look at the steps from the tenth on.
EARLY = {"healthy": None, "symptoms": {"stuck": "mean(loss[5:10]) > 0.9 * mean(loss[:3])"}, "remedies": None, "no_remedy": "none"}


# A fault that all programs show in their first steps.
WORSE = {**EARLY, "inject": {"bad_luck": {"fault": "environment.set", "with": {"name": "BAD_LUCK", "value": "3"}}},
         "symptoms": {"worse": "mean(loss[:5]) > 1 + control.mean(loss[:5])"}}
OF_RANKS = ["RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS"]


class ForeignTest(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.join(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")), "project")
        shutil.copytree(FOLDER, self.folder)
        os.makedirs(self.folder + "/scenarios/t")
        self.marker = f"FOREIGN_TEST={os.getpid()}.{self.id()}"
        name, value = self.marker.split("=")
        self.environment = {**os.environ, "TRAINWRECK_CACHE": self.folder + "/.cache", "FAKE_NCCL": FAKE_NCCL, name: value}
        for variable in ("TRAINWRECK_TARGET", "TEST_SRCDIR", "RUNFILES_DIR", "BAD_LUCK", "PYTHONUNBUFFERED"):
            self.environment.pop(variable, None)

    def call(self, *arguments):
        done = subprocess.run([TRAINWRECK, *arguments], cwd=self.folder, env=self.environment, text=True,
                              capture_output=True, check=False, timeout=250)
        self.assertEqual(processes_with(self.marker), [], "something outlived the call")
        return done

    def write(self, name="x", **changes):
        scenario = {**SCENARIO, "name": "t/" + name, **changes}
        with open(f"{self.folder}/scenarios/t/{name}.yaml", "w", encoding="utf-8") as file:
            json.dump({key: value for key, value in scenario.items() if value is not None}, file)  # JSON is YAML

    def judge(self, target="plain", options=(), **changes):
        """The verdict of one scenario, and all that the run said."""
        self.write(**changes)
        done = self.call("run", "t/x", "--target", target, "--keep", "all", "--output", "out", *options)
        try:
            with open(self.folder + "/out/verdicts.json", encoding="utf-8") as file:
                case = json.load(file)["verdicts"][0]
        except OSError:
            self.fail(done.stderr)
        return case, done

    def assert_verdict(self, verdict, failure_class="", target="plain", **changes):
        case, done = self.judge(target, **changes)
        self.assertEqual((case["verdict"], case.get("class") or ""), (verdict, failure_class), done.stdout + done.stderr)
        return case, done

    def forget(self, target):
        """Takes a target out of trainwreck.yaml."""
        with open(self.folder + "/trainwreck.yaml", encoding="utf-8") as file:
            text = file.read()
        text, count = re.subn(rf"^  {target}:\n(    .*\n)+", "", text, flags=re.M)
        self.assertEqual(count, 1)
        with open(self.folder + "/trainwreck.yaml", "w", encoding="utf-8") as file:
            file.write(text.replace("default: plain\n", "") if target == "plain" else text)

    def trace(self, arm, name="rank0.jsonl"):
        with open(f"{self.folder}/out/t/x/{arm}/0/{name}", encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def fired(self, arm="fault", name="rank0.jsonl"):
        return [record for record in self.trace(arm, name) if record.get("event") == "fired"]

    # Faults that a file of the user's describes.

    def write_fault(self, name="f", **changes):
        fault = {"apiVersion": "trainwreck/v1", "kind": "Fault", "name": "recipe.crawl", "summary": "Slow, and soon done.",
                 "parameters": {"factor": {"type": "number", "default": 0.001}, "how": {"type": "string", "default": "none"}},
                 "scale": {"lr": "$factor"}, "set": {"habit": "$how", "pace": 0.001}, **changes}
        os.makedirs(self.folder + "/scenarios/faults", exist_ok=True)
        with open(f"{self.folder}/scenarios/faults/{name}.yaml", "w", encoding="utf-8") as file:
            json.dump({key: value for key, value in fault.items() if value is not None}, file)

    def test_a_fault_of_ones_own_is_one_file(self):
        self.write_fault()
        self.assert_verdict("pass", inject={"mine": {"fault": "recipe.crawl"}})
        self.assertEqual([[event[key] for key in ("id", "fault", "key", "before", "after")]
                          for event in self.fired(name="launcher.jsonl")],
                         [["mine", "recipe.crawl", "habit", "none", "none"], ["mine", "recipe.crawl", "pace", 0.0, 0.001],
                          ["mine", "recipe.crawl", "lr", 0.1, 0.1 * 0.001]])
        self.assertEqual(self.fired("control", "launcher.jsonl"), [])
        self.assert_verdict("fail", "symptom_absent", inject={"mine": {"fault": "recipe.crawl", "with": {"factor": 0.9}}})
        self.assertIn("recipe.crawl", self.call("list", "faults", "--target", "plain").stdout)
        self.assertIn("lr times factor", self.call("explain", "recipe.crawl", "--target", "plain").stdout)
        self.assertEqual(self.call("validate", "--target", "plain").returncode, 0)

    def test_the_digest_of_a_verdict_knows_what_the_fault_does(self):
        digests = []
        for factor in [0.001, 0.002, 0.001]:
            self.write_fault(scale={"lr": factor}, parameters={"how": {"type": "string", "default": "none"}})
            case, _ = self.judge(inject={"mine": {"fault": "recipe.crawl"}})
            digests.append(case["scenario_digest"])
        self.assertEqual(digests[0], digests[2])
        self.assertNotEqual(digests[0], digests[1])

    def test_a_fault_for_another_target_is_left_out(self):
        self.write_fault()
        done = self.call("list", "faults", "--target", "files")  # has neither habit nor pace
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("recipe.crawl", done.stdout)
        self.forget("describes")  # which may have anything
        self.write(inject={"mine": {"fault": "recipe.crawl"}})
        self.assertIn("requires:fault:recipe.crawl", self.call("validate", "t/x", "--target", "files").stdout)

    def test_a_fault_of_a_second_rank_is_for_a_target_with_ranks(self):
        self.forget("describes")  # which may have anything
        self.write(inject={"killed": {"fault": "process.crash_rank", "at": 5, "ranks": [1]}})
        self.assertIn("requires:recipe:parallel.ranks", self.call("validate", "t/x", "--target", "files").stdout)
        done = self.call("validate", "t/x", "--target", "plain")  # which has them, and starts one
        self.assertIn("there is no rank 1: the run has 1 rank", done.stderr)

    def test_a_scenario_that_breaks_an_invariant_of_another_target_is_left_out(self):
        self.forget("describes")  # which may have anything
        with open(self.folder + "/scenarios/invariants.yaml", "w", encoding="utf-8") as file:
            file.write("apiVersion: trainwreck/v1\nkind: Invariants\ninvariants:\n"
                       "  paced: {title: it has a pace, part: pace, assert: 'always loss > recipe(pace)'}\n")
        self.write(symptoms=None, breaks=["paced"], remedies=None, no_remedy="none")
        self.assertIn("requires:recipe:pace", self.call("validate", "t/x", "--target", "files").stdout)
        for target in ("traces", "world", "elastic", "plain"):  # which have it
            self.forget(target)
        done = self.call("validate", "t/x", "--target", "files")
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertIn("the target cannot be asked for 'paced'", done.stderr)
        self.assertIn("it lacks recipe:pace", done.stderr)

    def test_a_wrong_fault_stops_every_call(self):
        self.write_fault(set={"habits": "$how"})
        for arguments in [["run"], ["list", "faults"], ["explain", "loss"]]:
            done = self.call(*arguments, "--target", "plain")
            self.assertEqual(done.returncode, 3, done.stdout)
            self.assertIn("scenarios/faults/f.yaml:1:", done.stderr)
            self.assertIn("did you mean 'habit'?", done.stderr)

    # A fault of the suite serves whoever has its keys.
    def test_a_fault_of_the_suite(self):
        with open(self.folder + "/trainwreck.yaml", encoding="utf-8") as file:
            text = file.read()
        with open(self.folder + "/trainwreck.yaml", "w", encoding="utf-8") as file:
            file.write(text.replace("lr: 0.1", "optimizer.lr: 0.1", 1).replace("{lr}", "{optimizer.lr}", 1))
        self.assert_verdict("pass", inject={"slow": {"fault": "recipe.low_lr"}},
                            remedies={"faster": {"scale": {"optimizer.lr": 900}}})

    # Signals.

    def test_stdout(self):
        self.assert_verdict("pass")
        steps = [record["step"] for record in self.trace("control") if record["t"] == "step"]
        self.assertEqual(steps, list(range(30)))
        with open(self.folder + "/out/t/x/control/0/rank0.stdout", encoding="utf-8") as file:
            self.assertEqual(next(file), "unbuffered: 1\n")  # or steps would be seen when all is over

    def test_csv_and_json_lines(self):
        self.assert_verdict("pass", target="files",
                            healthy={"learns": LEARNS, "moves": "last(weight[:]) < 1.1 and mean(error[-6:]) < mean(error[:6])"})
        steps = {}
        for record in filter(lambda record: record["t"] == "step", self.trace("control")):
            for signal_name in ("loss", "weight", "error"):
                steps.setdefault(signal_name, []).extend([record["step"]] * (signal_name in record))
        self.assertEqual(steps, {"loss": list(range(30)), "weight": list(range(30)), "error": list(range(0, 30, 5))})

    def test_level_one(self):
        self.assert_verdict("pass", target="traces")

    # The slow run's gradients stay where they are, so it never settles.
    OF_LAYERS = {"healthy": {"learns": LEARNS, "bounded": "always gradient{layers.*} < 3",
                             "settles": "event(settled, layers=2)"},
                 "symptoms": {"stuck": "always gradient{layers.1} > 1", "unsettled": "not event(settled)"}}

    def events(self, arm, name):
        return [record for record in self.trace(arm) if record.get("event") == name]

    def test_signals_of_modules_and_events_of_level_one(self):
        self.assert_verdict("pass", target="layers", **self.OF_LAYERS)
        self.assertEqual((len(self.events("control", "settled")), len(self.events("fault", "settled"))), (1, 0))
        self.assertEqual(self.events("control", "largest"), [])
        self.assertIn("per-module", self.call("list", "signals", "--target", "layers").stdout)
        self.assertIn("The loss has fallen below 0.1", self.call("explain", "settled", "--target", "layers").stdout)

    def test_a_false_claim_of_modules_or_events_of_level_one_is_no_pass(self):
        for claim in ("always gradient{layers.*} < 1.5", "event(settled, layers=3)", "event(largest, layer=0)"):
            with self.subTest(claim):
                _, done = self.assert_verdict("fail", "control_unhealthy", target="layers",
                                              **{**self.OF_LAYERS, "healthy": {"holds": claim}})
                self.assertEqual(done.returncode, 1, done.stderr)

    def test_an_event_on_demand_of_level_one(self):
        self.assert_verdict("pass", target="layers", **{**self.OF_LAYERS, "healthy": {"second": "event(largest, layer=1)"}})
        self.assertEqual(len(self.events("control", "largest")), 30)

    def test_a_module_or_event_that_is_not_declared_is_an_error(self):
        self.forget("describes")  # which may have anything
        for claim, error in {"always loss{layers.*} < 3": "'loss' is not recorded per module",
                             "event(setled)": "did you mean 'settled'?",
                             "event(settled, layer=2)": "event 'settled' has no field 'layer'"}.items():
            with self.subTest(claim):
                self.write(**{**self.OF_LAYERS, "healthy": {"holds": claim}})
                done = self.call("validate", "t/x", "--target", "layers")
                self.assertEqual(done.returncode, 3, done.stdout)
                self.assertIn(error, done.stderr)

    def test_level_two_is_built_and_performs_its_own_fault(self):
        self.assert_verdict(
            "pass", target="describes", inject={"nudge": {"fault": "weights.nudge", "at": 20}},
            symptoms={"jumps": "eventually loss > 10 * control.loss"}, remedies={"guard": {"set": {"guard": True}}})
        self.assertIn("describes there", self.call("doctor", "--target", "describes").stdout)

    def test_output_of_both_streams_is_one_source(self):
        self.assert_verdict("pass", target="world", **WORSE)
        self.assertEqual([r["step"] for r in self.trace("control") if r["t"] == "step"], list(range(30)))
        with open(self.folder + "/world.py", encoding="utf-8") as file:
            program = file.read()
        with open(self.folder + "/world.py", "w", encoding="utf-8") as file:
            file.write(program.replace("flush=True", "flush=True, file=sys.stderr if step % 2 else sys.stdout"))
        self.judge(target="world", **WORSE)
        steps = sorted(r["step"] for r in self.trace("control") if r["t"] == "step")
        self.assertEqual(steps, list(range(30)))

    def test_logs_and_checkpoints_in_folders_that_the_program_names(self):
        self.assert_verdict("pass", target="tidy", phases=[{"name": "train", "until": 25}, {"name": "resume"}], **WORSE)
        self.assertEqual([r["step"] for r in self.trace("control") if r["t"] == "step"], list(range(25)) + list(range(20, 30)))
        resumed, = [r for r in self.trace("control") if r.get("event") == "resumed"]
        self.assertRegex(resumed["command"], "--resume.*/checkpoint-20")

    # Twins: changes that must not matter. Each log has 6 digits, which round by less than 1e-5 of a value: a tenth of what is let go.

    TWINS = {
        **dict.fromkeys(["inject", "healthy", "symptoms", "remedies"]), "seeds": 2,
        "twins": {"micro_batches": {"set": {"accumulation": 4, "batch": 2}},
                  "resumed": {"phases": [{"name": "train", "until": 13}, {"name": "resume"}]}},
        "agree": {"numbers": {"of": ["loss", "norm"], "within": 1e-4}},
        "must_notice": {"mean_of_means": {"fault": "recipe.mean_of_means", "in": "micro_batches"},
                        "no_momentum": {"fault": "recipe.reset_momentum", "in": "resumed"}},
    }

    def assert_twins(self, verdict, failure_class="", **changes):
        os.makedirs(self.folder + "/scenarios/faults", exist_ok=True)
        shutil.copy(self.folder + "/counted-faults.yaml", self.folder + "/scenarios/faults")
        return self.assert_verdict(verdict, failure_class, target="counted", **{**self.TWINS, **changes})

    def plant(self, flag, after):
        """Adds a flag to the target's command, where no scenario can take it away."""
        with open(self.folder + "/trainwreck.yaml", encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(text.count(after), 1)
        with open(self.folder + "/trainwreck.yaml", "w", encoding="utf-8") as file:
            file.write(text.replace(after, f"{after}, {flag}"))

    def checks_that_failed(self, case):
        return [(check["check"], check["arm"]) for check in case["checks"] if check["class"]]

    def test_twins_of_a_right_program_agree(self):
        self.assert_twins("pass")
        # The four micro-batches and the resume were real.
        with open(self.folder + "/out/t/x/micro_batches/0/environment.train.0.rank0.json", encoding="utf-8") as file:
            self.assertIn("--accumulation=4", json.load(file)["command"])
        resumed, = [r for r in self.trace("resumed") if r.get("event") == "resumed"]
        self.assertIn("--load=", resumed["command"])
        self.assertEqual(self.fired("micro_batches", "launcher.jsonl"), [])
        self.assertEqual([e["key"] for e in self.fired("mean_of_means_in_micro_batches", "launcher.jsonl")], ["divide_by"])

    def test_a_twin_finds_a_wrong_mean_over_micro_batches(self):
        self.plant("--divide-by=micro-batches", after='"--divide-by={divide_by}"')
        case, done = self.assert_twins("fail", "twins_differ")
        self.assertEqual(self.checks_that_failed(case), [("numbers", "micro_batches")])
        self.assertRegex(done.stdout, r"distance\(loss\) = \S+, 0.0001 \* abs\(control.loss\) = \S+ at step 0\b")

    def test_a_twin_finds_an_incomplete_resume(self):
        self.plant("--reset-momentum", after='"--load={run.checkpoints}/last.json"')
        case, done = self.assert_twins("fail", "twins_differ")
        self.assertEqual(self.checks_that_failed(case), [("numbers", "resumed")])
        self.assertIn(" at step 14", done.stdout)  # the first that is made with momentum

    def test_a_bug_that_no_twin_shows_is_told(self):
        case, _ = self.assert_twins("fail", "bug_unnoticed", must_notice={
            "no_momentum": {"fault": "recipe.reset_momentum", "in": ["micro_batches", "resumed"]}})
        self.assertEqual([arm for _, arm in self.checks_that_failed(case)], ["no_momentum_in_micro_batches"])

    def test_a_bug_in_twins_alone_is_compared_with_control(self):
        coarse = {"fault": "recipe.set_digits", "with": {"value": 3}, "in": ["micro_batches"], "only_in_twins": True}
        case, _ = self.assert_twins("pass", must_notice={"coarse": coarse})
        arms = {check["arm"] for check in case["checks"] if check["check"] == "notices"}
        self.assertEqual(arms, {"coarse_in_micro_batches"})
        self.assertFalse(os.path.exists(self.folder + "/out/t/x/coarse"))
        coarse["with"] = {"value": 5}
        case, _ = self.assert_twins("fail", "bug_unnoticed", must_notice={"coarse": coarse})
        self.assertEqual(self.checks_that_failed(case), [("notices", "coarse_in_micro_batches")])

    # It computes what the run in one piece does; but so it does with any bug of the resume.
    def test_a_resume_that_begins_anew_is_told(self):
        """It is the run in one piece, and the bug in what it should have loaded goes unnoticed."""
        with open(self.folder + "/trainwreck.yaml", encoding="utf-8") as file:
            text = file.read()
        begin = text.index("  counted:\n")
        with open(self.folder + "/trainwreck.yaml", "w", encoding="utf-8") as file:
            file.write(text[:begin] + text[begin:].replace('when_exists: "{run.checkpoints}/last', 'when_exists: "{run.checkpoints}/lost', 1))
        case, _ = self.assert_twins("fail", "fault_not_fired")
        self.assertEqual(self.checks_that_failed(case), [("resumed", "resumed"), ("notices", "no_momentum_in_resumed")])

    # Unmodified is what it says.

    def environment_of(self, arm="control", rank=0):
        with open(f"{self.folder}/out/t/x/{arm}/0/rank{rank}.stderr", encoding="utf-8") as file:
            return dict(line[4:].strip().split("=") for line in file if line.startswith("has "))

    def test_a_program_of_one_process_is_not_told_that_it_is_a_rank(self):
        for name in OF_RANKS:
            self.environment.pop(name, None)
        self.judge(target="world", **WORSE)
        self.assertEqual(self.environment_of(), {**dict.fromkeys(OF_RANKS, "nothing"), "OMP_NUM_THREADS": "1"})
        with open(self.folder + "/out/t/x/control/0/environment.train.0.rank0.json", encoding="utf-8") as file:
            process = json.load(file)
        self.assertEqual(process["command"], ["python3", "world.py", "--steps=30", "--pace=0.0"])
        self.assertEqual(sorted(process["set"]), ["OMP_NUM_THREADS", "PYTHONUNBUFFERED", "TRAINWRECK_PLAN", "TRAINWRECK_RANK",
                                                  "TRAINWRECK_RUN", "TRAINWRECK_TRACE"])

    def test_what_the_user_has_stays(self):
        self.environment.update(RANK="7", WORLD_SIZE="8", OMP_NUM_THREADS="5")
        # It takes itself for rank 7 of 8, and prints no loss.
        self.judge(target="world", options=["--no-preflight"], **WORSE)
        seen = self.environment_of()
        self.assertEqual((seen["RANK"], seen["WORLD_SIZE"], seen["OMP_NUM_THREADS"]), ("7", "8", "5"))
        self.assertEqual(seen["LOCAL_RANK"], "nothing")

    def test_declared_ranks_are_told(self):
        with open(self.folder + "/trainwreck.yaml", encoding="utf-8") as file:
            text = file.read().replace("recipe: {steps: 30, lr: 0.1, pace: 0.0}\n    signals: {loss: {scale: log, floor",
                                       "recipe: {steps: 30, lr: 0.1, pace: 0.0}\n    ranks: {default: 2}\n    signals: {loss: {scale: log, floor")
        with open(self.folder + "/trainwreck.yaml", "w", encoding="utf-8") as file:
            file.write(text)
        self.judge(target="world", **WORSE)
        seen = self.environment_of(rank=1)
        self.assertEqual((seen["RANK"], seen["WORLD_SIZE"], seen["OMP_NUM_THREADS"]), ("1", "2", "1"))

    # A launcher that is not ours.

    def run_detail(self, case, arm):
        return next(a["runs"][0]["detail"] for a in case["arms"] if a["arm"] == arm)

    def test_a_rank_that_another_launcher_lost_is_named(self):
        case, done = self.judge(
            target="elastic", recipe={"pace": 0.05, "steps": 200}, inject={"killed": {"fault": "process.crash_rank", "at": 5, "ranks": [1]}},
            healthy={"completes": "ended(rank=0, why=completed)"}, symptoms={"dies": "exited(rank=1, signal=9)", "agent": "exited(rank=0, code=1)"},
            remedies=None, no_remedy="none")
        self.assertEqual(case["verdict"], "pass", done.stdout + done.stderr)
        self.assertRegex(self.run_detail(case, "fault"), r"^rank 1 was killed by SIGKILL after step \d+; its launcher exited with code 1$")

    def test_a_rank_that_failed_under_another_launcher_is_named_with_its_words(self):
        case, _ = self.judge(target="elastic", recipe={"pace": 0.01, "fails": 2}, **WORSE)
        detail = self.run_detail(case, "control")
        self.assertRegex(detail, r"^rank 2 exited with code 1 after step -?\d+: ")
        self.assertIn("ValueError: an odd batch", detail)
        self.assertNotIn("ChildFailedError", detail)

    # Rank 2 is on a bad machine, say: the restart does without it.
    def test_a_restart_with_fewer_ranks_tells_the_launcher(self):
        policy = {"supervisor.max_restarts": 1, "supervisor.resume_ranks": 2}
        case, done = self.judge(target="elastic", recipe={"pace": 0.01, "fails": 2, **policy}, **WORSE)
        self.assertEqual(case["class"], "control_unhealthy", done.stdout + done.stderr)  # it needs a restart
        with open(self.folder + "/out/t/x/control/0/rank0.stderr", encoding="utf-8") as file:
            said = file.read()
        self.assertEqual((said.count("has WORLD_SIZE=3"), said.count("has WORLD_SIZE=2")), (3, 2), said)

    # torchrun names the lowest of those that it finds dead at one look, of which each may be some time after the other.
    def test_the_first_to_fail_is_named_though_the_launcher_names_another(self):
        self.environment["FAKE_TORCHRUN_LOOKS"] = "3"
        case, done = self.judge(target="elastic", recipe={"pace": 0.05, "steps": 200, "fails": 2, "follows": 0.7}, **WORSE)
        failed, = [r for r in self.trace("control") if r.get("event") == "rank_failed"]
        self.assertEqual((failed["rank"], failed["by"]), (2, "seen"), done.stdout + done.stderr)
        self.assertRegex(self.run_detail(case, "control"), r"^rank 2 exited with code 1 after step \d+: ")

    def test_a_rank_that_was_stopped_under_another_launcher_is_named(self):
        with open(self.folder + "/world.py", encoding="utf-8") as file:
            program = file.read()
        wait = "    while os.path.exists(halt):\n        time.sleep(0.05)  # as in a collective\n"
        halt = "halt = os.environ['TRAINWRECK_TRACE'] + '/halt'\n"
        stop = "    if rank == 2 and step == 10:\n        open(halt, 'w').close()\n        os.kill(os.getpid(), 19)\n"
        with open(self.folder + "/world.py", "w", encoding="utf-8") as file:
            file.write(program.replace("for step in range", halt + "for step in range").replace("    if rank == options", stop + wait +
                                                                                                  "    if rank == options"))
        case, done = self.judge(target="elastic", recipe={"pace": 0.02, "steps": 200}, budget={"seconds": 200, "stall_seconds": 150},
                                **WORSE)
        self.assertIn("rank 2 is stopped", self.run_detail(case, "control"), done.stdout + done.stderr)
        stopped, = [r for r in self.trace("control") if r.get("event") == "stopped"]
        self.assertEqual(stopped["rank"], 2)

    # Starting is not training.

    def test_a_long_start_is_no_stall(self):
        with open(self.folder + "/train.py", encoding="utf-8") as file:
            program = file.read()
        with open(self.folder + "/train.py", "w", encoding="utf-8") as file:
            file.write("import time\ntime.sleep(2)  # an import\n" + program)
        case, done = self.judge(**WORSE, budget={"seconds": 200, "stall_seconds": 0.5})
        self.assertEqual(case["verdict"], "pass", done.stdout + done.stderr)

    def test_a_start_has_a_limit_of_its_own(self):
        with open(self.folder + "/trainwreck.yaml", encoding="utf-8") as file:
            text = file.read().replace("    data: data\n", "    data: data\n    start_seconds: 0.5\n")
        with open(self.folder + "/trainwreck.yaml", "w", encoding="utf-8") as file:
            file.write(text)
        with open(self.folder + "/train.py", encoding="utf-8") as file:
            program = file.read()
        with open(self.folder + "/train.py", "w", encoding="utf-8") as file:
            file.write("import time\ntime.sleep(600)\n" + program)
        self.write(**WORSE)
        done = self.call("run", "t/x", "--target", "plain")
        self.assertEqual(done.returncode, 3)  # the preflight run has said it
        self.assertIn("no first step within 0.5 s ('start_seconds' of the target)", done.stderr)
        case, _ = self.judge(options=["--no-preflight"], **WORSE)
        self.assertIn("no first step within 0.5 s ('start_seconds' of the target)", self.run_detail(case, "control"))

    # A fake of torch shows that hooks are set where it is imported, and that a program goes on where they cannot be.

    def hook(self, program):
        with open(self.folder + "/trainwreck.yaml", "w", encoding="utf-8") as file:
            file.write("apiVersion: trainwreck/v1\nkind: Targets\ntargets:\n  hooked:\n"
                       f"    command: [python3, -c, {json.dumps(program)}]\n    adapter: python\n    recipe: {{steps: 30}}\n")
        self.write(inject={"hot": {"fault": "optimizer.scale_rate", "at": 3}}, remedies=None, no_remedy="none")
        return self.call("run", "t/x", "--target", "hooked")

    def test_hooks_that_see_nothing_are_told(self):
        done = self.hook("print('I train by hand')")
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, r"trainwreck.yaml:5:14: error: the hooks of 'adapter: python' saw no 'loss'")
        self.assertIn("they see programs that train with an optimizer of torch", done.stderr)

    def test_hooks_that_cannot_be_set_are_told(self):
        os.makedirs(self.folder + "/torch")
        with open(self.folder + "/torch/__init__.py", "w", encoding="utf-8") as file:
            file.write("answer = 42\n")
        done = self.hook("import torch; print(torch.answer)")
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, r"trainwreck: the hooks could not be set: ModuleNotFoundError")

    # What runs is what is recorded.

    def report(self):
        with open(self.folder + "/out/verdicts.json", encoding="utf-8") as file:
            return json.load(file)

    def test_a_changed_program_is_another_program(self):
        digests = []
        for change in ("", "# a remark\n"):
            with open(self.folder + "/train.py", "a", encoding="utf-8") as file:
                file.write(change)
            self.judge(**WORSE)
            digests.append(self.report()["run"]["target_digest"])
        self.judge(**WORSE)
        digests.append(self.report()["run"]["target_digest"])
        self.assertNotEqual(digests[0], digests[1])
        self.assertEqual(digests[1], digests[2])

    def test_versions_are_recorded(self):
        case, _ = self.judge(**WORSE)
        version = ".".join(map(str, sys.version_info[:2]))
        self.assertTrue(case["environment"]["python"].startswith(version), case["environment"])
        with open(self.folder + "/out/t/x/control/0/plan.train.0.json", encoding="utf-8") as file:
            self.assertEqual(json.load(file)["fingerprint"], {"python": case["environment"]["python"]})

    # Strange, though nobody asked.

    def test_notes(self):
        case, done = self.judge(target="world", **WORSE)
        notes = [(note["arm"], note["step"], note["text"]) for note in case["notes"]]
        self.assertIn(("control", 7, "loss is 0.4783, below its floor of 0.5"), notes)
        self.assertIn("note: control seed 0, step 7: loss is 0.4783, below its floor of 0.5", done.stdout)
        case, _ = self.judge(recipe={"habit": "hides_nan"}, **EARLY)
        self.assertIn(("control", 10, "loss is exactly 0"), [(note["arm"], note["step"], note["text"]) for note in case["notes"]])

    # A code of 0 proves nothing.

    def test_nan_that_exits_with_0(self):
        _, done = self.assert_verdict("fail", "control_unhealthy", recipe={"habit": "nan"}, **EARLY)
        self.assertIn("signals_sound", done.stdout)
        self.assertIn("loss is nan", done.stdout)

    def test_nan_that_is_logged_as_0(self):
        _, done = self.assert_verdict("fail", "control_unhealthy", recipe={"habit": "hides_nan"}, **EARLY)
        self.assertIn("loss is 0, though its scale is positive", done.stdout)

    def test_remedy_that_hides_nan(self):
        case, _ = self.judge(remedies={"hide": {"scale": {"lr": 900}, "set": {"habit": "hides_nan"}}})
        self.assertEqual(case["class"], "remedy_ineffective")
        case, _ = self.judge(remedies={"hide": {"scale": {"lr": 900}, "set": {"habit": "hides_nan"},
                                                "waives": ["signals_sound"]}})
        self.assertEqual(case["verdict"], "pass")

    def test_signal_that_cannot_be_read(self):
        _, done = self.assert_verdict("inconclusive", "undecided", target="deaf")
        self.assertIn("not read: accuracy; read: loss (30)", done.stdout)

    def test_program_that_fails(self):
        self.assert_verdict(
            "pass", inject={"fails": {"fault": "recipe.set_habit", "with": {"value": "fails"}}},
            symptoms={"code": "exited(rank=0, code=3)", "unfinished": "not ended(rank=0, why=completed)"},
            healthy={"completes": "ended(rank=0, why=completed)"}, remedies=None, no_remedy="none")

    def test_a_flood_of_complaints_is_cut_short(self):
        self.judge(options=["--no-preflight"], recipe={"habit": "babbles"})
        complaints = [record for record in self.trace("control") if record.get("event") == "unreadable"]
        self.assertEqual(len(complaints), 20)
        self.assertEqual(complaints[0]["why"], "signal 'loss' is no number")

    # Faults from outside.

    def test_killed_at_level_one(self):
        self.assert_verdict(
            "pass", target="traces", recipe={"pace": 0.05},
            inject={"killed": {"fault": "process.crash_rank", "at": 5}}, healthy={"completes": "ended(rank=0, why=completed)"},
            symptoms={"killed": "exited(rank=0, signal=9)"}, remedies=None, no_remedy="none")

    def test_killed_rank_resumes_from_its_checkpoint(self):
        killed = {"killed": {"fault": "process.crash_rank", "at": 12, "attempt": 0}}
        self.assert_verdict(
            "pass", recipe={"pace": 0.02}, inject=killed, healthy={"completes": "ended(rank=0, why=completed)"},
            symptoms={"lost": "not ended(rank=0, why=completed)", "killed": "exited(rank=0, signal=9)"},
            remedies={"supervisor": {"set": {"supervisor.max_restarts": 1}, "resolves": ["lost"]}})
        fired, = self.fired()
        self.assertEqual((fired["signal"], fired["before"], fired["after"]), (9, "running", "killed"))
        self.assertGreaterEqual(fired["step"], 12)
        resumed, = [record for record in self.trace("supervisor") if record.get("event") == "resumed"]
        self.assertIn("--load", resumed["command"])
        again = [record["step"] for record in self.trace("supervisor") if record["t"] == "step"]
        self.assertGreaterEqual(again[again.index(29) - 1], 10)
        self.assertEqual(sorted(set(again)), list(range(30)))
        self.assertEqual(again.count(0), 1)

    def test_stopped_rank_is_a_stall(self):
        case, done = self.judge(
            recipe={"pace": 0.02}, inject={"stopped": {"fault": "process.crash_rank", "at": 5, "with": {"how": "sigstop"}}},
            healthy={"completes": "ended(rank=0, why=completed)"}, symptoms={"stalls": "stalled(lagging_state=stopped)"},
            remedies=None, no_remedy="none", budget={"seconds": 100, "stall_seconds": 3})
        self.assertEqual(case["verdict"], "pass", done.stdout + done.stderr)

    def test_second_rank_is_killed_alone(self):
        self.assert_verdict(
            "pass", recipe={"pace": 0.02, "parallel.ranks": 2},
            inject={"killed": {"fault": "process.crash_rank", "at": 5, "ranks": [1]}},
            healthy={"completes": "ended(rank=1, why=completed)"},
            symptoms={"dies": "exited(rank=1, signal=9)", "lives": "exited(rank=1, signal=9) and not exited(rank=0, signal=9)"},
            remedies=None, no_remedy="none")

    # NCCL's calls, of a fake libnccl.

    def test_nccl_call_that_fails(self):
        case, _ = self.assert_verdict(
            "pass", target="averages", recipe={"parallel.ranks": 2},
            inject={"fails": {"fault": "nccl.fail", "ranks": [1], "attempt": 0, "with": {"call": 5, "code": 6, "op": "all_reduce"}}},
            healthy={"completes": "ended(rank=0, why=completed)"},
            symptoms={"dies": "exited(rank=1, code=1)", "lost": "not ended(rank=1, why=completed)"},
            remedies={"supervisor": {"set": {"supervisor.max_restarts": 1}, "resolves": ["lost"]}},
            budget={"seconds": 100, "stall_seconds": 3})
        self.assertEqual(case["scenario"], "t/x")
        fired, = self.fired(name="rank1.jsonl")
        self.assertEqual([fired[key] for key in ("id", "fault", "op", "call", "rank", "before", "after")],
                         ["fails", "nccl.fail", "all_reduce", 5, 1, 0, 6])
        self.assertEqual(self.fired(), [], "on rank 1 alone")
        self.assertEqual(len(self.fired("supervisor", "rank1.jsonl")), 1, "the second attempt has a fault no more")
        with open(self.folder + "/out/t/x/fault/0/rank1.stderr", encoding="utf-8") as file:
            self.assertIn("NCCL error 6 in all_reduce", file.read())

    def test_nccl_call_that_is_left_out(self):
        self.assert_verdict(
            "pass", target="averages", recipe={"parallel.ranks": 2},
            inject={"left_out": {"fault": "nccl.drop", "ranks": [1], "with": {"call": 7}}},
            healthy={"completes": "ended(rank=0, why=completed)"},
            symptoms={"waits": "stalled", "rank_1_ends": "ended(rank=1, why=completed) and stalled"}, remedies=None, no_remedy="none",
            budget={"seconds": 100, "stall_seconds": 3})

    def test_nccl_calls_that_change_places(self):
        self.assert_verdict(
            "pass", target="averages", recipe={"parallel.ranks": 2},
            inject={"swapped": {"fault": "nccl.reorder", "ranks": [1], "with": {"call": 5}}},
            healthy={"completes": "ended(rank=0, why=completed)"},
            symptoms={"wrong": "eventually abs(loss - control.loss) > 0.001 * control.loss"}, remedies=None, no_remedy="none",
            budget={"seconds": 100, "stall_seconds": 3})
        fired, = self.fired(name="rank1.jsonl")  # alike as they are, they are two calls
        self.assertEqual(fired["before"], ["call 5, all_reduce of 1", "the next, all_reduce of 1"])

    def test_the_suites_own_scenarios_of_nccl(self):
        done = self.call("run", "portable/nccl-*", "--target", "averages", "--scenarios-root", SUITE, "--each-seed", "0:1",
                         "--output", "out", "--history", "none")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("4 cases: 4 pass;", done.stdout)

    def test_nccl_fault_that_is_never_reached_is_no_pass(self):
        case, done = self.judge(
            target="averages", recipe={"parallel.ranks": 2}, inject={"late": {"fault": "nccl.delay", "with": {"call": 1000}}},
            healthy={"completes": "ended(rank=0, why=completed)"}, symptoms={"ends": "not ended(rank=0, why=completed)"},
            remedies=None, no_remedy="none")
        self.assertNotEqual(case["verdict"], "pass", done.stdout)
        self.assertIn("fault_not_fired", json.dumps(case), done.stdout)

    def test_environment(self):
        self.assert_verdict(
            "pass", inject={"bad_luck": {"fault": "environment.set", "with": {"name": "BAD_LUCK", "value": "3"}}},
            symptoms={"worse": "mean(loss[-5:]) > 2 + control.mean(loss[-5:])"}, remedies=None, no_remedy="none")
        self.assertEqual([(f["before"], f["after"]) for f in self.fired()], [("unset", "3")])

    def test_damaged_data_are_a_copy(self):
        with open(self.folder + "/data/numbers.txt", "rb") as file:
            before = file.read()
        self.assert_verdict(
            "pass", inject={"half": {"fault": "data.damage_file", "with": {"files": "*numbers.txt", "how": "truncate"}}},
            symptoms={"other_target": "mean(loss[:1]) > 1.1 * control.mean(loss[:1])"},
            healthy={"learns": LEARNS}, remedies=None, no_remedy="none")
        fired, = self.fired()
        self.assertLess(fired["after"]["bytes"], fired["before"]["bytes"])
        self.assertTrue(os.path.exists(self.folder + "/out/t/x/fault/0/data.0"))
        self.assertFalse(os.path.exists(self.folder + "/out/t/x/control/0/data.0"))
        with open(self.folder + "/data/numbers.txt", "rb") as file:
            self.assertEqual(file.read(), before)

    def test_phases_with_a_damaged_checkpoint(self):
        self.assert_verdict(
            "pass", phases=[{"name": "train", "until": 20}, {"name": "resume"}],
            inject={"torn": {"fault": "checkpoint.damage_file", "phase": "resume", "with": {"how": "truncate"}}},
            healthy={"goes_on": "max(loss[20:]) < 0.1"},
            # What is run again counts as it was the last time: the loss is the same, the start is not.
            symptoms={"from_the_beginning": "resumed and fired(torn)"}, remedies=None, no_remedy="none")
        steps = {arm: [r["step"] for r in self.trace(arm) if r["t"] == "step"] for arm in ("control", "fault")}
        self.assertEqual(steps["control"], list(range(30)))
        self.assertEqual(steps["fault"], list(range(20)) + list(range(30)))

    # What cannot be served, and what is wrong.

    def test_too_much_of_an_own_scenario_is_an_error(self):
        self.write(inject={"flip": {"fault": "model.bit_flip", "at": 3}}, recipe={"model.kind": "gpt"})
        # `describes` is of level 2 and may have anything.
        self.assertIn("requires:fault:model.bit_flip", self.call("validate", "t/x").stdout)
        self.forget("describes")
        done = self.call("run", "t/x")
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertIn("the target has no fault 'model.bit_flip'", done.stderr)
        self.assertIn("unknown recipe key 'model.kind'", done.stderr)
        self.write(symptoms={"x": "eventually grad_norm > 3"})
        self.assertIn("unknown signal 'grad_norm'", self.call("run", "t/x").stderr)
        self.write(symptoms={"x": "eventually error > 3"})  # which another target of the file has
        self.assertIn("requires:signal:error", self.call("run", "t/x").stdout)
        self.write(phases=[{"name": "train", "until": 20}, {"name": "resume"}])
        self.assertIn("requires:phases", self.call("run", "t/x", "--target", "files").stdout)
        for target in ("plain", "tidy", "counted"):  # which have them
            self.forget(target)
        done = self.call("run", "t/x", "--target", "files")
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertIn("cannot end a phase: no '{run.until}' stands in its 'command'", done.stderr)

    def test_too_much_of_a_catalogue_is_a_loud_skip(self):
        self.forget("describes")
        self.write(inject={"flip": {"fault": "model.bit_flip", "at": 3}})
        shutil.copytree(self.folder + "/scenarios", self.folder + "/catalogue")
        done = self.call("run", "t/x", "--scenarios-root", "catalogue")
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("requires:fault:model.bit_flip", done.stdout)
        self.assertEqual(self.call("run", "t/x", "--scenarios-root", "scenarios").returncode, 3)

    def test_misspellings_are_errors(self):
        self.write(inject={"slow": {"fault": "recipe.scale_rl", "with": {"factor": 0.001}}})
        done = self.call("validate", "t/x")
        self.assertEqual(done.returncode, 3)
        self.assertIn("did you mean 'recipe.scale_lr'?", done.stderr)

    def test_wrong_files_of_targets(self):
        done = self.call("validate", "--target", "plane")
        self.assertEqual(done.returncode, 3)
        self.assertIn("did you mean 'plain'?", done.stderr)
        with open(self.folder + "/trainwreck.yaml", "a", encoding="utf-8") as file:
            file.write("  worse:\n    command: [python3, '{lr}']\n    recipe: {steps: 1, rl: 0.5}\n    signals: {loss: {}}\n"
                       "    sources: [{stdout: '(?P<loss>.)'}]\n")
        done = self.call("run", "t/x")
        self.assertEqual(done.returncode, 3)
        wrong = r"trainwreck.yaml:\d+:25: error: no recipe key and nothing of the run is called 'lr'"
        self.assertRegex(done.stderr, wrong)
        done = self.call("adapt", "trainwreck.yaml", "plain", "--describe")  # one that is right, in a file that is not
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, wrong)

    def test_program_that_cannot_be_started(self):
        with open(self.folder + "/trainwreck.yaml", encoding="utf-8") as file:
            text = file.read().replace("python3, train.py", "no-such-program, train.py")
        with open(self.folder + "/trainwreck.yaml", "w", encoding="utf-8") as file:
            file.write(text)
        self.write()
        done = self.call("run", "t/x")
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertIn("the program cannot be started: cannot start 'no-such-program'", done.stderr)
        case, done = self.assert_verdict("error", "crash", options=["--no-preflight"])
        self.assertIn("cannot start 'no-such-program'", case["arms"][0]["ended"])
        # The cause, then what follows from it; and in the table of arms.
        self.assertEqual([check["check"] for check in case["checks"][:3]], ["end"] * 3)
        self.assertLess(done.stdout.index("crash: 'end' in control"), done.stdout.index("undecided: "))
        self.assertIn("ended: seed 0: failed, rank 0 code 127: cannot start", done.stdout)
        self.assertIn("cannot start 'no-such-program'", done.stdout)

    # Nothing survives.

    def test_a_process_that_is_left_behind_is_killed_and_told(self):
        _, done = self.assert_verdict("error", "leak", recipe={"habit": "leaves"})
        self.assertIn("left processes behind", done.stdout)

    def test_nothing_outlives_a_killed_harness(self):
        self.write(recipe={"pace": 0.5})
        harness = subprocess.Popen([TRAINWRECK, "run", "t/x", "--target", "plain"], cwd=self.folder, env=self.environment,
                                   stdout=subprocess.DEVNULL)
        # The harness, its server, and at least a guard, an adapter and a program.
        deadline = time.monotonic() + 60
        while len(processes_with(self.marker)) < 5 and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertGreaterEqual(len(processes_with(self.marker)), 5)
        harness.send_signal(signal.SIGKILL)
        harness.wait()
        deadline = time.monotonic() + 30
        while processes_with(self.marker) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(processes_with(self.marker), [])


if __name__ == "__main__":
    unittest_xml.main(sys.argv[4:])
