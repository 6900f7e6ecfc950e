"""ci/gpu_check.py with a bundle of scripts that act as its programs: what it does with every kind of machine.

    gpu_check_test.py FOLDER_OF_GPU_CHECK
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

FOLDER = os.path.abspath(sys.argv.pop(1))
sys.path.insert(0, FOLDER)
import gpu_machine  # noqa: E402
import gpu_report  # noqa: E402
OWN = "/machine/driver"

# Every program notes how it was called.
NOTE = '#!/bin/sh\necho "$(basename "$0") $*" >> "$CALLS"\n'
TRAINER = NOTE + f"""case "$LD_LIBRARY_PATH" in *:{OWN}) ;; *) echo no driver; exit 1 ;; esac
echo '{{"devices": [{{"kind": "cpu", "name": "cpu"}}'"$DEVICES"']}}'
"""
GTEST = NOTE + """[ "$KERNELS" = fail ] && echo '[  FAILED  ] Sums.Small/cuda (2 ms)' && exit 1
[ "$KERNELS" = skip ] || echo '[       OK ] Sums.Small/cuda (2 ms)'
[ -n "$KERNELS" ] && echo '[  SKIPPED ] Sums.Huge/cuda (0 ms)'
exit 0
"""
HARNESS = f"""#!{sys.executable}
import json, os, signal, sys, time
with open(os.environ["CALLS"], "a") as calls:
    print("trainwreck", *sys.argv[1:], file=calls)
if sys.argv[1] == "doctor":
    sys.exit(print("ok    train by fork two steps"))
folder = sys.argv[sys.argv.index("--output") + 1]
os.makedirs(folder)
verdicts = [{{"case": "nan/a", "verdict": "pass", "devices": ["cuda"], "reason": "", "expected_limit": False}}]
if os.environ.get("SUITE") == "skip":
    verdicts.append({{"case": "nan/b", "verdict": "skip", "devices": [], "reason": "requires two GPUs", "expected_limit": False}})
def report(*_):
    counts = {{kind: sum(v["verdict"] == kind for v in verdicts) for kind in ("pass", "fail", "skip")}}
    with open(folder + "/verdicts.json", "w") as file:
        json.dump({{"counts": counts, "verdicts": verdicts}}, file)
    if _:
        print("trainwreck: 7 cases were cut off without a verdict (interrupted)")
    sys.exit(130 if _ else 0)
if os.environ.get("SUITE") == "slow":
    signal.signal(signal.SIGINT, report)
    time.sleep(600)
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

    def check(self, *arguments, status=0, nodes="node", **environment):
        done = subprocess.run([self.bundle + "/gpu_check.sh", *arguments, "--nodes", f"{self.folder}/{nodes}"], cwd=self.folder,
                              env={**self.environment, **environment}, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_one_call_does_all(self):
        said = self.check()
        self.assertIn("NOT VERIFIED: NCCL between ranks: this machine has 1 GPUs", said)
        self.assertIn("10 passed (0 in part), 0 failed, 0 not verified", said)
        report = self.read("gpu.md")
        for line in ("| device | 1 x Fake |", "| LibTorch | 2.11.0 |", "| commit | abc |",
                     "| kernels against their oracles on a GPU | passed |", "| scenario suite with device=cuda | passed |"):
            self.assertIn(line, report)
        self.assertNotIn("on the CPU", report)

    def test_a_gpu_that_cannot_be_used_is_an_error_and_nothing_runs(self):
        said = self.check(status=7, DEVICES="")
        self.assertIn("this machine has GPUs (", said)
        self.assertEqual(self.read("calls"), "trainwreck-trainer-cuda --describe\n")
        self.assertIn("no driver", self.check(status=7, LD_LIBRARY_PATH=""))
        self.check("--rehearse", status=7, DEVICES="")  # not on the CPU, either

    def test_without_a_gpu_nothing_is_verified(self):
        self.assertIn("nothing to verify", self.check(status=4, DEVICES="", nodes="none"))
        self.assertEqual(self.read("calls"), "trainwreck-trainer-cuda --describe\n")
        said = self.check("--rehearse", DEVICES="", nodes="none")
        self.assertIn("NOT VERIFIED: the scenario suite on a GPU: it ran on the CPU", said)
        self.assertIn("the machine of this report has no GPU", self.read("gpu.md"))
        self.assertNotIn("benchmark", self.read("calls"))

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
        self.assertIn("NOT VERIFIED: suite 2/2: not run yet", said)
        for part in ("2/4", "3/4", "4/4"):
            self.assertNotIn("Traceback", self.check("--part", part, "-j", "3"))
        report, calls = self.read("gpu.md"), self.read("calls")
        self.assertNotIn("not run yet", report)
        for line in ("suite with device=cuda, shard 1/2 | passed", "shard 2/2 | passed", "benchmark of the kernels on the GPU | passed",
                     "training by fork and by exec | passed"):
            self.assertIn(line, report)
        self.assertEqual(calls.count(" run "), 3)
        self.assertEqual([line.count("deterministic=true") for line in calls.splitlines() if " -t nondeterministic " in line], [0])
        self.assertEqual(calls.count(" -t not nondeterministic "), 2)
        self.assertIn("--shard 2/2 --set deterministic=true -j 3\n", calls)
        self.write("bundle/COMMIT", "other\n")
        self.assertIn("suite 1/2: not run yet", self.check("--part", "1/4"))

    def test_a_shard_and_cores_are_passed_on(self):
        self.check("--shard", "2/5", "-j", "7")
        self.assertIn("--set device=cuda --shard 2/5 --set deterministic=true -j 7\n", self.read("calls"))
        self.check("--only", "suite", "--gpu-runs", "3", "--one-seed")
        self.assertIn("--set deterministic=true --gpu-runs 3 --each-seed 0:1\n", self.read("calls"))
        self.assertIn("is no part", self.check("--part", "1/2", status=2))

    def test_a_suite_that_is_cut_short_leaves_its_verdicts(self):
        said = self.check("--only", "suite", "--call-limit-s", "27", SUITE="slow")
        self.assertRegex(said, r"PARTLY .* cut short: 1 pass; 7 cases were cut off without a verdict; on cuda")
        self.assertRegex(self.read("gpu.md"), r"- scenario suite with device=cuda: cut short after \d+ s: 7 cases")

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

    def test_a_failure_is_one(self):
        self.assertIn("FAILED", self.check("--only", "kernels", status=1, KERNELS="fail"))
        self.assertIn("Sums.Small/cuda", self.read("gpu.md"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
