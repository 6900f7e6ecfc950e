"""ci/gpu_check.py with a bundle of scripts that act as its programs: what it does with every kind of machine.

    gpu_check_test.py FOLDER_OF_GPU_CHECK
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

FOLDER = os.path.abspath(sys.argv.pop(1))
sys.path.insert(0, FOLDER)
import gpu_check  # noqa: E402
import gpu_machine  # noqa: E402
import gpu_report  # noqa: E402
OWN = "/machine/driver"

# Every program notes how it was called.
NOTE = '#!/bin/sh\necho "$(basename "$0") $*" >> "$CALLS"\n'
TRAINER = NOTE + f"""case "$LD_LIBRARY_PATH" in *:{OWN}) ;; *) echo no driver; exit 1 ;; esac
echo '{{"devices": [{{"kind": "cpu", "name": "cpu"}}'"$DEVICES"']}}'
"""
GTEST = NOTE + """[ "$KERNELS" = fail ] && echo '[  FAILED  ] Sums.Small/cuda (2 ms)' && exit 1
[ "$KERNELS" = slow ] && exec sleep 600
if [ "$KERNELS" = deaf ]; then trap "" INT; sleep 600 & echo $! > "$CALLS.ready"; wait; fi
[ "$KERNELS" = skip ] || echo '[       OK ] Sums.Small/cuda (2 ms)'
[ -n "$KERNELS" ] && echo '[  SKIPPED ] Sums.Huge/cuda (0 ms)'
exit 0
"""
HARNESS = f"""#!{sys.executable}
import json, os, signal, sys, time
with open(os.environ["CALLS"], "a") as calls:
    print("trainwreck", *sys.argv[1:], file=calls)
def wait_for_signal(act):
    signal.signal(signal.SIGINT, act)
    with open(os.environ["CALLS"] + ".ready", "w") as file:
        print(os.getpid(), file=file)
    time.sleep(600)
if sys.argv[1] == "doctor" and os.environ.get("SUITE") == "hangs":
    wait_for_signal(lambda *_: sys.exit(130))
if sys.argv[1] == "doctor":
    sys.exit(print("ok    train by fork two steps"))
folder = sys.argv[sys.argv.index("--output") + 1]
os.makedirs(folder)
def verdict(case, kind="pass", devices=(), reason="", expected_limit=False):
    return {{"case": case, "verdict": kind, "devices": list(devices), "reason": reason, "expected_limit": expected_limit}}
suite = os.environ.get("SUITE")
device = next((word[7:] for word in sys.argv if word.startswith("device=")), "")
verdicts = [verdict("negative/skip", expected_limit=True)]
if suite not in ("none", "stuck"):
    verdicts.append(verdict("nan/a", devices=[device]))
if suite == "few":
    verdicts = [verdict("nan/c", "inconclusive", [device], "too few seeds")]
if suite == "fail":
    verdicts = [verdict("nan/a", "fail", [device])]
if suite in ("skip", "none"):
    verdicts.append(verdict("nan/b", "skip", reason="requires two GPUs"))
def report(*_):
    counts = {{kind: sum(v["verdict"] == kind for v in verdicts) for kind in ("pass", "fail", "skip", "inconclusive")}}
    with open(folder + "/verdicts.json", "w") as file:
        json.dump({{"counts": counts, "verdicts": verdicts}}, file)
    if _:
        print("trainwreck: 7 cases were cut off without a verdict (interrupted)")
    sys.exit(130 if _ else {{"few": 5, "fail": 1}}.get(suite, 0))
if suite == "killed":
    wait_for_signal(lambda *_: sys.exit(130))
if suite in ("slow", "stuck"):
    wait_for_signal(report)
report()
"""
PROGRAMS = {"trainwreck-trainer-cuda": TRAINER, "trainwreck-trainer": NOTE, "trainwreck": HARNESS, "communicator_nccl_check": GTEST,
            "kernels_cuda_test": GTEST, "kernels_cuda_large_test": GTEST, "kernels_cuda_benchmark": NOTE, "torch_benchmark": NOTE}
GPU = ', {"kind": "cuda", "name": "Fake"}'


class GpuCheck(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        self.bundle = self.folder + "/bundle"
        for folder in ("bin", "lib", "scenarios"):
            os.makedirs(f"{self.bundle}/{folder}")
        for name in ("gpu_check.sh", "gpu_check.py", "gpu_machine.py", "gpu_report.py"):
            shutil.copy(os.path.join(FOLDER, name), self.bundle)
        for name, text in PROGRAMS.items():
            with open(f"{self.bundle}/bin/{name}", "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(f"{self.bundle}/bin/{name}", 0o755)
        self.write("bundle/COMMIT", "abc\n")
        self.write("torch/include/torch/headeronly/version.h", "#define TORCH_VERSION_MAJOR 2\n#define TORCH_VERSION_MINOR 11\n"
                   "#define TORCH_VERSION_PATCH 0\n")
        self.write("torch/lib/libtorch.so", "")
        self.write("node", "")
        self.write("tools/compute-sanitizer", NOTE + 'exec "$5"\n')  # after --tool KIND --error-exitcode 9
        os.chmod(self.folder + "/tools/compute-sanitizer", 0o755)
        self.environment = {**os.environ, "TORCH_HOME": self.folder + "/torch", "CALLS": self.folder + "/calls", "DEVICES": GPU,
                            "LD_LIBRARY_PATH": OWN, "PATH": self.folder + "/tools:" + os.environ["PATH"]}

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, name):
        try:
            with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def start(self, *arguments, nodes="node", **environment):
        return subprocess.Popen([self.bundle + "/gpu_check.sh", *arguments, "--nodes", f"{self.folder}/{nodes}"], cwd=self.folder,
                                env={**self.environment, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def end(self, process, status):
        said = process.communicate()[0]
        self.assertEqual(process.returncode, status, said)
        return said

    def check(self, *arguments, status=0, **environment):
        return self.end(self.start(*arguments, **environment), status)

    def hurry(self):
        """Units are worth starting with three seconds left, and need two of them to end."""
        text = self.read("bundle/gpu_check.py")
        for name, slow, quick in (("WIND_UP_S", "25", "2"), ("ENOUGH_S", "WIND_UP_S + 10", "WIND_UP_S + 1")):
            self.assertIn(f"\n{name} = {slow} ", text)
            text = text.replace(f"\n{name} = {slow} ", f"\n{name} = {quick} ")
        self.write("bundle/gpu_check.py", text)

    def test_one_call_does_all(self):
        said = self.check()
        self.assertIn("NOT VERIFIED: NCCL between ranks: this machine has 1 GPUs", said)
        self.assertRegex(said, r"11 passed \(0 in part\), 0 failed, [01] not verified")  # 1: without a libnccl
        self.assertRegex(said, "NOT VERIFIED: faults of NCCL's calls: ")
        report = self.read("gpu.md")
        for line in ("| device | 1 x Fake |", "| LibTorch | 2.11.0 |", "| commit | abc |",
                     "| kernels against their oracles on a GPU | passed |", "| scenario suite with device=cuda | passed |"):
            self.assertIn(line, report)
        self.assertNotIn("on the CPU", report)
        for line in self.read("calls").splitlines():  # what it was called in keeps its own history
            if line.startswith("trainwreck run"):
                self.assertIn(" --history none ", line)

    def test_a_gpu_that_cannot_be_used_is_an_error_and_nothing_runs(self):
        said = self.check(status=7, DEVICES="")
        self.assertIn("this machine has GPUs (", said)
        self.assertEqual(self.read("calls"), "trainwreck-trainer-cuda --describe\n")
        self.assertIn("no driver", self.check(status=7, LD_LIBRARY_PATH=""))
        self.check("--rehearse", status=7, DEVICES="")  # not on the CPU, either

    def test_without_a_gpu_nothing_is_verified(self):
        self.assertIn("nothing to verify", self.check(status=4, DEVICES="", nodes="none"))
        self.assertEqual(self.read("calls"), "trainwreck-trainer-cuda --describe\n")

    def test_a_rehearsal_verifies_nothing_and_says_so(self):
        said = self.check("--rehearse", status=4, DEVICES="", nodes="none")
        self.assertIn("verified nothing on a GPU: there is none", said)
        self.assertIn("NOT VERIFIED: the scenario suite on a GPU: it ran on the CPU", said)
        self.assertIn("the machine of this report has no GPU", self.read("gpu.md"))
        self.assertIn("| scenario suite with device=cpu | passed |", self.read("gpu.md"))
        self.assertNotIn("benchmark", self.read("calls"))
        self.check("--rehearse", status=1, DEVICES="", nodes="none", KERNELS="fail")
        said = self.check("--only", "doctor", status=4)  # what was rehearsed is no result of the GPU
        self.assertNotIn("device=cpu", self.read("gpu.md"))
        self.assertNotIn("there is none", said)

    def test_libraries_that_do_not_fit_stop_it_before_the_start(self):
        for name, version in (("LibTorch", "2.12.0"), ("glibc", "2.99"), ("libstdc++", "3.4.999")):
            self.write("bundle/BUILT.json", json.dumps({"LibTorch": "2.11.0", "NCCL": "", "glibc": "2.17", name: version}))
            self.assertIn(f"gpu_check: {name} ", self.check(status=7))
            self.assertEqual(self.read("calls"), "")
        self.write("bundle/BUILT.json", json.dumps({"LibTorch": "2.11.1", "NCCL": "", "glibc": "2.17"}))
        self.check()

    def test_what_fits(self):
        built = {"LibTorch": "2.11.0", "NCCL": "2.28.9", "glibc": "2.34"}
        fits = {"LibTorch": "2.11.0+cu130", "NCCL": "2.29.1", "glibc": "2.34"}
        self.assertEqual(gpu_machine.what_does_not_fit(built, fits), [])
        self.assertEqual(gpu_machine.what_does_not_fit(built, {}), [])  # not known: the first program says it
        for name, version in (("LibTorch", "2.10.0"), ("NCCL", "2.28.8"), ("glibc", "2.9")):
            self.assertEqual(len(gpu_machine.what_does_not_fit(built, {**fits, name: version})), 1, name)

    def test_parts_make_one_report(self):
        said = self.check("--part", "1/4", "-j", "3")
        self.assertEqual([line.split(" -t ")[1] for line in self.read("calls").splitlines() if " -t " in line],
                         ["gpu and not nondeterministic --set device=cuda --set deterministic=true -j 3",
                          "nondeterministic --set device=cuda -j 3"])
        self.assertIn("| scenarios about a GPU | passed |", self.read("gpu.md"))
        self.assertIn("NOT VERIFIED: suite 2/2: not run yet", said)
        for part in ("2/4", "3/4", "4/4"):
            self.assertNotIn("Traceback", self.check("--part", part, "-j", "3"))
        report, calls = self.read("gpu.md"), self.read("calls")
        self.assertNotIn("not run yet", report)
        for line in ("suite with device=cuda, shard 1/2 | passed", "shard 2/2 | passed", "benchmark of the kernels on the GPU | passed",
                     "training by fork and by exec | passed"):
            self.assertIn(line, report)
        self.assertEqual(calls.count(" run "), 4)
        self.assertEqual(calls.count(" -t not gpu and not nondeterministic "), 2)
        self.assertIn("--shard 2/2 --set deterministic=true -j 3\n", calls)
        self.write("bundle/COMMIT", "other\n")
        self.assertIn("suite 1/2: not run yet", self.check("--part", "1/4"))

    def test_a_shard_and_cores_are_passed_on(self):
        said = self.check("--shard", "2/5", "-j", "7")
        self.assertIn("NOT VERIFIED: suite 1/5: not run yet", said)
        self.assertEqual(self.read("calls").count(" -t not gpu and not nondeterministic "), 1)
        self.assertIn("--set device=cuda --shard 2/5 --set deterministic=true -j 7\n", self.read("calls"))
        self.check("--only", "suite", "--gpu-runs", "3", "--one-seed")
        self.assertIn("--set deterministic=true --gpu-runs 3 --each-seed 0:1\n", self.read("calls"))
        self.assertIn("is no part", self.check("--part", "1/2", status=2))
        for shard in ("0/2", "3/2", "half"):
            self.assertIn("is no shard", self.check("--shard", shard, status=2))

    def test_shards_make_one_report(self):
        self.check("--shard", "1/2", "--only", "suite")
        self.check("--shard", "2/2", "--only", "suite")
        for shard in ("1/2", "2/2"):
            self.assertIn(f"| scenario suite with device=cuda, shard {shard} | passed |", self.read("gpu.md"))

    def test_a_folder_that_is_no_bundle(self):
        os.remove(self.bundle + "/COMMIT")
        said = self.check(status=2)
        self.assertIn("/bundle is no bundle: make one with ci/gpu_bundle.sh", said)
        self.assertNotIn("Traceback", said)

    def test_a_part_and_a_shard_do_not_go_together(self):
        self.assertIn("--shard and --part do not go together", self.check("--part", "2/4", "--shard", "1/5", status=2))
        self.assertEqual(self.read("calls"), "")

    def test_scenarios_that_were_named_run_whatever_they_are_about(self):
        said = self.check("nan/a")
        self.assertIn("NOT VERIFIED: scenarios about a GPU: left out, as scenarios were named", said)
        self.assertRegex(self.read("calls"), r"run nan/a .* -t not nondeterministic ")

    def test_a_suite_that_is_cut_short_leaves_its_verdicts(self):
        self.hurry()
        said = self.check("--only", "suite", "--call-limit-s", "5", SUITE="slow")
        self.assertRegex(said, r"PARTLY .* cut short: 2 pass; 7 cases were cut off without a verdict; on cuda")
        self.assertRegex(self.read("gpu.md"), r"- scenario suite with device=cuda: cut short after \d+ s: 7 cases")

    def test_what_is_cut_short_before_anything_passed_is_not_verified(self):
        self.hurry()
        for why, variables in {"no verdict": {"SUITE": "killed"}, "cut short: 1 pass; 7": {"SUITE": "stuck"}}.items():
            said = self.check("--only", "suite", "--call-limit-s", "5", status=4, **variables)
            self.assertRegex(said, f"NOT VERIFIED .*{why}")
            self.assertIn("0 passed (0 in part), 0 failed, 1 not verified", said)
            self.assertIn("gpu_check: this call verified nothing on a GPU\n", said)
        said = self.check("--only", "kernels", "--call-limit-s", "5", status=4, KERNELS="slow")
        self.assertIn("0 passed (0 in part), 0 failed, 3 not verified", said)
        self.assertRegex(said, r"NOT VERIFIED: kernels against their oracles on a GPU: cut short after \d+ s: 0 passed")
        said = self.check("--only", "doctor", "--call-limit-s", "5", status=4, SUITE="hangs")
        self.assertIn("cut short: no end", said)  # and no failure

    def test_nothing_starts_that_cannot_end(self):
        self.check("--only", "suite")
        self.write("calls", "")
        self.check("--only", "suite", "--call-limit-s", "30", status=4, SUITE="slow")
        self.assertEqual(self.read("calls"), "trainwreck-trainer-cuda --describe\n")
        self.assertIn("| scenario suite with device=cuda | passed |", self.read("gpu.md"))
        self.assertIn("no time was left of 30 s", self.check("--only", "kernels", "--call-limit-s", "30", status=4))

    def test_what_is_cut_short_does_not_replace_what_has_ended(self):
        self.hurry()
        self.check("--only", "suite,kernels")
        said = self.check("--only", "suite", "--call-limit-s", "5", SUITE="slow")  # it did verify something
        self.assertIn("suite: an earlier call found more, and that stands", said)
        said = self.check("--only", "kernels", "--call-limit-s", "5", status=4, KERNELS="slow")
        self.assertIn("kernels: an earlier call found more, and that stands", said)
        for what in ("scenario suite with device=cuda", "kernels against their oracles on a GPU", "kernels over 2^31 elements on a GPU"):
            self.assertIn(f"| {what} | passed |", self.read("gpu.md"))
        self.assertNotIn("cut short", self.read("gpu.md"))
        self.check("--only", "suite", status=4, SUITE="none")  # it settled nothing
        self.assertIn("| scenario suite with device=cuda | passed |", self.read("gpu.md"))
        self.check("--only", "suite", status=1, SUITE="fail")
        self.assertIn("| scenario suite with device=cuda | FAILED |", self.read("gpu.md"))

    def test_which_of_two_results_stands(self):
        def unit(status, settled=None):
            return {"rows": [["a", status, 1, "", True]], "settled": settled}
        whole, failed, absent = unit("passed"), unit("FAILED"), unit("NOT VERIFIED")
        for new, old, stands in ((whole, None, True), (absent, None, True), (absent, absent, True), (absent, whole, False),
                                 (absent, failed, False), (whole, failed, True), (failed, whole, True), (unit("PARTLY", 9), whole, False),
                                 (unit("PARTLY", 3), unit("PARTLY", 4), False), (unit("PARTLY", 4), unit("PARTLY", 4), True),
                                 (unit("PARTLY", 9), failed, False), (unit("PARTLY", 9), unit("FAILED", 1), False),
                                 (unit("FAILED", 1), whole, True), (whole, unit("PARTLY", 9), True)):
            self.assertEqual(gpu_report.may_take_place(new, old), stands, (new, old))

    # Signals from outside.

    def stop(self, process, number):
        """Sends a signal once the program that acts on it is there, and returns the process id of that."""
        for _ in range(600):
            if self.read("calls.ready").endswith("\n"):
                process.send_signal(number)
                return int(self.read("calls.ready"))
            self.assertIsNone(process.poll())
            time.sleep(0.05)
        self.fail("it did not start")

    def assert_ended(self, pid):
        with self.assertRaises(ProcessLookupError):
            for _ in range(100):  # until init, or who takes its place, has seen its end
                os.kill(pid, 0)
                time.sleep(0.05)

    def test_a_signal_winds_up_and_keeps_the_verdicts(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            process = self.start("--only", "suite,sanitizer", SUITE="slow")
            self.assert_ended(self.stop(process, number))
            said = self.end(process, 130)
            self.assertIn(f"gpu_check: stopped by {number.name}\n", said)
            self.assertIn("| scenario suite with device=cuda | PARTLY |", self.read("gpu.md"))
            self.assertIn(f"NOT VERIFIED: sanitizer: stopped by {number.name}\n", said)
            for name in ("calls.ready", "gpu.json"):
                os.remove(f"{self.folder}/{name}")
        self.assertNotIn("compute-sanitizer", self.read("calls"))

    def test_a_second_signal_kills(self):
        process = self.start("--only", "kernels", KERNELS="deaf")
        begin = time.monotonic()
        child = self.stop(process, signal.SIGTERM)
        time.sleep(1)
        process.terminate()
        self.assertIn("0 passed", self.end(process, 130))
        self.assertLess(time.monotonic() - begin, 15)  # not the 25 s
        self.assert_ended(child)

    def test_without_torch_nothing_could_be_verified(self):
        self.write("bare", f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')  # no site-packages
        os.chmod(self.folder + "/bare", 0o755)
        for python in ("bare", "missing"):
            said = self.check("--python", f"{self.folder}/{python}", status=7)
            self.assertEqual(said, "gpu_check: no torch: set TORCH_HOME, or name a Python that has it with --python\n")
        self.assertEqual(self.read("calls"), "")

    def test_a_suite_in_which_nothing_ran_is_not_verified(self):
        said = self.check("--only", "suite", status=4, SUITE="none")
        self.assertRegex(said, r"NOT VERIFIED +[\d.]+ s  scenario suite with device=cuda: 1 pass, 1 skip")
        said = self.check("--only", "suite", status=4, SUITE="few")
        self.assertIn("NOT VERIFIED: scenario suite with device=cuda: nan/c: too few seeds", said)

    def test_each_call_says_whether_it_verified_anything(self):
        self.check("--part", "1/3")
        self.assertIn("this call verified nothing", self.check("--part", "2/3", status=4, SUITE="none"))
        self.check("--part", "1/3", status=1, KERNELS="fail")
        self.check("--part", "2/3", status=1)  # what failed before stands in the report

    def test_what_is_left_out_keeps_what_an_earlier_call_found(self):
        self.check("--only", "kernels")
        said = self.check("--only", "suite")
        self.assertIn("NOT VERIFIED: nccl: left out by --only", said)
        self.assertIn("3 passed (0 in part), 0 failed", said)
        self.assertIn("| kernels against their oracles on a GPU | passed |", self.read("gpu.md"))
        self.assertIn("kernels against their oracles on a GPU | passed", self.check("--call-limit-s", "1", status=4) + self.read("gpu.md"))

    def test_what_was_skipped_is_not_passed(self):
        said = self.check("--only", "kernels,suite", KERNELS="some", SUITE="skip")
        self.assertIn("PARTLY", said)
        self.assertIn("NOT VERIFIED: kernels against their oracles on a GPU: Sums.Huge/cuda: skipped", said)
        self.assertIn("NOT VERIFIED: scenario suite with device=cuda: nan/b: requires two GPUs", said)
        self.assertNotIn("| passed |", self.read("gpu.md"))

    def test_what_lacks_the_same_is_one_line_of_the_report(self):
        self.assertEqual(
            gpu_report.grouped(["suite: nan/b: no device:cuda:2", "suite: cut short after 9 s: 7 cases", "suite: nan/c: no device:cuda:2",
                                "suite: nan/d: no adapter", "NCCL between ranks: this machine has 1 GPUs"]),
            ["suite: no device:cuda:2 (2): nan/b, nan/c", "suite: cut short after 9 s: 7 cases", "suite: nan/d: no adapter",
             "NCCL between ranks: this machine has 1 GPUs"])

    def test_nothing_verified_is_no_success(self):
        said = self.check("--only", "doctor,kernels", status=4, KERNELS="skip")
        self.assertIn("1 passed (0 in part), 0 failed", said)

    def test_a_report_that_somebody_wrote_in_is_not_replaced(self):
        for _ in range(2):
            self.check("--only", "kernels")  # its own is
        written = self.read("gpu.md")
        for text in (written + "\n## By hand\n", written.replace("passed", "PASSED"), "# By hand\n"):
            self.write("gpu.md", text)
            self.write("calls", "")
            self.assertIn("name another --report", self.check("--only", "kernels", status=2))
            self.assertEqual((self.read("gpu.md"), self.read("calls")), (text, ""))

    def options(self, *arguments):
        with mock.patch.object(sys, "argv", ["gpu_check.py", "--bundle", self.bundle, *arguments]):
            return gpu_check.arguments()

    def test_a_part_has_nine_minutes(self):
        self.assertEqual(self.options("--part", "2/4").call_limit_s, 540)
        self.assertEqual(self.options().call_limit_s, 3600)
        self.assertEqual(self.options("--part", "2/4", "--call-limit-s", "60").call_limit_s, 60)

    def test_a_program_that_does_not_hear_the_interrupt_is_killed_within_the_limit(self):
        self.write("deaf.sh", 'trap "" INT\nsleep 600 &\necho $! > "$1"\nwait\n')
        results = gpu_report.Results(None, [], "abc")
        with mock.patch.dict(os.environ, self.environment), mock.patch.object(gpu_check, "WIND_UP_S", 30):
            check = gpu_check.Check(argparse.Namespace(bundle=self.bundle, call_limit_s=2.5, python=None), results)
            begin = time.monotonic()
            code, _, _ = check.call(["sh", self.folder + "/deaf.sh", self.folder + "/child"])
            self.assertEqual(code, 124)
            self.assertLess(time.monotonic() - begin, 10)  # not the 30 s
            self.assert_ended(int(self.read("child")))
            time.sleep(max(0, check.left_s()))
            self.assertEqual(check.call(["touch", self.folder + "/late"]), (124, "", 0.0))
            self.assertFalse(os.path.exists(self.folder + "/late"))

    def nccl_faults(self, gpus, python="python3", nccl="2.28.9", part="1/1"):
        """What it found, and how the harness was called: (target, scenarios)."""
        self.write("calls", "")
        os.makedirs(self.bundle + "/nccl", exist_ok=True)
        self.write("bundle/scenarios/portable/nccl-drop.yaml", "")
        results = gpu_report.Results(None, ["nccl-faults"], "abc")
        results.keep_of("cuda" if gpus else "cpu")
        with mock.patch.dict(os.environ, self.environment):
            check = gpu_check.Check(self.options("--part", part), results)
            check.python, check.versions = python, {"NCCL": nccl}
            check.devices, check.why_none = [{"kind": "cuda"}] * gpus, "no GPU"
            results.begin("nccl-faults")
            check.nccl_faults()
            results.finish()
        calls = [line.split() for line in self.read("calls").splitlines()]
        return results, [(call[call.index("--target") + 1], [os.path.basename(path) for path in call[2:call.index("--scenarios-root")]])
                         for call in calls]

    def test_the_trainers_group_is_broken_where_there_is_a_shared_nccl(self):
        self.write("bundle/bin/communicator_nccl_check", '#!/bin/sh\necho "$GPU_CHECK_NCCL_SHIM" > "$CALLS"\n')
        for nccl, shim in (("2.28.9", self.bundle + "/lib/trainwreck/libtrainwreck_nccl.so"), ("", "")):
            results = gpu_report.Results(None, ["nccl"], "abc")
            results.keep_of("cuda")
            with mock.patch.dict(os.environ, self.environment):
                check = gpu_check.Check(self.options(), results)
                check.versions, check.devices = {"NCCL": nccl}, [{"kind": "cuda"}]
                results.begin("nccl")
                check.nccl()
            self.assertEqual(self.read("calls"), shim + "\n")

    def test_faults_of_nccl_with_two_gpus(self):
        results, calls = self.nccl_faults(2)
        self.assertEqual(calls, [("trainer", ["nccl-drop.yaml"]), ("python", ["nccl-drop.yaml"]), ("python", ["one-rank"])])
        self.assertEqual(([row[1] for row in results.all("rows")], results.verified), (["passed"] * 3, 3))
        self.assertEqual(results.not_verified(), [])
        self.assertNotIn("--each-seed", self.read("calls"))
        self.nccl_faults(2, part="1/4")
        self.assertEqual(self.read("calls").count("-j 4 --each-seed 0:1\n"), 3)

    def test_faults_of_nccl_with_one_gpu(self):
        results, calls = self.nccl_faults(1)
        self.assertEqual(calls, [("python", ["one-rank"])])
        self.assertEqual(results.not_verified(), ["faults of NCCL's calls: portable/nccl-*, of two ranks: this machine has 1 GPU"])

    def test_faults_of_nccl_that_cannot_be_made(self):
        for lacks, arguments in {"no GPU": {"gpus": 0}, "no shared libnccl.so.2, whose calls could be broken": {"gpus": 2, "nccl": ""}}.items():
            results, calls = self.nccl_faults(**arguments)
            self.assertEqual((results.not_verified(), calls), ([f"faults of NCCL's calls: {lacks}"], []))
            self.assertEqual((results.verified, results.all("rows")[0][1]), (0, "NOT VERIFIED"))
        results, calls = self.nccl_faults(2, python="")
        self.assertEqual([target for target, _ in calls], ["trainer"])
        self.assertIn("PyTorch's calls: name a Python", results.not_verified()[0])
        results, calls = self.nccl_faults(1, python="")
        self.assertEqual((len(results.not_verified()), calls, results.verified), (2, [], 0))

    def test_a_python_with_torch(self):
        for home, named, found in ((self.folder, None, ""), (self.folder, "./python", "./python"), ("", None, "python3")):
            with mock.patch.dict(os.environ, TORCH_HOME=home):
                self.assertEqual(gpu_machine.python_with_torch(named), found)

    def test_a_failure_is_one(self):
        self.assertIn("FAILED", self.check("--only", "kernels", status=1, KERNELS="fail"))
        self.assertIn("Sums.Small/cuda", self.read("gpu.md"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
