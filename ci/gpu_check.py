#!/usr/bin/env python3
"""Runs every check that needs a GPU and writes one report. See gpu_check.sh."""
import argparse
import datetime
import glob
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

import gpu_machine
from gpu_report import ABSENT, FAILED, PARTLY, PASSED, Results, may_replace, write_report

HERE = os.path.dirname(os.path.abspath(__file__))
# As the harness's exit statuses are.
EXIT_PASSED, EXIT_FAILED, EXIT_NOTHING, EXIT_INCONCLUSIVE, EXIT_INFRASTRUCTURE, EXIT_INTERRUPTED = 0, 1, 4, 5, 7, 130
ABOUT_GPUS = "gpu"  # the tag of scenarios that are about a GPU; most can run on nothing else
ABOUT_CHANCE = "nondeterministic"  # the tag of scenarios whose fault `deterministic` takes away
NCCL_AT_ONCE = ["-j", "4"]  # a run of two ranks counts with both
WIND_UP_S = 25  # after an interrupt the harness ends its runs and writes what it has
ENOUGH_S = WIND_UP_S + 10  # what a check needs to be worth starting


class Check:
    def __init__(self, options, results):
        self.bundle = os.path.abspath(options.bundle)
        self.options, self.results = options, results
        self.end = time.monotonic() + options.call_limit_s
        self.torch, self.others = gpu_machine.find_torch(options.python)
        self.python = gpu_machine.python_with_torch(options.python)
        self.environment = {**os.environ, "OMP_NUM_THREADS": "1", "GPU_CHECK_PYTHON": self.python,
                            "LD_LIBRARY_PATH": gpu_machine.library_path(self.bundle, self.torch, self.others)}
        self.versions = gpu_machine.versions(self.torch, self.others)
        self.devices, self.why_none, self.cuda_starts, self.driver = [], "", False, ""
        self.stopped = ""  # by which signal

    def program(self, name):
        return f"{self.bundle}/bin/{name}"

    def left_s(self):
        return self.end - time.monotonic()

    def stop(self, number, _frame):
        """A signal from outside shortens the limit, so that all ends as it does there. The second one leaves no time at all."""
        self.end = min(self.end, time.monotonic() + (0 if self.stopped else WIND_UP_S))
        self.stopped = signal.Signals(number).name

    def has_ended(self, process, least_s, spare_s):
        """Whether it ends while more than spare_s are left, but within least_s at any rate. A signal may come while this waits."""
        begin = time.monotonic()
        while True:
            try:
                process.wait(0.2)
                return True
            except subprocess.TimeoutExpired:
                waited = self.stopped or time.monotonic() - begin >= least_s
                if waited and self.left_s() <= spare_s:
                    return False

    def call(self, command, environment=None, folder=None):
        """Exit code (124: too long), output and seconds. A program that must end is interrupted first: it may have something to say."""
        if self.left_s() <= 0:
            return 124, "", 0.0
        began = time.monotonic()
        with tempfile.TemporaryFile(mode="w+", errors="replace") as output:
            try:
                process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                           cwd=folder,
                                           env={**self.environment, **(environment or {})}, start_new_session=True)
            except OSError as error:
                return 127, str(error), 0.0
            in_time = self.has_ended(process, 1, WIND_UP_S)
            if not in_time:
                process.send_signal(signal.SIGINT)
                if not self.has_ended(process, 1, 0):
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
            output.seek(0)
            return process.returncode if in_time else 124, output.read(), time.monotonic() - began

    # What there is.

    def look(self):
        code, output, _ = self.call(["sh", "-c", '"$0" --describe 2>/dev/null || "$0" --describe', self.program("trainwreck-trainer-cuda")])
        self.cuda_starts = code == 0
        if self.cuda_starts:
            self.devices = [d for d in json.loads(output)["devices"] if d["kind"] == "cuda"]
            self.why_none = "" if self.devices else "no GPU"
        else:
            self.why_none = "the trainer with GPUs does not start: " + (output.strip().splitlines() or [f"exit {code}"])[-1][:200]
        if self.devices and shutil.which("nvidia-smi"):
            _, output, _ = self.call(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"])
            self.driver = output.strip().partition("\n")[0]

    def device(self):
        return "cuda" if self.devices else "cpu"

    def target(self):
        return self.program("trainwreck-trainer-cuda" if self.cuda_starts else "trainwreck-trainer")

    # gtest programs.

    def gtest(self, what, command, needs_gpu=True, environment=None):
        if needs_gpu and not self.devices:
            return self.results.lacks(what, self.why_none)
        code, output, seconds = self.call(command, environment)
        passed = output.count("[       OK ]")
        skipped = sorted(set(re.findall(r"^\[  SKIPPED \] (\S+) \(\d+ ms\)", output, re.MULTILINE)))
        failed = len(re.findall(r"^\[  FAILED  \] \S+(?:, where .*)? \(\d+ ms\)", output, re.MULTILINE))
        words = f"{passed} passed, {failed} failed, {len(skipped)} skipped"
        if code == 124:
            self.cut_short(what, seconds, words, FAILED if failed else PARTLY if passed else ABSENT, passed)
        elif code != 0 or passed + failed + len(skipped) == 0:  # a filter that matches nothing exits with 0
            self.results.record(what, FAILED, seconds, f"exit {code}, {words}")
            self.results.keep(f"{what}: output", output)
        elif passed == 0:
            self.results.lacks(what, words)
        else:
            self.results.record(what, PARTLY if skipped else PASSED, seconds, words)
            for name in skipped:
                self.results.also_lacks(f"{what}: {name}: skipped")

    def cut_short(self, what, seconds, words, status, settled=0):
        self.results.was_cut_short(settled)
        self.results.record(what, status, seconds, f"cut short: {words}")
        self.results.also_lacks(f"{what}: cut short after {seconds:.0f} s: {words}")

    def kernels(self):
        program, gpu = self.program("kernels_cuda_test"), "*/cuda:Cuda*"
        if not self.devices:
            self.gtest("kernels against their oracles on the CPU", [program, f"--gtest_filter=-{gpu}"], needs_gpu=False)
        self.gtest("kernels against their oracles on a GPU", [program, f"--gtest_filter={gpu}"])
        self.gtest("kernels over 2^31 elements on a GPU", [self.program("kernels_cuda_large_test"), "--gtest_filter=*_cuda"])

    def sanitizer(self):
        tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
        for kind in ("memcheck", "racecheck"):
            what = f"compute-sanitizer {kind} on the kernels"
            if self.devices and not os.path.exists(tool):
                self.results.lacks(what, "no compute-sanitizer")
                continue
            # It takes a call that fails on purpose for an error of the program.
            self.gtest(what, [tool, "--tool", kind, "--error-exitcode", "9", self.program("kernels_cuda_test"),
                              "--gtest_filter=*/cuda:Cuda*:-*uge*:*arge*:*AFailedCall*"])

    def benchmarks(self):
        for what, command in (("benchmark of the kernels on the GPU", [self.program("kernels_cuda_benchmark")]),
                              ("benchmark of the kernels against LibTorch on the GPU", [self.program("torch_benchmark"), "--device=cuda"])):
            if not self.devices:
                self.results.lacks(what, self.why_none)
                continue
            code, output, seconds = self.call(command)
            skipped = re.search(r"^SKIPPED.*$", output, re.MULTILINE)
            if code == 0 and skipped:
                self.results.lacks(what, skipped[0])
                continue
            if code == 124:
                self.cut_short(what, seconds, "no end", ABSENT)
                continue
            self.results.record(what, PASSED if code == 0 else FAILED, seconds, f"exit {code}")
            self.results.keep(what[0].upper() + what[1:], output, lines=400)

    # The suite and the ranks.

    def run_scenarios(self, what, paths, arguments, one_seed, target=None, root=None, folder_of_target=None):
        """`target`: of the file in folder_of_target, in place of the trainer; its verdicts name no device."""
        if self.options.cores and "-j" not in arguments:
            arguments = [*arguments, "-j", str(self.options.cores)]
        if self.options.gpu_runs:
            arguments = [*arguments, "--gpu-runs", str(self.options.gpu_runs)]
        if one_seed:
            arguments = [*arguments, "--each-seed", "0:1"]
        with tempfile.TemporaryDirectory() as folder:
            code, output, seconds = self.call(
                [self.program("trainwreck"), "run", *paths, "--scenarios-root", root or self.bundle + "/scenarios",
                 "--target", target or self.target(), "--output", folder + "/run", "--history", "none", *arguments],
                environment={"TRAINWRECK_CACHE": folder}, folder=folder_of_target)
            report = {"counts": {}, "verdicts": []}
            if os.path.exists(folder + "/run/verdicts.json"):
                with open(folder + "/run/verdicts.json", encoding="utf-8") as file:
                    report = json.load(file)
        if target is not None:
            for verdict in report["verdicts"]:
                verdict["devices"] = [] if verdict["verdict"] == "skip" else [self.device()]
        devices = {device for verdict in report["verdicts"] for device in verdict["devices"]}
        unsettled = [verdict for verdict in report["verdicts"] if verdict["verdict"] in ("skip", "inconclusive") and not verdict["expected_limit"]]
        for verdict in unsettled:
            self.results.also_lacks(f"{what}: {verdict['case']}: {verdict['reason']}")
        words = ", ".join(f"{n} {name}" for name, n in report["counts"].items() if n) or f"exit {code}"
        bad = report["counts"].get("fail", 0) + report["counts"].get("error", 0)
        # A case that is rightly skipped passes, too, and has run nowhere.
        passed = sum(verdict["verdict"] == "pass" and self.device() in verdict["devices"] for verdict in report["verdicts"])
        cut_off = re.search(r"\d+ cases? (?:was|were) cut off without a verdict", output)
        if code == 124:
            self.results.was_cut_short(passed)
            why = cut_off[0] if cut_off else "no verdict"
            self.results.also_lacks(f"{what}: cut short after {seconds:.0f} s: {why}")
            words = f"cut short: {words}; {why}"
        whole = code == EXIT_PASSED and not unsettled
        if bad or code not in (EXIT_PASSED, EXIT_NOTHING, EXIT_INCONCLUSIVE, 124):
            status = FAILED
        else:
            status = ABSENT if not passed else PASSED if whole else PARTLY
        self.results.record(what, status, seconds, f"{words}; on {', '.join(sorted(devices)) or 'nothing'}")
        shown = [line for line in output.splitlines() if not line.startswith("SKIP ")]  # they are listed as not verified
        self.results.keep(what[0].upper() + what[1:], "\n".join(shown), lines=400)

    def suite(self, shard):
        what = f"scenario suite with device={self.device()}" + (f", shard {shard}" if shard else "")
        arguments = ["--set", f"device={self.device()}"] + (["--shard", shard] if shard else [])
        if self.devices:
            left_out = f"not {ABOUT_CHANCE}" if self.options.scenarios else f"not {ABOUT_GPUS} and not {ABOUT_CHANCE}"
            arguments = ["-t", left_out, *arguments, "--set", "deterministic=true"]
        self.run_scenarios(what, self.options.scenarios or [self.bundle + "/scenarios"], arguments, self.options.one_seed)
        if not self.devices:
            self.results.also_lacks("the scenario suite on a GPU: it ran on the CPU")

    def tagged(self, what, tags, arguments=()):
        if not self.devices:
            self.results.lacks(what, self.why_none)
        elif self.options.scenarios:
            self.results.also_lacks(f"{what}: left out, as scenarios were named")
        else:
            self.run_scenarios(what, [self.bundle + "/scenarios"], ["-t", tags, "--set", "device=cuda", *arguments], self.options.one_seed)

    def about_gpus(self):
        self.tagged("scenarios about a GPU", f"{ABOUT_GPUS} and not {ABOUT_CHANCE}", ["--set", "deterministic=true"])

    def chance(self):
        self.tagged("scenarios about operations without a fixed order", ABOUT_CHANCE)

    def doctor(self):
        with tempfile.TemporaryDirectory() as folder:
            code, output, seconds = self.call([self.program("trainwreck"), "doctor", "--target", self.target()],
                                              environment={"TRAINWRECK_CACHE": folder})
        what, forked = "training by fork and by exec", "ok    train by fork" in output
        if code == 124:
            self.cut_short(what, seconds, "no end", ABSENT)
        else:
            self.results.record(what, PASSED if code == 0 and forked else FAILED, seconds, "trainwreck doctor", on_gpu=False)
        self.results.keep("trainwreck doctor", output)

    def nccl(self):
        shim = {"GPU_CHECK_NCCL_SHIM": self.bundle + "/lib/trainwreck/libtrainwreck_nccl.so"} if self.versions["NCCL"] else {}
        self.gtest("NCCL communicator at every world size, failures of its calls, generators, memory",
                   [self.program("communicator_nccl_check")], environment=shim)
        for ranks in range(2, len(self.devices) + 1):
            self.run_scenarios(f"training on {ranks} GPUs", [f"{self.bundle}/scenarios/nan/lr-too-high.yaml"],
                               ["--set", "device=cuda", "--set", f"parallel.ranks={ranks}"], one_seed=True)
        if len(self.devices) < 2:
            self.results.also_lacks(f"NCCL between ranks: this machine has {len(self.devices)} GPUs")

    def nccl_faults(self):
        """NCCL's calls are broken by the library of preload/, in programs that know nothing of it."""
        what, ranks = "faults of NCCL's calls", len(self.devices)
        portable = f"{what}: portable/nccl-*, of two ranks"
        if not self.devices:
            return self.results.lacks(what, self.why_none)
        if not self.versions["NCCL"]:
            return self.results.lacks(what, "no shared libnccl.so.2, whose calls could be broken")
        folder, one_seed = self.bundle + "/nccl", self.options.one_seed or self.options.part[1] > 1  # a part has nine minutes
        cases = sorted(glob.glob(self.bundle + "/scenarios/portable/nccl-*.yaml"))
        if ranks < 2:
            self.results.also_lacks(f"{portable}: this machine has {ranks} GPU")
        else:
            self.run_scenarios(f"{portable}: the trainer", cases, NCCL_AT_ONCE, one_seed, "trainer", folder_of_target=folder)
        if not self.python:
            return self.results.also_lacks(f"{what}: PyTorch's calls: name a Python that has torch with --python, and not TORCH_HOME")
        if ranks >= 2:
            self.run_scenarios(f"{portable}: PyTorch", cases, NCCL_AT_ONCE, one_seed, "python", folder_of_target=folder)
        return self.run_scenarios(f"{what}: one rank of PyTorch", [folder + "/scenarios/one-rank"], NCCL_AT_ONCE, one_seed,
                                  "python", folder + "/scenarios", folder)

    def machine(self):
        names = sorted({d["name"] for d in self.devices})
        lines = [("device", f"{len(self.devices)} x {', '.join(names)}" if self.devices else "none: CPU only"),
                 ("processor", gpu_machine.cpu_name()), ("cores", str(len(os.sched_getaffinity(0)))), ("system", platform.platform())]
        lines += [(name, version or "unknown") for name, version in self.versions.items()]
        if self.driver:
            lines.append(("driver", self.driver))
        return lines + [("commit", self.results.commit), ("date", datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"))]


def units_of(check, shards):
    """What there is to run, in the order of the report. What a CPU cannot show comes before the suite, whose last shards may
    find no time."""
    units = {"doctor": check.doctor, "kernels": check.kernels, "nccl": check.nccl, "nccl-faults": check.nccl_faults,
             "gpu": check.about_gpus, "chance": check.chance}
    for index in range(1, shards + 1):
        shard = f"{index}/{shards}" if shards > 1 else ""
        units["suite" + (f" {shard}" if shard else "")] = lambda shard=shard: check.suite(shard)
    return {**units, "sanitizer": check.sanitizer, "benchmarks": check.benchmarks}


def part_of(names, part, parts, shard):
    """1: all before the suite. The last: all behind it. Between: a shard each. In one call: all, or one shard and all around it."""
    if parts == 1:
        return [name for name in names if not shard or not name.startswith("suite") or name == f"suite {shard}"]
    shards = [name for name in names if name.startswith("suite")]
    before, behind = names[:names.index(shards[0])], names[names.index(shards[-1]) + 1:]
    return before if part == 1 else behind if part == parts else [shards[part - 2]]


def chosen_part(text):
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    part, parts = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= part <= parts or parts == 2:
        raise argparse.ArgumentTypeError(f"'{text}' is no part: write 1/1, or i/n with n of at least 3")
    return part, parts


def chosen_shard(text):
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise argparse.ArgumentTypeError(f"'{text}' is no shard: write i/n")
    return "" if found[2] == "1" else f"{int(found[1])}/{int(found[2])}"


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bundle", default=HERE)
    parser.add_argument("--report", default="gpu.md")
    parser.add_argument("--results", default="gpu.json", help="what the calls so far found; a part adds its own")
    parser.add_argument("--python")
    parser.add_argument("--part", type=chosen_part, default=(1, 1), help="i/n: one of n calls")
    parser.add_argument("--call-limit-s", type=float, help="this call ends within it [540 for a part, else 3600]")
    parser.add_argument("--shard", type=chosen_shard, help="i/n: of the suite, one of n shards; not with --part, which has its own")
    parser.add_argument("-j", "--cores", type=int, help="cores for the suite")
    parser.add_argument("--gpu-runs", type=int, help="runs of the suite on one GPU at a time [4]")
    parser.add_argument("--one-seed", action="store_true", help="judge each scenario by its seed 0 alone: more scenarios in a call, and weaker verdicts")
    parser.add_argument("--rehearse", action="store_true", help="without a GPU, run on the CPU what can be; verifies nothing, and so exits with 4, or with 1")
    parser.add_argument("--only", help="comma-separated: doctor,kernels,nccl,nccl-faults,gpu,chance,suite,sanitizer,benchmarks")
    parser.add_argument("--nodes", nargs="*", default=gpu_machine.NODES, help=argparse.SUPPRESS)
    parser.add_argument("scenarios", nargs="*", help="default: all of the bundle")
    options = parser.parse_args()
    if not os.path.isfile(options.bundle + "/COMMIT"):
        parser.error(f"{options.bundle} is no bundle: make one with ci/gpu_bundle.sh gpu.tar.gz, unpack it, and run the gpu_check.sh in it")
    if options.shard and options.part[1] > 1:
        parser.error("--shard and --part do not go together: a part is a shard already; take a larger n of --part")
    if not may_replace(options.report):
        parser.error(f"{options.report} was not written by gpu_check alone, and would be lost: name another --report")
    if options.call_limit_s is None:
        options.call_limit_s = 540 if options.part[1] > 1 else 3600
    return options


def refuse_to_start(check):
    """Why nothing may run here; None: go on. A GPU that cannot be used is an error, and no reason to test the CPU."""
    wrong = gpu_machine.what_does_not_fit(gpu_machine.built_against(check.bundle), check.versions)
    if wrong:
        return EXIT_INFRASTRUCTURE, wrong
    check.look()
    if check.stopped:
        return EXIT_INTERRUPTED, [f"stopped by {check.stopped} before the first check"]
    nodes = gpu_machine.gpu_nodes(check.options.nodes)
    if not check.devices and nodes:
        return EXIT_INFRASTRUCTURE, [f"this machine has GPUs ({', '.join(nodes)}), but none can be used: {check.why_none}"]
    if not check.devices and not check.options.rehearse:
        return EXIT_NOTHING, [f"{check.why_none}: nothing to verify (--rehearse runs on the CPU what can be)"]
    return None


def run_unit(check, name, unit):
    """What an earlier call found stays, where nothing is started."""
    left_out = check.options.only is not None and name.split()[0] not in check.options.only.split(",")
    if left_out or check.left_s() < ENOUGH_S:
        if check.results.has_rows(name):
            return
        check.results.begin(name)
        if left_out:
            check.results.also_lacks(f"{name}: left out by --only")
        elif check.stopped:
            check.results.lacks(name, f"stopped by {check.stopped}")
        else:
            check.results.lacks(name, f"no time was left of {check.options.call_limit_s:.0f} s")
        check.results.finish()
        return
    check.results.begin(name)
    try:
        unit()
    except Exception:  # the other checks are worth having
        check.results.record(name, FAILED, 0.0, "the check itself failed")
        check.results.keep(f"{name}: failure of the check", traceback.format_exc())
    check.results.finish()


def run(check, units, names):
    for name in names:
        run_unit(check, name, units[name])
        check.results.store()
        write_report(check.options.report, check.results.text(check.machine(), check.device(), check.bundle))


def main():
    options = arguments()
    with open(options.bundle + "/COMMIT", encoding="utf-8") as file:
        commit = file.read().strip()
    results = Results(options.results, [], commit)
    try:
        check = Check(options, results)
    except gpu_machine.NoTorch as error:
        print(f"gpu_check: {error}", file=sys.stderr)
        return EXIT_INFRASTRUCTURE
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, check.stop)
    part, parts = options.part
    units = units_of(check, int(options.shard.partition("/")[2]) if options.shard else max(1, parts - 2))
    results.units = list(units)
    refused = refuse_to_start(check)
    if refused is not None:
        status, lines = refused
        print("\n".join("gpu_check: " + line for line in lines), file=sys.stderr)
        return status
    results.keep_of(check.device())
    run(check, units, part_of(list(units), part, parts, options.shard))
    for line in results.not_verified():
        print(f"NOT VERIFIED: {line}")
    passed, failed, verified = results.count(PASSED, PARTLY), results.count(FAILED), results.verified
    print(f"{passed} passed ({results.count(PARTLY)} in part), {failed} failed, {results.count(ABSENT)} not verified; report: {options.report}")
    if not verified:
        print("gpu_check: this call verified nothing on a GPU" + (": there is none" if not check.devices else ""))
    if check.stopped:
        print(f"gpu_check: stopped by {check.stopped}")
    return EXIT_FAILED if failed else EXIT_INTERRUPTED if check.stopped else EXIT_PASSED if verified else EXIT_NOTHING


if __name__ == "__main__":
    sys.exit(main())
