#!/usr/bin/env python3
"""The hooks of `adapter: python` in real programs: what they record is compared with what the programs themselves know.

Usage: hooks_test.py [unittest options], with a Python that has torch, in the output folder of the package
"""
import glob
import json
import math
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, "tests")
import unittest_xml  # pylint: disable=wrong-import-position

PACKAGE = os.path.abspath("python/packed/trainwreck")
PROGRAMS = os.path.abspath("python/tests/programs.py")
PYTHON = os.environ.get("TRAINWRECK_STACKS_PYTHON") or shutil.which("python3")
TORCH = subprocess.run([PYTHON, "-c", "import torch, torch.distributed as d; print(torch.__version__, *dir(torch), *dir(torch.amp), *dir(d.Work))"],
                       capture_output=True, text=True, check=False).stdout.split()
needs_torch = unittest.skipUnless(TORCH, f"{PYTHON} cannot import torch: ci/test.sh installs Debian's")


# torchrun of torch 1.13 fails with Python 3.11, whose enumerations have other members, but where this is set: of no rank that there is.
TORCHRUN = {"PET_REDIRECTS": "9:1", "PET_TEE": "9:1"} if "".join(TORCH[:1]).startswith("1.") else {}


def needs(name):
    return unittest.skipUnless(name in TORCH, f"torch {TORCH[:1]} of {PYTHON} has no {name}: ci/test.sh --with-python-stacks installs a newer one")


with open(PACKAGE + "/hooks.json", encoding="utf-8") as description:
    HOOKS = json.load(description)


def fault(name, at=None, **parameters):
    described, = [one for one in HOOKS["faults"] if one["name"] == name]
    defaults = {one["name"]: one["default"] for one in described["params"]}
    return {"id": "f", "fault": name, "with": {**defaults, **parameters}, "trigger": {} if at is None else {"at": at}}


def entries_of(file):
    """The values within the maps and lists of a checkpoint, counted another way."""
    code = ("import torch, sys\ndef walk(x):\n  if not isinstance(x, (dict, list, tuple)): yield x; return\n"
            "  for y in (x.values() if isinstance(x, dict) else x): yield from walk(y)\nprint(len(list(walk(torch.load(sys.argv[1])))))")
    return int(subprocess.run([PYTHON, "-c", code, file], capture_output=True, text=True, check=True).stdout)


# A program for each fault that gets to it, and one that has run before it, without hooks.
BROKEN = {
    "data.same_worker": {"program": ["streamed", "8", "2"]},
    "data.label_out_of_range": {"program": ["classes", "8"]},
    "checkpoint.lose_optimizer": {"program": ["plain", "8", "last.pt"], "before": ["plain", "4", "last.pt"]},
    "checkpoint.lose_schedule": {"program": ["plain", "8", "last.pt"], "before": ["plain", "4", "last.pt"]},
    "checkpoint.lose_generator": {"program": ["dropped", "8", "last.pt"], "before": ["dropped", "4", "last.pt"]},
    "collective.skip_gradients": {"program": ["ddp", "6"], "ranks": 2},
    **{"collective." + name: {"program": ["summed", "6", "at_once", "later"], "ranks": 2} for name in ("delay", "skip", "mismatch", "corrupt_result")},
}
# Those that write into what the program has, and tell what is there then.
WRITING = ["optimizer.scale_gradients", "optimizer.nan_gradient", "optimizer.scale_rate", "optimizer.drop_state", "optimizer.scale_state",
           "optimizer.restore_state", "optimizer.clear_gradients", "optimizer.miss_parameters", "model.bit_flip", "model.freeze_parameters",
           "checkpoint.lose_optimizer", "collective.corrupt_result"]


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def sizes_in(folder):
    """Of what a program has saved there."""
    paths = [path for path in glob.glob(folder + "/**", recursive=True) if path.endswith((".pt", ".distcp", ".metadata"))]
    return sorted((os.path.relpath(path, folder), os.path.getsize(path)) for path in paths)


GRADIENTS = ("grad_norm", "applied_grad_norm", "nonfinite_grads")
# Says which functions of torch are ours, by the names that they have in torch, and the hooks of all modules.
WHAT_IS_SET = """
import json, sys, types, torch
found, modules = set(), torch.nn.modules.module
for module in [held for name, held in sys.modules.items() if name.split(".")[0] == "torch"]:
    for held in list(vars(module).values()):
        for one in [held, *(vars(held).values() if isinstance(held, type) else ())]:
            if isinstance(one, types.FunctionType) and "/packed/trainwreck/" in one.__code__.co_filename:
                found.add(one.__qualname__)
found |= {name for name in vars(modules) if name.startswith("_global_") and getattr(modules, name)}
print(json.dumps({"set": sorted(found)}))
"""
# What no plan says whether it is needed: steps, losses and rates are always recorded, the harness resumes a run at the steps that
# its checkpoints hold, and finds out by the collectives which rank has not come.
ALWAYS = {"backward", "clip_grad_norm_", "GradScaler.scale", "GradScaler.step", "GradScaler.unscale_", "Optimizer.__init__",
          "Optimizer.zero_grad", "Module.zero_grad", "_global_forward_pre_hooks", "save", "load", "Optimizer.load_state_dict",
          "init_process_group"}
# The same, in some versions of torch.
SOMETIMES = {"get_total_norm", "_get_total_norm", "clip_grads_with_norm_", "_clip_grads_with_norm_", "Optimizer._hook_for_profile", "async_save", "_init_optim_state"}


class HooksTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.trace_folder = self.folder + "/trace"
        os.mkdir(self.trace_folder)

    def call(self, *command, hooks=True, record=(), demand=GRADIENTS, faults=(), without="", status=0, **environment):
        """What a program says, with the hooks or without. Formulas mention the signals of `record` and `demand`."""
        plan = self.folder + "/plan.json"
        with open(plan, "w", encoding="utf-8") as file:
            json.dump({"faults": list(faults), "record": [*record, *demand]}, file)
        added = {"PYTHONPATH": PACKAGE + "/startup", "TRAINWRECK_ADAPTER": "python", "TRAINWRECK_TRACE": self.trace_folder,
                 "TRAINWRECK_PLAN": plan, "TRAINWRECK_ADAPTER_WITHOUT": without} if hooks else {}
        done = subprocess.run([PYTHON, *command], env={**os.environ, "OMP_NUM_THREADS": "1", **added, **environment},
                              capture_output=True, text=True, check=False, timeout=120)
        if status is not None:
            self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.status, self.stderr = done.returncode, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    def program(self, name, *arguments, **options):
        return self.call(PROGRAMS, name, *arguments, **options)

    def ranks(self, count, *program, **options):
        command = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={count}", PROGRAMS, *program]
        return self.call(*command, **options, **TORCHRUN)

    def two_ranks(self, *program, **options):
        return self.ranks(2, *(program or ["ddp"]), **options)

    def records(self, kind="step", rank=0):
        with open(f"{self.trace_folder}/rank{rank}.jsonl", encoding="utf-8") as file:
            return [record for record in map(json.loads, file) if record["t"] == kind]

    def events(self, name, rank=0):
        return [event for event in self.records("event", rank) if event["event"] == name]

    def broken(self, cases):
        """The ends of the ranks of each case. Each has a folder, to which they write what they say, and the trace."""
        with open(self.folder + "/cases", "w+", encoding="utf-8") as file:
            json.dump(cases, file)
            file.seek(0)
            command = [PYTHON, os.path.join(os.path.dirname(PROGRAMS), "broken_faults.py")]
            environment = {**os.environ, "PYTHONPATH": os.path.dirname(PACKAGE), "OMP_NUM_THREADS": "1"}
            done = subprocess.run(command, stdin=file, env=environment, capture_output=True, text=True, check=False, timeout=400)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def assert_goes_on(self, cases, **program):
        """The program of each case (the fault, its parameters, what breaks) does what it does without hooks, and ends as it does. A hook
        that the fault acts in, by its description, has failed. So has no fault fired, but those of which the case says how often."""
        programs = [{"program": ["plain", "8", "last.pt"], "before": [], "ranks": 1, "faults": [], **(program or BROKEN.get(name, {}))}
                    for name, *_ in cases]
        healthy = {json.dumps(one): {**one, "breaks": None} for one in programs}
        healthy_ones = [healthy[json.dumps(one)] for one in programs]
        all_ = [*healthy.values(), *({**one, "faults": [fault(name, **parameters)], "breaks": breaks}
                                     for one, (name, parameters, breaks, *_) in zip(programs, cases))]
        for number, case in enumerate(all_):
            case["folder"] = f"{self.folder}/{number}"
            os.mkdir(case["folder"])
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                case["port"] = free.getsockname()[1]
        ends = self.broken(all_)
        self.assertEqual(len(ends), len(all_))
        for case, end in list(zip(all_, ends))[: len(healthy)]:
            self.assertEqual(end, [0] * case["ranks"], case)
        for (name, parameters, breaks, *fired), whole, case, end in zip(cases, healthy_ones, all_[len(healthy):], ends[len(healthy):]):
            with self.subTest(f"{name} {parameters} {breaks}"):
                errors = "".join(read(f"{case['folder']}/errors{rank}") for rank in range(case["ranks"]))
                self.assertEqual(end, [0] * case["ranks"], errors)
                hooks, = [one["hooks"] for one in HOOKS["faults"] if one["name"] == name]
                writes = breaks == "telling" and name in WRITING
                for rank in range(case["ranks"]):
                    self.trace_folder = case["folder"]
                    failed = {event["hook"] for event in self.events("hook_failed", rank)}
                    self.assertTrue(failed and failed <= set(hooks), failed)
                    self.assertEqual(len(self.events("fired", rank)), sum(fired))
                    said, expected = (read(f"{one['folder']}/said{rank}").splitlines() for one in (case, whole))
                    self.assertGreater(len(expected), 3)
                    if writes:
                        said, expected = ([json.loads(line)["lr"] for line in lines] for lines in (said, expected))
                    self.assertEqual(said, expected)
                if not writes:
                    self.assertEqual(sizes_in(case["folder"]), sizes_in(whole["folder"]))

    def assert_seen(self, said, rank=0, missing=()):
        """Every number that the program said is in the trace, and no hook has failed."""
        steps = self.records(rank=rank)
        self.assertEqual(self.events("hook_failed", rank), [])
        self.assertEqual([step["step"] for step in steps], [line["step"] for line in said])
        for step, line in zip(steps, said):
            for key in line.keys() - {"rank"}:
                self.assertIn(key, step)
                self.assertAlmostEqual(float(step[key]), line[key], delta=1e-6 * abs(line[key]), msg=f"{key} at {line}")
            for key in missing:
                self.assertNotIn(key, step)
        return steps

    def assert_program(self, name, *arguments, missing=(), **options):
        """The hooks see what the program knows, and change nothing of it."""
        said = self.program(name, *arguments, **options)
        self.assertGreater(len(said), 5)
        steps = self.assert_seen(said, missing=missing)
        self.assertEqual(said, self.program(name, *arguments, hooks=False))
        return steps


@needs_torch
class ProgramsTest(HooksTest):
    def test_accumulation_clipping_and_a_schedule(self):
        steps = self.assert_program("plain")
        self.assertTrue(all(step["clipped"] in (0, 1) and step["nonfinite_grads"] == 0 for step in steps))
        self.assertEqual(steps[0]["optimized_count"], 8 * 16 + 16 + 16 + 1)

    def test_clipping_of_the_programs_own(self):
        self.assert_program("own_clipping", missing=["grad_norm", "clipped"])

    @needs("compile")  # what it tests came later
    def test_clipping_by_the_parts_of_torchs_function(self):
        self.assert_program("clipped_in_parts", record=["grad_std{0.weight}"])
        self.setUp()
        said = self.program("clipped_in_parts", demand=())
        for step, line in zip(self.records(), said):
            self.assertEqual((step["clipped"], "grad_norm" in step), (line["clipped"], step["step"] % 3 == 0), "known at no cost")

    def test_a_backward_pass_inside_of_the_step(self):
        self.assert_program("closure")

    def test_recomputation(self):
        steps = self.assert_program("recomputed", record=["sample_digest"])
        self.assertEqual(len({step["sample_digest"] for step in steps}), len(steps))

    def test_two_optimizers(self):
        self.assert_program("two_optimizers")

    def test_an_optimizer_within_an_optimizer(self):
        self.assert_program("nested")

    def test_optimizers_within_a_container_that_follow_a_schedule(self):
        for arguments in ([], ["hidden"]):
            self.setUp()
            steps = self.assert_program("contained", "8", *arguments, record=["updated", "untrained"])
            self.assertEqual(steps[0]["optimized_count"], 8 * 16 + 16 + 16 + 1)
            self.assertTrue(all(step["updated"] == 161 and step["untrained"] == 0 for step in steps))

    def test_a_container_that_follows_a_schedule(self):
        self.assert_program("synced")

    @needs("GradScaler")  # on CPUs
    def test_a_gradient_scaler(self):
        steps = self.assert_program("scaled", "12")
        self.assertEqual([step["overflow"] for step in steps], [1] * steps[-1]["skipped_updates"] +
                         [0] * (len(steps) - steps[-1]["skipped_updates"]))
        self.assertGreater(steps[-1]["skipped_updates"], 0)

    def test_a_gradient_scaler_that_is_off(self):
        steps = self.assert_program("unscaled", missing=["loss_scale", "overflow"])
        self.assertEqual(steps[-1]["skipped_updates"], 0)

    def test_batches_taken_ahead(self):
        steps = self.assert_program("prefetched", record=["sample_digest"])
        digests = [step["sample_digest"] for step in steps]
        self.setUp()
        self.assertEqual([step["sample_digest"] for step in self.assert_program("own_clipping", record=["sample_digest"])], digests,
                         "it trains on the same batches in the same order")

    def test_an_iterable_data_set_taken_ahead(self):
        """A fault of data acts when the program takes a batch: here a step before it trains on it."""
        for workers in ("0", "2"):
            self.setUp()
            steps = self.assert_program("streamed", "8", workers, record=["sample_digest"])
            self.assertEqual(len({step["sample_digest"] for step in steps}), 8)
            self.setUp()
            said = self.program("streamed", "8", workers, faults=[fault("data.corrupt_batch", at=2, what="nan", value=0)])
            self.assertEqual([line["loss"] != line["loss"] for line in said], [False] * 3 + [True] * 5)
            self.assertEqual([event["step"] for event in self.events("fired")], [2])

    def test_rates_of_groups(self):
        steps = self.assert_program("grouped", record=["lr{*}"])
        self.assertEqual([steps[i]["lr{1}"] for i in (0, 2, 7)], [0.5, 0.25, 0.0625])
        self.setUp()
        self.program("grouped", record=["lr{body}"])
        self.assertEqual({key for key in self.records()[0] if key.startswith("lr")}, {"lr", "lr{body}"})

    def test_inputs_by_name(self):
        steps = self.assert_program("by_name", record=["sample_digest"])
        self.assertEqual(len({step["sample_digest"] for step in steps}), len(steps))

    @needs("compile")
    def test_a_compiled_model(self):
        self.assert_program("compiled", record=["sample_digest"])

    @needs("compile")
    def test_inductor(self):
        self.assert_program("inductor", record=["param_norm", "updated"])
        self.assertEqual([step["updated"] for step in self.records()], [161] * 8)  # all elements

    def test_a_model_whose_parts_are_called(self):
        self.assert_program("parts", TRAINWRECK_ADAPTER_TELL="1")
        self.assertEqual(self.events("program")[0]["model"], "Policy")
        self.setUp()
        steps = self.assert_program("parts", record=["act_norm{*}", "grad_norm{head.*}"])
        self.assertEqual({key for key in steps[0] if "{" in key},
                         {"act_norm{flat}", "act_norm{body}", "act_norm{head}", "grad_norm{head.weight}", "grad_norm{head.bias}"})

    def test_a_run_that_goes_on(self):
        checkpoint = self.folder + "/last.pt"
        first = self.program("plain", "6", checkpoint)
        saved = self.events("checkpoint_saved")[-1]
        self.assertEqual((saved["steps_done"], saved["entries"]), (6, entries_of(checkpoint)))
        shutil.move(checkpoint, self.folder + "/moved.pt")  # as programs do that write beside it and rename
        second = self.program("plain", "10", self.folder + "/moved.pt")
        self.assertEqual([line["step"] for line in second], [6, 7, 8, 9])
        self.assert_seen(first + second)
        self.assertEqual([event["from_step"] for event in self.events("resumed")], [6])

    def test_a_run_is_ended_after_its_steps(self):
        self.program("plain", "6", TRAINWRECK_ADAPTER_STEPS="4")
        self.assertEqual([record["step"] for record in self.records()], [0, 1, 2, 3])
        self.setUp()
        self.program("plain", "6", TRAINWRECK_ADAPTER_STEPS="6")
        self.assertEqual(len(self.records()), 6)

    def test_a_run_is_ended_where_the_backward_pass_is_inside_of_the_step(self):
        self.program("closure", "6", TRAINWRECK_ADAPTER_STEPS="4")
        self.assertEqual(len(self.records()), 4)

    def test_training_in_a_process_that_the_program_starts(self):
        for method in ("fork", "forkserver", "spawn"):
            self.setUp()
            self.assert_program("in_child", "6", method)
            self.assertEqual(len(self.records()), 6, method)
            self.setUp()
            self.program("in_child", "6", method, faults=[fault("optimizer.nan_gradient", at=3)])
            self.assertEqual([event["step"] for event in self.events("fired")], [3], method)
            self.assertEqual([math.isfinite(float(step["grad_norm"])) for step in self.records()], [True] * 3 + [False] * 3, method)

    def test_ranks_that_the_program_starts(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        late = {**fault("process.slow_step", seconds=0.3), "trigger": {"at": 3, "ranks": [1]}}
        said = self.program("in_children", "6", str(port), faults=[late])
        for rank, count in ((0, 0), (1, 1)):
            self.assertEqual(len(self.assert_seen([line for line in said if line["rank"] == rank], rank)), 6)
            self.assertEqual(len(self.events("fired", rank)), count)

    def test_ranks_are_ended_after_the_same_step(self):
        self.two_ranks(TRAINWRECK_ADAPTER_STEPS="4")
        self.assertEqual([len(self.records(rank=rank)) for rank in (0, 1)], [4, 4])

    def test_what_an_update_changes(self):
        names = ["update_norm", "param_norm", "param_digest", "updated", "untrained", "frozen_moved"]
        steps = self.assert_program("plain", record=names)
        for step in steps:
            self.assertEqual((step["updated"] > 0, step["untrained"], step["frozen_moved"]), (True, 0, 0))
            self.assertGreater(step["param_norm"], step["update_norm"])
        self.assertEqual(len({step["param_digest"] for step in steps}), len(steps))
        self.setUp()
        for step in self.assert_program("plain"):
            self.assertFalse(set(names) & step.keys(), "only where a formula mentions them")

    def functions_set(self, **plan):
        said, = self.call("-c", WHAT_IS_SET, **{"demand": (), **plan})
        return set(said["set"])

    def test_functions_of_torch_are_left_alone_that_the_plan_does_not_need(self):
        always = self.functions_set()
        self.assertEqual(always - SOMETIMES, ALWAYS)
        batches = {"_BaseDataLoaderIter." + name for name in ("__init__", "_reset", "__next__")}
        for added, plan in ((set(), {"record": [*GRADIENTS, "update_norm", "comm_s", "memory_bytes"]}), (batches, {"record": ["data_s"]}),
                            ({"_BaseDataLoaderIter.__next__"}, {"faults": [fault("data.slow_loader", seconds=1)]}),
                            (set() if "boxed" in TORCH else {"all_reduce"}, {"faults": [fault("collective.delay", seconds=1)]}),
                            (set(), {"faults": [fault("process.slow_step", seconds=1)]})):
            self.assertEqual(self.functions_set(**plan) - always, added, plan)
        for plan in ({"record": ["act_norm"]}, {"faults": [fault("schedule.freeze")]}):  # which ones differs between versions
            self.assertTrue(self.functions_set(**plan) - always, plan)
        self.assertEqual(self.functions_set(hooks=False), set())

    def test_what_no_formula_mentions_is_left_out(self):
        on_demand = {*GRADIENTS, "memory_bytes"}
        for step, line in zip(self.assert_program("by_name", demand=["memory_bytes", "grad_norm"]), range(8)):
            self.assertGreater(step["memory_bytes"], 10**7, line)
        for name, free in (("plain", {"grad_norm", "clipped"}), ("own_clipping", set())):
            self.setUp()
            said = [{key: value for key, value in line.items() if key not in on_demand - free} for line in self.program(name, demand=())]
            for step in self.assert_seen(said):
                self.assertEqual(step.keys() & {*on_demand, "clipped"}, free, name)

    def test_norms_of_single_gradients(self):
        for name in ("named_norms", "named_norms_clipped"):
            self.setUp()
            for step in self.assert_program(name, record=["grad_norm{0.*}", "grad_norm{2.bias}"]):
                self.assertEqual({key for key in step if key.startswith("grad_norm{")},
                                 {"grad_norm{0.weight}", "grad_norm{0.bias}", "grad_norm{2.bias}"})

    def test_waiting_for_batches(self):
        self.program("by_name", record=["data_s"], faults=[fault("data.slow_loader", at=2, seconds=0.3)])
        waited = [step["data_s"] for step in self.records()]
        self.assertGreater(waited[2], 0.3)
        self.assertTrue(all(0 < seconds < 0.3 for seconds in waited[:2] + waited[3:]), waited)
        self.assertTrue(all(step["data_s"] < step["step_s"] for step in self.records()))

    def test_what_a_source_gives_is_left_out(self):
        self.program("plain", without="loss,lr")
        self.assertFalse({"loss", "lr"} & self.records()[0].keys())

    def test_ranks(self):
        said = self.two_ranks(record=["param_digest", "shard_digest"])
        digests = []
        for rank in (0, 1):
            steps = self.assert_seen([line for line in said if line["rank"] == rank], rank)
            digests.append([step["param_digest"] for step in steps])
            self.assertEqual([step["shard_digest"] for step in steps], digests[-1], "each rank holds all")
        self.assertEqual(digests[0], digests[1])

    def assert_collectives(self, expected, *program):
        """What each of two ranks calls in a step, and how long it waits, as it says itself."""
        said = self.two_ranks("collectives", "8", *program, record=["comm_s"])
        for rank in (0, 1):
            own = [line for line in said if line["rank"] == rank]
            steps = self.assert_seen([{key: line[key] for key in ("step", "loss", "lr")} for line in own], rank)
            records = self.records("collective", rank)
            self.assertEqual([record["call"] for record in records], list(range(len(records))))
            for step in range(2, 8):  # the first two have DDP's own set-up, too
                calls = [f"{one['op']} {one['shape']} {one['dtype']}" for one in records if one["step"] == step]
                self.assertEqual(calls, expected)
            for step, line in list(zip(steps, own))[2:]:
                self.assertTrue(0 < step["comm_s"] <= line["waited"], (step, line))
            self.assertEqual(max(step["comm_s"] for step in steps) > 0.3, rank == 0, "rank 1 is late, rank 0 waits")
        without = self.two_ranks("collectives", "8", *program, hooks=False)
        results = [sorted((line["rank"], line["step"], line["loss"], line["seen"]) for line in lines) for lines in (said, without)]
        self.assertEqual(*results)

    def test_collectives(self):
        # In torch 1.x a collective without a plain list of tensors is not seen, nor its group.
        own = [] if TORCHRUN else ["all_reduce [2,3] float32", "broadcast [5] int64"]
        self.assert_collectives(["all_reduce [161] float32", *own][: 3 if own else 0])

    @needs("compile")
    def test_functional_collectives(self):
        self.assert_collectives(["all_reduce [161] float32", "all_reduce [2,3] float32", "all_reduce [2,3] float32", "broadcast [5] int64"],
                                "functional")

    def test_the_exit_lets_the_threads_of_gloo_rest(self):
        """One that drops a tensor later ends the rank by SIGABRT. This one wants the interpreter's lock for a while, as one that drops some."""
        said, = self.call("-c", """
import ctypes, json, threading, time
from trainwreck import collectives

def drop():
    ctypes.CDLL(None).prctl(15, b"pt_gloo_runloop")  # its name
    begun.set()
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        pass
    dropped.set()
    threading.Event().wait()

begun, dropped = threading.Event(), threading.Event()
threading.Thread(target=drop, daemon=True).start()
begun.wait()
collectives.let_gloo_rest()
print(json.dumps({"dropped": dropped.is_set()}))
""", hooks=False, PYTHONPATH=os.path.dirname(PACKAGE))
        self.assertEqual(said, {"dropped": True})

    def test_a_number_that_is_not_finite_comes_from_another_rank(self):
        self.two_ranks("born_elsewhere", record=["first_nonfinite"], demand=())
        for rank, stage, module in ((0, "after_backward", "2"), (1, "data", "batch")):
            first = self.events("first_nonfinite", rank)[0]
            self.assertEqual((first["step"], first["stage"], first["module"]), (3, stage, module))

    @needs("compile")
    def test_parts_of_parameters_on_two_ranks(self):
        names = ["param_norm", "param_norm{*}", "update_norm", "param_digest", "updated", "untrained", "applied_grad_norm", "grad_std{*}"]
        folder = self.folder + "/sharded"
        first = self.two_ranks("sharded", "6", folder, record=names)
        os.rename(folder, folder + "-last")
        second = self.two_ranks("sharded", "10", folder + "-last", record=names)
        for rank in (0, 1):
            own = [line for line in first + second if line["rank"] == rank]
            self.assertEqual([line["step"] for line in own], list(range(10)))
            for step in self.assert_seen(own, rank):
                self.assertFalse({key.partition("{")[0] for key in step} & {name.partition("{")[0] for name in names}, "never of a part")
            saved = sorted((event["file"], event["steps_done"]) for event in self.events("checkpoint_saved", rank))
            self.assertEqual(saved, [("sharded", 6), ("sharded-3", 3), ("sharded-last", 10)])
            self.assertEqual([event["from_step"] for event in self.events("resumed", rank)], [6])
        self.two_ranks("sharded", "7", folder + "-3")
        self.assertEqual([event["from_step"] for event in self.events("resumed")], [6, 3], "that of a save in the background")
        whole = self.two_ranks("sharded", "10", folder, hooks=False)
        self.assertEqual(*[sorted((line["step"], line["rank"], line["loss"]) for line in lines) for lines in (first + second, whole)])

    def test_no_norm_of_parts_of_fsdp1(self):
        names = ["param_norm", "update_norm", "param_digest", "untrained", "applied_grad_norm", "nonfinite_grads", "grad_std"]
        steps = self.assert_program("marked", record=[*names, "grad_norm{*}", "param_norm{2.bias}"], missing=["grad_norm", *names])
        self.assertEqual({key for key in steps[0] if "{" in key}, {"grad_norm{2.weight}", "grad_norm{2.bias}", "param_norm{2.bias}"})

    @needs("compile")
    def test_what_one_rank_alone_holds_is_no_part(self):
        names = ["grad_norm", "applied_grad_norm", "nonfinite_grads", "param_digest", "updated", "untrained", "frozen_moved",
                 *(f"{name}{of}" for name in ("param_norm", "update_norm", "update_std", "grad_std", "updated") for of in ("", "{*}"))]
        seen = []
        for how in (["sharded"], ["whole"]):
            self.assert_seen(self.ranks(1, "sharded", "6", "none", "unclipped", *how, record=names))
            steps = self.records()
            for name in names:
                self.assertTrue(any(key.startswith(name.replace("*}", "")) for key in steps[-1]), (name, how))
            seen.append([{key: value for key, value in step.items() if key not in ("time", "step_s")} for step in steps])
            self.setUp()
        self.assertEqual(*seen)

    @needs("compile")
    def test_no_norm_of_parts(self):
        said = self.two_ranks("sharded", "6", self.folder + "/sharded", "unclipped", record=["grad_norm", "grad_norm{*}"])
        for step in self.assert_seen([line for line in said if line["rank"] == 0]):
            self.assertEqual([key for key in step if "grad_norm" in key], [])

    def test_epochs_and_generators(self):
        steps = self.assert_program("epochs", record=["epoch", "generator_digest", "generator_digest{torch}", "generator_digest{python}"])
        of_torch, of_python = ([step[f"generator_digest{{{name}}}"] for step in steps] for name in ("torch", "python"))
        self.assertEqual([a != b for a, b in zip(of_torch, of_torch[1:])], [False, False, True, False, False, True, False], "each epoch is shuffled")
        self.assertEqual([a != b for a, b in zip(of_python, of_python[1:])], [step == 4 for step in range(7)])
        self.assertNotIn("generator_digest{numpy}", steps[0])
        self.setUp()
        self.assert_program("epochs", "8", "unclear", record=["epoch"], missing=["epoch"])

    def test_epochs_of_kinds_of_loaders_and_of_workers_that_stay(self):
        for arguments in (["own"], ["workers"], ["own", "workers"]):
            steps = self.assert_program("epochs", "8", *arguments, record=["epoch", "data_s"])
            self.assertEqual([step["epoch"] for step in steps], [0, 0, 0, 1, 1, 1, 2, 2])
            self.assertTrue(all(step["data_s"] > 0 for step in steps))
            self.setUp()

    def test_a_python_without_torch_is_left_alone(self):
        self.call("-c", "import json; assert 'trainwreck' not in __import__('sys').modules")
        self.assertEqual(os.listdir(self.trace_folder), [])

    def test_a_program_that_asks_for_torch_before_it_imports_it(self):  # as transformers and datasets do
        asks = "import importlib.util, runpy, sys; assert importlib.util.find_spec('torch'); sys.argv = sys.argv[1:]; "
        said = self.call("-c", asks + "runpy.run_path(sys.argv[0], run_name='__main__')", PROGRAMS, "plain")
        self.assertEqual(len(self.assert_seen(said)), 8)

    def test_a_sitecustomize_that_is_hidden_still_runs(self):
        mine = self.folder + "/mine"
        os.mkdir(mine)
        with open(mine + "/sitecustomize.py", "w", encoding="utf-8") as file:
            file.write("import builtins\nbuiltins.mine = 1\n")
        self.call("-c", "assert mine == 1", PYTHONPATH=f"{PACKAGE}/startup:{mine}")

    # The training goes on.
    def test_a_hook_that_fails_says_so_and_is_silent(self):
        broken = self.folder + "/broken"
        shutil.copytree(PACKAGE, broken)
        with open(broken + "/tensors.py", "a", encoding="utf-8") as file:
            file.write("\n\ndef norm(tensors):\n    raise ValueError('no norm today')\n")
        said = self.program("plain", PYTHONPATH=broken + "/startup")
        self.assertEqual(len(said), 8)
        failed, = self.events("hook_failed")
        self.assertEqual((failed["hook"], failed["step"]), ("gradients", 0))
        self.assertIn("no norm today", failed["why"])
        self.assertNotIn("grad_norm", self.records()[0])
        self.assertIn("loss", self.records()[0])

    # The description says which hooks a fault acts in, so that the judge knows a fault that was kept from acting.
    def test_a_fault_whose_hook_fails_does_not_fire(self):
        broken = self.folder + "/broken"
        shutil.copytree(PACKAGE, broken)
        with open(broken + "/faults.py", "a", encoding="utf-8") as file:
            file.write("\n\ndef _broken(*_args):\n    raise ValueError('no fault today')\n\n\n"
                       "Faults.begin_step = Faults.after_backward = Faults.on_model = _broken\n")
        hooks = {"optimizer.nan_gradient": ["gradients"], "optimizer.scale_rate": ["faults"], "model.eval_mode": ["faults", "model"]}
        self.assertEqual({one["name"]: one["hooks"] for one in HOOKS["faults"] if one["name"] in hooks}, hooks)
        said = self.program("plain", PYTHONPATH=broken + "/startup", faults=[{**fault(name), "id": name} for name in hooks])
        self.assertEqual(len(said), 8)
        self.assertEqual(self.events("fired"), [])
        self.assertEqual({event["hook"] for event in self.events("hook_failed")}, {"gradients", "faults", "model"})

    def test_a_torch_that_is_too_old_is_named(self):
        old = self.folder + "/old"
        shutil.copytree(PACKAGE, old)
        with open(old + "/compat.py", encoding="utf-8") as file:
            text = file.read()
        with open(old + "/compat.py", "w", encoding="utf-8") as file:
            file.write(text.replace("OLDEST = (1, 13)", "OLDEST = (99, 0)"))
        said = self.program("plain", PYTHONPATH=old + "/startup")
        self.assertEqual(len(said), 8)
        self.assertIn(f"trainwreck: the hooks could not be set: torch {TORCH[0]} is too old: they need 99.0 or newer\n", self.stderr)
        self.assertEqual(os.listdir(self.trace_folder), [])

    def test_what_init_asks_for(self):
        self.program("plain", TRAINWRECK_ADAPTER_TELL="1")
        told, = self.events("program")
        self.assertEqual((told["model"], told["groups"], told["ranks"], told["scaler"]), ("Sequential", 1, 1, False))
        self.assertEqual(self.events("hook_failed"), [])
        self.program("plain")
        self.assertEqual((told["schedulers"], told["precision"]), (["StepLR"], ["float32 parameters"]))
        self.assertEqual(len(self.events("program")), 1)  # nobody asks

    def test_what_init_is_told_of_options(self):
        train = self.folder + "/train.py"
        with open(train, "w", encoding="utf-8") as file:  # it reads them before it imports torch
            file.write("import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--lr', type=float)\n"
                       "parser.add_argument('--seed', type=int, default=3)\noptions = parser.parse_args()\nimport torch\n"
                       "weight = torch.nn.Parameter(torch.ones(1))\noptimizer = torch.optim.SGD([weight], lr=options.lr)\n"
                       "weight.sum().backward()\noptimizer.step()\n")
        self.call(train, "--lr=0.1", TRAINWRECK_ADAPTER_TELL="1")
        told, = self.events("program")
        self.assertEqual(told["options"], [{"names": ["--seed"], "takes_value": True, "default": "3"}])
        self.assertEqual(told["command"], [train, "--lr=0.1"])
        self.assertEqual(self.events("hook_failed"), [])
        whose = "import argparse, sys; sys.exit('/trainwreck/' in argparse.ArgumentParser.parse_args.__code__.co_filename)"
        self.call("-c", whose, TRAINWRECK_ADAPTER_TELL="1", status=1)
        self.call("-c", whose)  # nobody asks

    def test_what_init_is_told_of_autocast(self):
        self.program("grouped", TRAINWRECK_ADAPTER_TELL="1")
        told, = self.events("program")
        self.assertEqual((told["precision"], told["groups"]), (["float32 parameters", "autocast to bfloat16 on cpu"], 2))

    @needs("GradScaler")
    def test_what_init_is_told_of_a_scaler(self):
        self.program("scaled", TRAINWRECK_ADAPTER_TELL="1")
        self.assertTrue(self.events("program")[-1]["scaler"])


STATISTICS = ("norm", "mean", "std", "max", "nonfinite", "zero_share")
ACTIVATIONS = [f"act_{name}{{[01]}}" for name in (*STATISTICS, "saturated_share", "unit_spread", "softmax_entropy")]


@needs_torch
class ModulesTest(HooksTest):
    """What is recorded of single modules and parameters."""

    def assert_read(self, program, keys, **options):
        for step in self.assert_program(program, **options):
            for key in keys:
                self.assertIn(key, step)

    def test_activations(self):
        self.assert_read("activations", ["act_norm{0}", "act_softmax_entropy{1}", "act_norm", "act_nonfinite{0}"],
                         record=[*ACTIVATIONS, "act_norm", "act_nonfinite"], demand=())

    def test_activations_of_parts_that_run_again(self):
        self.assert_read("activations_recomputed", ["act_norm{0}", "act_norm"], record=[*ACTIVATIONS, "act_norm", "act_nonfinite"], demand=())

    @needs("compile")
    def test_activations_within_what_is_compiled_are_not_known(self):
        said = self.program("activations_compiled", record=[*ACTIVATIONS, "act_norm", "act_max{Sequential}"], demand=())
        plain = [{key: value for key, value in line.items() if not key.startswith("act_")} for line in said]
        for step in self.assert_seen(plain):
            self.assertEqual([key for key in step if key.startswith("act_")], ["act_max{Sequential}"])
        self.assertEqual(said, self.program("activations_compiled", hooks=False))

    def test_parameters_gradients_and_updates(self):
        families = [f"{family}_{name}{of}" for family, of in (("grad", "{0.weight}"), ("param", "{0.weight}"), ("initial", "{0.weight}"),
                                                              ("update", "{0.weight}"), ("update", "")) for name in STATISTICS]
        self.assert_read("parameters_read", ["grad_std{0.weight}", "param_max{0.weight}", "update_zero_share{0.weight}", "update_norm"],
                         record=[*families, "updated{0.weight}", "untrained"], demand=())

    def first(self, where, rank=0, **options):
        """What is said of a number that is not finite, born at step 3 as the program does it."""
        said = self.program("born", "8", where, record=["first_nonfinite"], demand=(), **options)
        self.assertEqual(said, self.program("born", "8", where, hooks=False))
        self.assertEqual(self.events("hook_failed"), [])
        return [{**event, "time": None} for event in self.events("first_nonfinite", rank)]

    def assert_born(self, where, **fields):
        self.setUp()
        event, *later = self.first(where)
        # What was born in a gradient is in the parameters then: of this there is one more event.
        self.assertEqual([event["stage"] for event in later], ["parameters"] if fields["stage"] == "backward" else [])
        self.assertEqual({key: event[key] for key in fields}, fields)
        self.assertEqual(event["step"], 3)

    def test_where_a_number_that_is_not_finite_was_born(self):
        # The gradient of log(0) is infinite already when it is given to the logarithm.
        self.assert_born("data", stage="data", module="batch", tensor="inputs", kind="inf", count=1, elements=64)
        self.assert_born("parameters", stage="parameters", module="first", tensor="first.weight", kind="nan", count=1)
        self.assert_born("forward", stage="forward", module="inner.1", tensor="output", kind="inf")
        self.assert_born("between", stage="forward", module="Odd", tensor="output", kind="nan")
        self.assert_born("loss", stage="forward", module="loss", tensor="output", backward_op="MseLossBackward0")
        for where, module in (("backward", "Odd"), ("recomputed", "" if TORCHRUN else "Odd")):  # torch 1.x does not say what recomputes
            self.assert_born(where, stage="backward", module=module, tensor="last.bias", kind="inf", backward_op="SqrtBackward0")

    def test_infinities_that_do_no_harm(self):
        self.assertEqual(self.first("masked"), [])

    def test_nothing_is_said_of_it_where_nobody_asks(self):
        self.program("born", "8", "forward")
        self.assertEqual(self.events("first_nonfinite"), [])


@needs_torch
class WatchTest(HooksTest):
    """`trainwreck.watch` in programs that call it."""

    def watched(self, name, *folder, **options):
        return self.call(PROGRAMS, name, "8", *folder, hooks=False, PYTHONPATH=os.path.dirname(PACKAGE), **options)

    def test_without_a_harness(self):
        os.rmdir(self.trace_folder)
        said = self.watched("watched", self.trace_folder)
        steps = self.assert_seen(said)
        self.assertEqual(len(steps), 8)
        self.assertTrue(all(step["param_norm"] > 0 for step in steps))
        self.assertEqual(steps[0]["optimized_count"], 8 * 16 + 16 + 16 + 1)

    def test_below_a_harness(self):
        said = self.program("watched", "8", self.folder + "/elsewhere", faults=[fault("model.bit_flip", at=7, parameter="2.bias", element=0, bit=3)])
        self.assertEqual(len(self.assert_seen(said)), 8)
        self.assertEqual([event["parameter"] for event in self.events("fired")], ["2.bias"])
        self.assertFalse(os.path.exists(self.folder + "/elsewhere"))

    def test_without_a_folder(self):
        self.watched("watched", status=1)
        self.assertIn("ValueError: no harness runs this program: give a folder for its trace\n", self.stderr)

    def test_an_optimizer_that_has_a_scheduler(self):
        if TORCHRUN:  # torch 1.x
            self.watched("watched_late", self.trace_folder, status=1)
            self.assertIn("does not show the steps of an optimizer that has a scheduler already\n", self.stderr)
        else:
            self.assertEqual(len(self.assert_seen(self.watched("watched_late", self.trace_folder))), 8)


@needs_torch
class FaultsTest(HooksTest):
    def fired(self, rank=0):
        return self.events("fired", rank)

    def test_a_nan_in_a_gradient(self):
        said = self.program("plain", faults=[fault("optimizer.nan_gradient", at=3)])
        once, = self.fired()
        self.assertEqual((once["step"], once["after"]), (3, "nan"))
        self.assertEqual([line["loss"] == line["loss"] for line in said], [True] * 4 + [False] * 4)

    def test_the_rate_of_a_step_that_is_left_out(self):
        steps = self.assert_seen(self.program("guarded", faults=[fault("optimizer.nan_gradient", at=3)]))
        self.assertEqual([step["skipped_updates"] for step in steps], [0] * 3 + [1] * 5)

    def test_gradients_times_a_factor(self):
        self.program("plain", faults=[fault("optimizer.scale_gradients", at=2, factor=10)])
        once, = self.fired()
        self.assertAlmostEqual(once["after"] / once["before"], 10, places=4)

    def test_a_rate_times_a_factor_for_one_update(self):
        said = self.program("plain", faults=[fault("optimizer.scale_rate", at=2, factor=10)])
        self.assertEqual([step["lr"] / line["lr"] for step, line in zip(self.records(), said)], [1, 1, 10, 1, 1, 1, 1, 1])
        self.assertEqual((self.fired()[0]["before"], self.fired()[0]["after"]), (0.01, 0.1))

    def test_optimizers_within_a_container(self):
        healthy = self.program("contained", hooks=False)
        for name, parameters, before, ratio in (("scale_rate", {"factor": 10}, 0.01 * 5 / 6, 10), ("drop_state", {}, 4, 0),
                                                ("scale_state", {"entry": "exp_avg", "factor": 1e4}, None, 1e4),
                                                ("scale_gradients", {"factor": 10}, healthy[4]["grad_norm"], 10)):
            self.setUp()
            said = self.program("contained", faults=[fault("optimizer." + name, at=4, **parameters)])
            once, = self.fired()
            self.assertAlmostEqual(once["before"], before or once["before"], places=6)
            self.assertAlmostEqual(once["after"], ratio * once["before"], delta=1e-4 * once["after"])
            self.assertEqual([a["loss"] == b["loss"] for a, b in zip(healthy, said)][:6], [True] * 5 + [False], name)
            self.assertAlmostEqual(self.records()[4]["lr"] / healthy[4]["lr"], 10 if name == "scale_rate" else 1)
            self.assertEqual([step["lr"] for step in self.records()][5:], [line["lr"] for line in healthy][5:])

    def test_parameters_that_optimizers_within_a_container_miss(self):
        healthy = self.program("contained", hooks=False)
        said = self.program("contained", record=["updated"], faults=[fault("optimizer.miss_parameters", parameters="*", share=0.5)])
        self.assertEqual((self.fired()[0]["before"], self.fired()[0]["after"]), (4, 2))
        self.assertEqual((self.records()[0]["optimized_count"], self.records()[-1]["updated"]), (17, 17))
        self.assertEqual([a["loss"] == b["loss"] for a, b in zip(healthy, said)], [True] + [False] * 7)

    def test_a_state_that_is_dropped(self):
        healthy = self.program("plain", hooks=False)
        said = self.program("plain", faults=[fault("optimizer.drop_state", at=4)])
        self.assertEqual((self.fired()[0]["before"], self.fired()[0]["after"]), (4, 0))
        same = [a["loss"] == b["loss"] for a, b in zip(healthy, said)]
        self.assertEqual(same, [True] * 5 + [False] * 3)

    def test_gradients_that_are_kept(self):
        healthy = self.program("plain", hooks=False)
        said = self.program("plain", faults=[fault("optimizer.keep_gradients", at=3)])
        self.assertEqual([event["step"] for event in self.fired()], [3], "between two steps it is the next one's")
        same = [a["grad_norm"] == b["grad_norm"] for a, b in zip(healthy, said)]
        self.assertEqual(same, [True] * 3 + [False] * 5)

    def test_frozen_parameters(self):
        self.program("plain", record=["update_norm"], faults=[fault("model.freeze_parameters", parameters="0.*", share=1)])
        self.assertEqual({event["parameter"] for event in self.fired()}, {"0.weight", "0.bias"})
        self.assertTrue(all(step["updated"] <= 17 for step in self.records()))

    def test_a_bit_of_a_parameter(self):
        self.program("plain", faults=[fault("model.bit_flip", at=1, parameter="2.bias", element=0, bit=30)])
        once, = self.fired()
        self.assertEqual(once["parameter"], "2.bias")
        self.assertGreater(abs(once["after"]), 1e30)

    def test_entries_of_a_checkpoint(self):
        checkpoint = self.folder + "/last.pt"
        self.program("plain", "6", checkpoint, faults=[fault("checkpoint.drop_entries", entries=["exp_avg"])])
        self.assertEqual(len(self.fired()), 4)
        self.program("plain", "8", checkpoint, status=1)

    def test_a_checkpoint_without_entries_is_all_that_changes(self):
        checkpoint = self.folder + "/last.pt"
        healthy = self.program("saving", "8", checkpoint, hooks=False)
        whole = entries_of(checkpoint)
        said = self.program("saving", "8", checkpoint, faults=[fault("checkpoint.drop_entries", entries=["exp_avg", "*.bias"])])
        self.assertEqual(said, healthy, "the program goes on with what it has")
        self.assertEqual((len(self.fired()), entries_of(checkpoint)), (6, whole - 6))
        saved, = self.events("checkpoint_saved")
        self.assertEqual(saved["entries"], whole - 6)

    @needs("compile")
    def test_entries_of_objects_that_give_their_state(self):
        self.program("objects", "6", self.folder + "/saved", faults=[fault("checkpoint.drop_entries", entries=["exp_avg", "0.bias"])])
        self.assertEqual(sorted(event["entry"] for event in self.fired()), ["0.bias"] + ["exp_avg"] * 4)

    def test_an_optimizer_that_is_lost_on_the_way(self):
        checkpoint = self.folder + "/last.pt"
        whole = self.program("plain", "10", hooks=False)
        self.program("plain", "6", checkpoint)
        rest = self.program("plain", "10", checkpoint, faults=[fault("checkpoint.lose_optimizer")])
        self.assertEqual((self.fired()[0]["before"], self.fired()[0]["after"]), (4, 0))
        self.assertEqual(rest[0]["loss"], whole[6]["loss"])
        self.assertNotEqual(rest[2]["loss"], whole[8]["loss"])

    def test_batches_that_are_changed(self):
        said = self.program("guarded", faults=[fault("data.corrupt_batch", at=2, what="nan", value=0)])
        self.assertEqual([line["loss"] != line["loss"] for line in said], [False] * 2 + [True] + [False] * 5)
        self.setUp()
        self.program("guarded", faults=[fault("data.shuffle_labels", at=2)])
        self.assertEqual([event["step"] for event in self.fired()], [2])
        self.setUp()
        self.program("guarded", faults=[fault("data.slow_loader", at=2, seconds=0.3)])
        self.assertGreater(self.records()[2]["step_s"], 0.3)

    def test_crashes(self):
        for how, status in (("sigkill", -9), ("exit", 7), ("exception", 1)):
            self.setUp()
            said = self.program("plain", status=status, faults=[fault("process.crash_inside", at=3, how=how, code=7)])
            self.assertEqual(len(said), 4)
            self.assertEqual(len(self.records()), 3)
            self.assertEqual([event["step"] for event in self.fired()], [3])

    def test_missed_parameters(self):
        self.program("plain", record=["update_norm"], faults=[fault("optimizer.miss_parameters", parameters="*", share=0.5)])
        once, = self.fired()
        self.assertEqual((once["before"], once["after"], once["parameters"]), (4, 2, ["0.weight", "0.bias"]))
        self.assertEqual((self.records()[0]["optimized_count"], self.records()[-1]["updated"]), (17, 17))

    def test_a_state_that_is_scaled(self):
        said = self.program("plain", faults=[fault("optimizer.scale_state", at=4, entry="exp_avg", factor=1e4)])
        self.assertAlmostEqual(self.fired()[0]["after"] / self.fired()[0]["before"], 1e4, delta=1)
        self.assertGreater(said[5]["loss"], 3 * said[4]["loss"])
        self.setUp()
        self.program("by_name", faults=[fault("optimizer.scale_state", at=4, entry="exp_avg", factor=1e4)])  # SGD has none
        self.assertEqual(self.fired() + self.events("hook_failed"), [])

    def test_a_state_of_an_earlier_step(self):
        healthy = self.program("plain", hooks=False)
        said = self.program("plain", faults=[fault("optimizer.restore_state", at=5, age=3)])
        once, = self.fired()
        self.assertEqual(once["step"], 5)
        self.assertNotEqual(once["before"], once["after"])
        self.assertEqual([a["loss"] == b["loss"] for a, b in zip(healthy, said)], [True] * 6 + [False] * 2)
        self.setUp()
        self.program("plain", faults=[fault("optimizer.restore_state", at=3, age=3)])
        self.assertEqual(self.fired() + self.events("hook_failed"), [], "it had none at the first step")

    def test_gradients_that_are_cleared(self):
        self.program("plain", record=["update_norm"], faults=[fault("optimizer.clear_gradients", at=4)])
        self.assertEqual((self.fired()[0]["before"] > 0, self.fired()[0]["after"]), (True, 0))
        self.assertEqual([step["updated"] > 0 for step in self.records()], [True] * 4 + [False] + [True] * 3)

    def test_a_detached_module(self):
        self.program("plain", record=["update_norm"], faults=[fault("model.detach_output", module="*", share=0)])
        self.assertEqual([(event["step"], event["module"]) for event in self.fired()], [(step, "0") for step in range(8)])
        self.assertTrue(all(step["updated"] <= 17 for step in self.records()))

    def test_a_detached_module_by_its_share(self):
        """Of the elements, which are 144, 32, 272 and 17 in the order of modules: of a norm nobody would see that it does not move."""
        for share, name in ((0, "0"), (0.3, "0"), (0.4, "2"), (0.9, "2")):
            self.program("normed", faults=[fault("model.detach_output", module="*", share=share)])
            self.assertEqual(self.fired()[-1]["module"], name, share)

    @needs("compile")
    def test_faults_in_one_rank_s_part_of_a_sharded_model(self):
        """The other rank makes no collective for them."""
        for name, parameters in (("optimizer.scale_gradients", {"factor": 10}), ("model.bit_flip", {"parameter": "*", "element": 3, "bit": 2})):
            only = {**fault(name, **parameters), "trigger": {"at": 2, "ranks": [1]}}
            said = self.two_ranks("sharded", "4", "none", "unclipped", faults=[only], demand=())
            self.assertEqual(sorted(line["step"] for line in said), [0, 0, 1, 1, 2, 2, 3, 3], name)
            self.assertEqual((self.events("fired"), self.events("hook_failed", 1)), ([], []), name)
            self.assertEqual([event["step"] for event in self.events("fired", 1)], [2], name)
            self.setUp()

    def test_a_model_in_evaluation(self):
        healthy = self.program("dropped", hooks=False)
        said = self.program("dropped", faults=[{**fault("model.eval_mode"), "trigger": {"from": 3}}])
        self.assertEqual([(event["step"], event["after"]) for event in self.fired()], [(3, "evaluation")])
        self.assertEqual([line["training"] for line in said], [True] * 3 + [False] * 5)
        self.assertEqual([a["loss"] == b["loss"] for a, b in zip(healthy, said)], [True] * 3 + [False] * 5)

    def test_a_schedule_that_stands_still(self):
        said = self.program("plain", faults=[{**fault("schedule.freeze"), "trigger": {"from": 1, "to": 4}}])
        self.assertEqual([line["lr"] for line in said], [0.01] * 7 + [0.005])
        self.assertEqual([event["step"] for event in self.fired()], [1, 2, 3, 4])

    def test_a_schedule_that_is_lost_on_the_way(self):
        checkpoint = self.folder + "/last.pt"
        self.program("plain", "4", checkpoint)
        said = self.program("plain", "10", checkpoint, faults=[fault("checkpoint.lose_schedule")])
        self.assertEqual((self.fired()[0]["before"], self.fired()[0]["after"]), (4, 0))
        self.assertEqual([line["lr"] for line in said], [0.005] * 3 + [0.0025] * 3)

    def test_a_generator_that_is_lost_on_the_way(self):
        checkpoint = self.folder + "/last.pt"
        whole = self.program("dropped", "8", hooks=False)
        for faults in ([], [fault("checkpoint.lose_generator")]):
            shutil.rmtree(self.trace_folder)
            os.mkdir(self.trace_folder)
            self.program("dropped", "4", checkpoint)
            rest = self.program("dropped", "8", checkpoint, faults=faults)
            os.remove(checkpoint)
            self.assertEqual(len(self.fired()), len(faults))
            self.assertEqual(rest[0]["loss"] == whole[4]["loss"], not faults)

    def test_generators_of_devices_and_of_the_program_that_are_lost_on_the_way(self):
        for way in ("all", "current", "object"):
            checkpoint = self.folder + "/whole.pt"
            whole = self.program("dropped_on_device", "6", checkpoint, way, hooks=False)
            checkpoint = self.folder + "/last.pt"
            self.program("dropped_on_device", "3", checkpoint, way, hooks=False)
            shutil.copy(checkpoint, self.folder + "/again.pt")
            rest = self.program("dropped_on_device", "6", self.folder + "/again.pt", way, hooks=False)
            self.assertEqual([line["loss"] for line in rest], [line["loss"] for line in whole[3:]])
            rest = self.program("dropped_on_device", "6", checkpoint, way, faults=[fault("checkpoint.lose_generator")])
            self.assertEqual([(event["step"], event["before"] == event["after"]) for event in self.fired()], [(0, False)])
            self.assertNotEqual(rest[0]["loss"], whole[3]["loss"], way)
            self.setUp()

    def test_a_save_that_breaks(self):
        checkpoint = self.folder + "/last.pt"
        self.program("plain", "6", checkpoint, hooks=False)
        whole = os.path.getsize(checkpoint)
        for how, status in (("sigkill", -9), ("no_space", 1)):
            self.setUp()
            self.program("plain", "6", checkpoint + how, status=status, faults=[fault("checkpoint.break_save", at=6, how=how, files=0)])
            once, = self.fired()
            self.assertEqual((once["after"], os.path.getsize(checkpoint + how)), (once["before"] // 2, once["before"] // 2))
            self.assertLess(abs(once["before"] - whole), 500)
        self.assertIn("No space left on device", self.stderr)

    @needs("compile")
    def test_a_checkpoint_of_parts_that_breaks_or_lacks_entries(self):
        folder = self.folder + "/sharded"
        only = {**fault("checkpoint.break_save", how="sigkill", files=0), "trigger": {"at": 6, "ranks": [1]}}
        self.two_ranks("sharded", "6", folder, status=1, faults=[only])
        once, = self.fired(rank=1)
        files = {name: os.path.getsize(f"{folder}/{name}") for name in os.listdir(folder)}
        self.assertEqual(sorted(files), ["__0_0.distcp", "__1_0.distcp"], "no metadata")
        self.assertEqual((once["after"], files["__1_0.distcp"]), (once["before"] // 2, once["before"] // 2))
        self.setUp()
        folder = self.folder + "/sharded"
        healthy = self.two_ranks("sharded", "6", folder, hooks=False)
        self.setUp()
        folder = self.folder + "/sharded"
        said = self.two_ranks("sharded", "6", folder, faults=[fault("checkpoint.drop_entries", at=6, entries=["0.bias"])])
        self.assertEqual(*[sorted((line["step"], line["rank"], line["loss"]) for line in lines) for lines in (healthy, said)])
        self.assertEqual([event["entry"] for event in self.fired(rank=0)][:1], ["0.bias"])
        self.two_ranks("sharded", "8", folder, status=1)

    def test_memory_that_ends(self):
        self.program("plain", demand=["memory_bytes"], faults=[fault("process.leak_memory", mebibytes=8)])
        kept = [step["memory_bytes"] for step in self.records()]
        self.assertTrue(all(b - a > 7 * 2**20 for a, b in zip(kept[2:], kept[3:])), kept)
        self.setUp()
        self.program("plain", status=1, faults=[{**fault("process.leak_memory", mebibytes=128), "id": "leak"},
                                                fault("process.limit_memory", mebibytes=300)])
        self.assertIn("allocate memory", self.stderr)
        self.assertEqual([event["id"] for event in self.fired()], ["f"] + ["leak"] * 2)

    def test_memory_of_a_device_that_ends(self):
        said = self.program("on_device", "3", demand=["memory_bytes"], faults=[{**fault("process.leak_memory", mebibytes=8), "id": "leak"},
                                                                               fault("process.limit_memory", mebibytes=100)])
        said = [one for one in said if one["of"] != "None"]  # those of torch 2.8 itself
        self.assertEqual(said, [{"share": 0.2, "of": "cuda:1"}] + 3 * [{"ones": [8 << 20], "of": "cuda:1"}])
        self.assertEqual([(event["id"], event["before"], event["after"]) for event in self.fired()],
                         [("f", 1000 << 20, 200 << 20), *(("leak", step * 8 << 20, (step + 1) * 8 << 20) for step in range(3))])
        self.assertTrue(all(0 < step["memory_bytes"] - (3 << 40) < 1 << 40 for step in self.records()), "of the process, and of both devices")

    def test_a_step_that_takes_longer(self):
        self.program("plain", faults=[fault("process.slow_step", at=2, seconds=0.3)])
        self.assertEqual([step["step_s"] > 0.3 for step in self.records()[1:]], [False, True] + [False] * 5)

    def test_batches_that_come_again(self):
        self.program("by_name", record=["sample_digest"], faults=[fault("data.repeat_batches", times=3)])
        digests = [step["sample_digest"] for step in self.records()]
        self.assertEqual([digests.index(digest) for digest in digests], [0, 0, 0, 3, 3, 3, 6, 6])
        self.assertEqual([event["step"] for event in self.fired()], [0, 3, 6])

    def test_batches_that_are_rearranged(self):
        healthy = self.program("own_clipping", hooks=False)
        for how in ("reversed", "doubled"):
            self.setUp()
            said = self.program("own_clipping", faults=[fault("data.rearrange_batch", at=2, how=how)])
            self.assertEqual([event["step"] for event in self.fired()], [2])
            self.assertNotEqual(self.fired()[0]["before"], self.fired()[0]["after"])
            for a, b in zip(healthy, said):
                self.assertAlmostEqual(a["loss"], b["loss"], delta=1e-5)

    def test_a_label_out_of_range(self):
        self.program("classes", "8", status=1, faults=[fault("data.label_out_of_range", at=3, value=1000)])
        once, = self.fired()
        self.assertEqual((once["step"], once["before"] < 4, once["after"]), (3, True, 1000))
        self.assertIn("out of bounds", self.stderr)

    def test_batches_that_are_made_slowly(self):
        self.program("by_name", record=["data_s"], faults=[fault("data.slow_fetch", at=2, seconds=0.3)])
        self.assertEqual([step["data_s"] > 0.3 for step in self.records()], [False] * 2 + [True] + [False] * 5)
        self.setUp()
        self.program("prefetched", record=["data_s"], faults=[fault("data.slow_fetch", seconds=0.3)])
        waited = [step["data_s"] for step in self.records()]
        self.assertGreater(len(self.fired()), 8)
        self.assertLess(sorted(waited[2:])[2], 0.25, "two workers make batches at the same time")

    def test_ranks_that_train_on_their_own(self):
        self.two_ranks(record=["param_digest"], faults=[{**fault("collective.skip_gradients"), "trigger": {"from": 3}}])
        both = [[step["param_digest"] for step in self.records(rank=rank)] for rank in (0, 1)]
        self.assertEqual([a == b for a, b in zip(*both)], [True] * 3 + [False] * 5)
        self.assertEqual(([event["step"] for event in self.fired()], self.fired()[0]["after"]), ([3, 4, 5, 6, 7], False))

    def test_a_loader_that_ends_early(self):
        self.program("by_name", record=["sample_digest"], faults=[fault("data.early_end", at=3)])
        digests = [step["sample_digest"] for step in self.records()]
        self.assertEqual([event["step"] for event in self.events("fired")], [3])
        self.assertEqual(digests[3:6], digests[:3], "it begins its data anew")

    def test_workers_that_are_all_the_first(self):
        healthy = [self.program("streamed", "8", "2", record=["sample_digest"]), self.records()][1]
        self.setUp()
        self.program("streamed", "8", "2", record=["sample_digest"], faults=[fault("data.same_worker")])
        digests = [step["sample_digest"] for step in self.records()]
        self.assertEqual(len({step["sample_digest"] for step in healthy}), 8)
        self.assertEqual(digests[0::2], digests[1::2], "each batch comes from both")
        self.assertEqual(len(set(digests)), 4)
        self.assertEqual([(event["before"], event["after"]) for event in self.fired()], [(1, 0)])

    def test_a_loader_of_one_rank_that_ends_early(self):
        self.two_ranks(record=["sample_digest"], faults=[{**fault("data.early_end"), "trigger": {"at": 3, "ranks": [1]}}])
        self.assertEqual(([event["step"] for event in self.fired(rank=1)], self.fired(rank=0)), ([3], []))
        first, second = ([step["sample_digest"] for step in self.records(rank=rank)] for rank in (0, 1))
        self.assertEqual(len(set(first)), 8)
        self.assertEqual((second[3:6], len(set(second))), (second[:3], 5), "it begins its data anew")


# With parameters, where the defaults do nothing.
OF_ONE_RANK = {one["name"]: {"entries": ["exp_avg"]} if one["name"] == "checkpoint.drop_entries" else {}
               for one in HOOKS["faults"] if not one["name"].startswith("collective.")}


@needs_torch
class BrokenFaultsTest(HooksTest):
    """A fault whose own code fails: the training goes on as if it was not there."""

    def test_each_that_cannot_find_out_whether_it_is_due(self):
        self.assert_goes_on([(name, parameters, "deciding") for name, parameters in OF_ONE_RANK.items()])

    # What was written by then stays.
    def test_each_that_cannot_tell_what_it_does(self):
        self.assert_goes_on([(name, parameters, "telling") for name, parameters in OF_ONE_RANK.items()])

    def test_each_whose_parameters_are_of_no_use(self):
        self.assert_goes_on([(one["name"], {**OF_ONE_RANK[one["name"]], parameter["name"]: None}, "nothing")
                             for one in HOOKS["faults"] if one["name"] in OF_ONE_RANK for parameter in one["params"]])

    def test_a_batch_that_cannot_be_copied(self):
        self.assert_goes_on([("data.repeat_batches", {}, "first copy"), ("data.repeat_batches", {}, "second copy", 1)])

    def test_what_another_torch_lacks(self):
        self.assert_goes_on([("data.slow_fetch", {}, "no fetcher"), ("schedule.freeze", {}, "no schedulers"),
                             ("checkpoint.lose_schedule", {}, "no schedulers"), ("checkpoint.lose_generator", {}, "no generators"),
                             ("process.leak_memory", {}, "no ones")])

    @needs("compile")
    def test_a_checkpoint_of_parts(self):
        cases = [("checkpoint.break_save", {}, breaks) for breaks in ("deciding", "telling")]
        cases += [("checkpoint.drop_entries", {"entries": ["0.bias"]}, breaks) for breaks in ("deciding", "telling")]
        self.assert_goes_on(cases, program=["sharded", "4", "parts"], ranks=2)


# What the description promises is what the code does.
class DescriptionTest(unittest.TestCase):
    def code(self):
        return "".join(open(path, encoding="utf-8").read() for path in glob.glob(PACKAGE + "/*.py"))

    def test_each_fault_is_in_the_code(self):
        code = self.code()
        for described in HOOKS["faults"]:
            name = described["name"]
            self.assertIn(f'"{name}"', code)
            for parameter in described["params"]:
                self.assertIn(f'with_["{parameter["name"]}"]', code, name)

    def test_each_hook_of_a_fault_is_in_the_code(self):
        code = self.code()
        hooks = {hook for described in HOOKS["faults"] for hook in described.get("hooks", [])}
        self.assertIn("faults", hooks)
        for hook in hooks:
            self.assertIn(f'guard("{hook}", ', code)

    def test_each_signal_is_in_the_code(self):
        code = self.code()
        for signal in HOOKS["signals"]:
            family, _, statistic = signal["name"].partition("_")
            if f'Family("{family}"' in code and f'    "{statistic}": Statistic(' in code:
                continue
            self.assertRegex(code, rf"\b{signal['name']}=", signal["name"])

    def test_each_event_is_in_the_code(self):
        for event in HOOKS["events"]:
            self.assertIn(f'"{event["name"]}"', self.code())


if __name__ == "__main__":
    unittest_xml.main(sys.argv[1:])
