#!/usr/bin/env python3
"""Runs every check that needs a GPU, on the GPU where there is one, else on the CPU; writes one report. See gpu_check.sh."""
import argparse
import datetime
import glob
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
PASSED, FAILED, ABSENT = "passed", "FAILED", "NOT VERIFIED"


def find_torch(python):
    """The folder of LibTorch's libraries, and those of the libraries that they need."""
    if python is None and os.environ.get("TORCH_HOME"):
        home = os.environ["TORCH_HOME"]
        return home + "/lib", glob.glob("/usr/local/cuda/lib64")
    code = "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    result = subprocess.run([python or "python3", "-c", code], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit("gpu_check: no torch: set TORCH_HOME, or name a Python that has it with --python")
    torch = result.stdout.strip()
    return torch + "/lib", glob.glob(torch + "/../nvidia/*/lib") + glob.glob("/usr/local/cuda/lib64")


class Check:
    def __init__(self, options):
        self.bundle = os.path.abspath(options.bundle)
        self.limit_s = options.limit_s
        torch, others = find_torch(options.python)
        self.torch = torch
        self.environment = {**os.environ, "OMP_NUM_THREADS": "1",
                            "LD_LIBRARY_PATH": ":".join([self.bundle + "/lib", torch, *others])}
        self.rows, self.sections, self.not_verified = [], [], []

    def program(self, name):
        return f"{self.bundle}/bin/{name}"

    def call(self, command, limit_s=None, environment=None):
        """Exit code (124: too long), output and seconds."""
        began = time.monotonic()
        try:
            result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                    errors="replace", stdin=subprocess.DEVNULL, timeout=limit_s or self.limit_s,
                                    env={**self.environment, **(environment or {})})
            code, output = result.returncode, result.stdout
        except subprocess.TimeoutExpired as error:
            code, output = 124, (error.stdout or b"").decode(errors="replace")
        except OSError as error:
            code, output = 127, str(error)
        return code, output, time.monotonic() - began

    def record(self, what, status, seconds, words):
        print(f"{status:12s} {seconds:7.1f} s  {what}: {words}", flush=True)
        self.rows.append((what, status, seconds, words))

    def lacks(self, what, why):
        self.not_verified.append(f"{what}: {why}")
        self.record(what, ABSENT, 0.0, why)

    def keep(self, title, text, lines=200):
        kept = text.rstrip().splitlines()
        if len(kept) > lines:
            kept = kept[:lines // 2] + [f"... {len(kept) - lines} lines ..."] + kept[-lines // 2:]
        self.sections.append((title, "\n".join(kept)))

    # What there is.

    def look(self):
        code, output, _ = self.call(["sh", "-c", '"$0" --describe 2>/dev/null || "$0" --describe',
                                     self.program("trainwreck-trainer-cuda")])
        self.cuda_starts = code == 0
        self.devices = []
        if self.cuda_starts:
            self.devices = [d for d in json.loads(output)["devices"] if d["kind"] == "cuda"]
        else:
            self.lacks("start of the trainer with GPUs", output.strip().splitlines()[-1][:200] if output else str(code))
        self.target = self.program("trainwreck-trainer-cuda" if self.cuda_starts else "trainwreck-trainer")
        self.device = "cuda" if self.devices else "cpu"

    # gtest programs.

    def gtest(self, what, command, needs_gpu, environment=None, limit_s=None):
        code, output, seconds = self.call(command, limit_s, environment)
        passed = output.count("[       OK ]")
        skipped = len(re.findall(r"^\[  SKIPPED \] \S+ \(\d+ ms\)", output, re.MULTILINE))
        failed = len(re.findall(r"^\[  FAILED  \] \S+(?:, where .*)? \(\d+ ms\)", output, re.MULTILINE))
        words = f"{passed} passed, {failed} failed, {skipped} skipped"
        if code != 0 or passed + failed + skipped == 0:  # a filter that matches nothing exits with 0
            self.record(what, FAILED, seconds, f"exit {code}, {words}")
            self.keep(f"{what}: output", output)
        elif needs_gpu and passed == 0:
            self.lacks(what, f"{words}; no GPU")
        else:
            self.record(what, PASSED, seconds, words)

    def kernels(self):
        program = self.program("kernels_cuda_test")
        gpu = "*/cuda:Cuda*"
        self.gtest("kernels against their oracles on the CPU", [program, f"--gtest_filter=-{gpu}"], needs_gpu=False)
        self.gtest("kernels against their oracles on a GPU", [program, f"--gtest_filter={gpu}"], needs_gpu=True)
        self.gtest("kernels over 2^31 elements on a GPU",
                   [self.program("kernels_cuda_large_test"), "--gtest_filter=*_cuda"], needs_gpu=True)

    def sanitizer(self):
        tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
        for kind in ("memcheck", "racecheck"):
            what = f"compute-sanitizer {kind} on the kernels"
            if not self.devices or not os.path.exists(tool):
                self.lacks(what, "no GPU" if not self.devices else "no compute-sanitizer")
                continue
            command = [tool, "--tool", kind, "--error-exitcode", "9", self.program("kernels_cuda_test"),
                       "--gtest_filter=*/cuda:Cuda*:-*uge*:*arge*"]
            self.gtest(what, command, needs_gpu=True)

    def benchmark(self, what, command):
        code, output, seconds = self.call(command)
        skipped = re.search(r"^SKIPPED.*$", output, re.MULTILINE)
        if code == 0 and skipped:
            self.lacks(what, skipped[0])
            return
        self.record(what, PASSED if code == 0 else FAILED, seconds, f"exit {code}")
        self.keep(what[0].upper() + what[1:], output, lines=400)

    def benchmarks(self):
        self.benchmark("benchmark of the kernels on the CPU", [self.program("kernels_benchmark")])
        self.benchmark("benchmark of the kernels against LibTorch on the CPU", [self.program("torch_benchmark")])
        self.benchmark("benchmark of the kernels on the GPU", [self.program("kernels_cuda_benchmark")])
        self.benchmark("benchmark of the kernels against LibTorch on the GPU",
                       [self.program("torch_benchmark"), "--device=cuda"])

    # The suite and the ranks.

    def run_scenarios(self, what, paths, arguments, title):
        with tempfile.TemporaryDirectory() as folder:
            code, output, seconds = self.call(
                [self.program("trainwreck"), "run", *paths, "--scenarios-root", self.bundle + "/scenarios",
                 "--target", self.target, "--output", folder + "/run", *arguments],
                environment={"TRAINWRECK_CACHE": folder})
            counts, devices, skipped = {}, set(), {}
            if os.path.exists(folder + "/run/verdicts.json"):
                with open(folder + "/run/verdicts.json", encoding="utf-8") as file:
                    report = json.load(file)
                counts = {name: n for name, n in report["counts"].items() if n}
                devices = {device for verdict in report["verdicts"] for device in verdict["devices"]}
                skipped = {verdict["case"]: verdict["reason"] for verdict in report["verdicts"]
                           if verdict["verdict"] == "skip" and not verdict["expected_limit"]}
        words = ", ".join(f"{n} {name}" for name, n in counts.items()) or f"exit {code}"
        self.not_verified += [f"{what}: {case}: {reason}" for case, reason in skipped.items()]
        status = PASSED if code == 0 else FAILED
        self.record(what, status, seconds, f"{words}; on {', '.join(sorted(devices)) or 'nothing'}")
        self.keep(title, output, lines=400)

    def suite(self, paths):
        arguments = ["--set", f"device={self.device}"]
        if self.device == "cuda":
            arguments += ["--set", "deterministic=true"]
        self.run_scenarios(f"scenario suite with device={self.device}", paths, arguments,
                           f"The scenario suite with device={self.device}")
        if self.device != "cuda":
            self.not_verified.append("the scenario suite on a GPU: it ran on the CPU")

    def doctor(self):
        with tempfile.TemporaryDirectory() as folder:
            code, output, seconds = self.call([self.program("trainwreck"), "doctor", "--target", self.target],
                                              environment={"TRAINWRECK_CACHE": folder})
        forked = "ok    train by fork" in output
        self.record("training by fork and by exec", PASSED if code == 0 and forked else FAILED, seconds,
                    "trainwreck doctor")
        self.keep("trainwreck doctor", output)

    def nccl(self):
        what = "NCCL communicator at every world size, generators, memory"
        if not self.cuda_starts:
            self.lacks(what, "the trainer with GPUs does not start here")
            return
        self.gtest(what, [self.program("communicator_nccl_check")], needs_gpu=True)
        for ranks in range(2, len(self.devices) + 1):
            self.run_scenarios(f"training on {ranks} GPUs", [f"{self.bundle}/scenarios/nan/lr-too-high.yaml"],
                               ["--seeds", "1", "--set", "device=cuda", "--set", f"parallel.ranks={ranks}"],
                               f"Training on {ranks} GPUs")
        if len(self.devices) < 2:
            self.not_verified.append(f"NCCL between ranks: this machine has {len(self.devices)} GPUs")

    # The report.

    def machine(self):
        names = sorted({d["name"] for d in self.devices})
        lines = [("device", f"{len(self.devices)} x {', '.join(names)}" if self.devices else "none: CPU only"),
                 ("processor", cpu_name()), ("cores", str(len(os.sched_getaffinity(0)))),
                 ("system", platform.platform()), ("LibTorch", version_of(self.torch))]
        if self.devices and shutil.which("nvidia-smi"):
            _, driver, _ = self.call(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"])
            lines.append(("driver", driver.strip().partition("\n")[0]))
        with open(self.bundle + "/COMMIT", encoding="utf-8") as file:
            lines.append(("commit", file.read().strip()))
        return lines + [("date", datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"))]

    def report(self):
        text = ["# What was checked on a GPU", "", "Written by `ci/gpu_check.sh` from a bundle of `ci/gpu_bundle.sh`.", ""]
        if not self.devices:
            text += ["**Nothing yet: the machine of this report has no GPU.** The code for GPUs compiles, links and was",
                     "run on the CPU as far as possible. The list below says what nobody has verified.", ""]
        text += ["| | |", "|---|---|"] + [f"| {key} | {value} |" for key, value in self.machine()] + [""]
        text += ["| check | result | seconds | |", "|---|---|---|---|"]
        text += [f"| {what} | {status} | {seconds:.1f} | {words.replace('|', '/')} |"
                 for what, status, seconds, words in self.rows] + [""]
        if self.not_verified:
            text += ["## Not verified"] + [
                textwrap.fill(f"- {line}", width=100, subsequent_indent="  ", break_on_hyphens=False)
                for line in dict.fromkeys(self.not_verified)] + [""]
        for title, output in self.sections:
            text += [f"## {title}", "```", output.replace("```", "'''").replace(self.bundle, "."), "```", ""]
        return "\n".join(text)


def cpu_name():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        found = re.search(r"^model name\s*: (.+)$", file.read(), re.MULTILINE)
    return found[1] if found else platform.machine()


def version_of(torch):
    """Of a Python package, else of the headers."""
    files = {torch + "/../version.py": r"__version__ = '([^']+)",
             torch + "/../include/torch/headeronly/version.h": r"define TORCH_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)"}
    for path, pattern in files.items():
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                return ".".join(re.findall(pattern, file.read()))
    return "unknown"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bundle", default=HERE)
    parser.add_argument("--report", default="gpu.md")
    parser.add_argument("--python")
    parser.add_argument("--limit-s", type=float, default=1200, help="of one check")
    parser.add_argument("--only", help="comma-separated: doctor,kernels,benchmarks,sanitizer,nccl,suite")
    parser.add_argument("scenarios", nargs="*", help="default: all of the bundle")
    options = parser.parse_args()
    check = Check(options)
    check.look()
    steps = {"doctor": check.doctor, "kernels": check.kernels, "nccl": check.nccl, "sanitizer": check.sanitizer,
             "suite": lambda: check.suite(options.scenarios or [check.bundle + "/scenarios"]),
             "benchmarks": check.benchmarks}
    for name, step in steps.items():
        if options.only is not None and name not in options.only.split(","):
            check.not_verified.append(f"{name}: left out by --only")
            continue
        try:
            step()
        except Exception:  # the other checks are worth having
            check.record(name, FAILED, 0.0, "the check itself failed")
            check.keep(f"{name}: failure of the check", traceback.format_exc())
        with open(options.report, "w", encoding="utf-8") as file:
            file.write(check.report())
    for line in dict.fromkeys(check.not_verified):
        print(f"NOT VERIFIED: {line}")
    count = {kind: sum(status == kind for _, status, _, _ in check.rows) for kind in (PASSED, FAILED, ABSENT)}
    failed = count[FAILED]
    print(f"{count[PASSED]} passed, {failed} failed, {count[ABSENT]} not verified; report: {options.report}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
