"""The trainer with GPUs, as far as a machine without one can tell: it links what it should, the one without links
nothing of CUDA, it starts, finds no GPU, trains on the CPU with the same bits, and makes no CUDA call before a fork.

    cuda_binary_test.py MISSING CPU_TRAINER [CUDA_TRAINER TRAINWRECK SHIM STUB NCCL_CHECK KERNELS_TEST]
MISSING says why there is no CUDA_TRAINER; empty: there is one.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

MISSING, CPU_TRAINER, *CUDA_PARTS = sys.argv[1:]
CUDA_TRAINER, TRAINWRECK, SHIM, STUB, NCCL_CHECK, KERNELS_TEST = CUDA_PARTS or [None] * 6
# What libtorch_cpu.so of the CUDA wheel itself needs is its own affair.
CUDA_LIBRARIES = re.compile(r"lib(torch_cuda|c10_cuda|cuda|cudart|cudnn|cublas|cublasLt|nccl|nvrtc|nvidia-ml|cufft|curand)\b")


def needed(binary):
    """The libraries that the binary itself names."""
    text = subprocess.run(["readelf", "-d", binary], check=True, capture_output=True, text=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.+)\]", text)


def defined_symbols(binary):
    return subprocess.run(["nm", "-C", "--defined-only", binary], check=True, capture_output=True, text=True).stdout


def train(trainer, recipe, environment):
    """The last step's record of a run."""
    with tempfile.TemporaryDirectory() as folder:
        plan = {"protocol": 1, "run": "test", "seed": 7, "recipe": recipe, "checkpoint_dir": folder + "/checkpoints"}
        with open(folder + "/plan.json", "w", encoding="utf-8") as file:
            json.dump(plan, file)
        environment = {**os.environ, **environment, "TRAINWRECK_PLAN": folder + "/plan.json", "TRAINWRECK_TRACE": folder}
        result = subprocess.run([trainer], env=environment, capture_output=True, text=True, timeout=120)
        with open(folder + "/rank0.jsonl", encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        steps = [record for record in records if record["t"] == "step"]
        return result, steps[-1] if steps else None


class CpuTrainer(unittest.TestCase):
    def test_needs_nothing_of_cuda(self):
        libraries = needed(CPU_TRAINER)
        self.assertIn("libtorch_cpu.so", libraries)  # or the pattern is compared with nothing
        self.assertEqual([name for name in libraries if CUDA_LIBRARIES.match(name)], [])

    def test_refuses_a_recipe_that_wants_a_gpu(self):
        result, _ = train(CPU_TRAINER, {"device": "cuda", "steps": 2}, {})
        self.assertEqual(result.returncode, 2)
        self.assertIn("device: no cuda: this trainer is built without it", result.stderr)


@unittest.skipIf(MISSING, MISSING)
class CudaTrainer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Lets the trainer start where cuDNN and its like are not installed."""
        cls.stubs = tempfile.TemporaryDirectory()
        cls.environment = {"LD_LIBRARY_PATH": cls.stubs.name + ":" + os.environ.get("LD_LIBRARY_PATH", "")}
        for _ in range(3):  # a library that is found may itself lack one
            listed = subprocess.run(["ldd", CUDA_TRAINER], env={**os.environ, **cls.environment}, check=True,
                                    capture_output=True, text=True).stdout
            for name in set(re.findall(r"^\s*(\S+) => not found", listed, re.MULTILINE)):
                os.symlink(os.path.abspath(STUB), os.path.join(cls.stubs.name, name))

    @classmethod
    def tearDownClass(cls):
        cls.stubs.cleanup()

    def describe(self):
        text = subprocess.run([CUDA_TRAINER, "--describe"], env={**os.environ, **self.environment}, check=True,
                              capture_output=True, text=True, timeout=120).stdout
        return json.loads(text)

    def test_needs_the_cuda_libraries_and_holds_our_part(self):
        self.assertLessEqual({"libtorch_cuda.so", "libc10_cuda.so"}, set(needed(CUDA_TRAINER)))
        symbols = defined_symbols(CUDA_TRAINER)
        for name in ["trainwreck::MakeNcclCommunicator(", "CudaDevice::Health()", "trainwreck::Nvml::Read("]:
            self.assertIn(name, symbols)
            self.assertNotIn(name, defined_symbols(CPU_TRAINER))

    def test_lists_a_gpu_only_where_there_is_one(self):
        description = self.describe()
        gpus = [device for device in description["devices"] if device["kind"] == "cuda"]
        self.assertEqual("device:cuda" in description["features"], bool(gpus))
        self.assertEqual("backend:nccl" in description["features"], bool(gpus))
        if not os.path.exists("/dev/nvidiactl"):
            self.assertEqual(gpus, [])

    def test_trains_the_same_bits_on_the_cpu(self):
        for recipe in [{"steps": 5}, {"steps": 2, "model.kind": "gpt", "data.kind": "markov"}]:
            recipe["device"] = "cpu"
            _, ours = train(CUDA_TRAINER, recipe, self.environment)
            _, theirs = train(CPU_TRAINER, recipe, {})
            self.assertEqual(ours["param_digest"], theirs["param_digest"])
            self.assertEqual(ours["loss"], theirs["loss"])

    @unittest.skipIf(os.path.exists("/dev/nvidiactl"), "there is a GPU driver")
    def test_says_that_there_is_no_gpu(self):
        result, _ = train(CUDA_TRAINER, {"device": "cuda", "steps": 2}, self.environment)
        self.assertEqual(result.returncode, 2)
        self.assertIn("device: no cuda: this machine has 0, and each of 1 ranks needs one", result.stderr)

    def test_the_checks_of_nccl_start_and_say_what_they_need(self):
        """They are for ci/gpu_check.sh; here, that they are whole."""
        result = subprocess.run([NCCL_CHECK], env={**os.environ, **self.environment}, capture_output=True, text=True,
                                timeout=600)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        if not os.path.exists("/dev/nvidiactl"):
            self.assertIn("needs 8 GPUs, this machine has 0", result.stdout)
            self.assertNotIn("[       OK ]", result.stdout)

    def test_the_shim_sees_the_runtime_that_our_kernels_bring_along(self):
        """Or the next test would be blind to it. The program calls no other CUDA runtime."""
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "LD_PRELOAD": os.path.abspath(SHIM), "WATCH_FORKS": folder + "/calls"}
            subprocess.run([KERNELS_TEST, "--gtest_filter=Cuda.*"], env=environment, check=True, capture_output=True,
                           timeout=300)
            with open(folder + "/calls", encoding="utf-8") as file:
                self.assertIn("call 1 libcuda.so", file.read().splitlines())

    def test_makes_no_cuda_call_before_a_fork(self):
        with tempfile.TemporaryDirectory() as folder:
            log = folder + "/forks"
            environment = {**os.environ, **self.environment, "LD_PRELOAD": os.path.abspath(SHIM), "WATCH_FORKS": log,
                           "TRAINWRECK_CACHE": folder}
            doctor = subprocess.run([TRAINWRECK, "doctor", "--target", CUDA_TRAINER], env=environment,
                                    capture_output=True, text=True, timeout=300)
            self.assertRegex(doctor.stdout, r"ok +train by fork")
            with open(log, encoding="utf-8") as file:
                lines = [line.split() for line in file]
        forks = [line for line in lines if line[0] == "fork"]
        self.assertEqual([line for line in forks if line[1] != "0"], [])
        self.assertGreaterEqual(len(forks), 3)  # of the harness, and one of a warm trainer
        self.assertTrue([line for line in lines if line[0] == "call"], "the shim saw no CUDA call of any process")


class Xml(unittest.TextTestResult):
    """For the count of test cases: Bazel would take the whole program for one."""

    def startTest(self, test):
        super().startTest(test)
        names.append(test)


names = []


def write_xml(path, result):
    from xml.sax.saxutils import quoteattr
    bad = {test: text for test, text in result.failures + result.errors}
    skipped = dict(result.skipped)
    with open(path, "w", encoding="utf-8") as file:
        file.write("<testsuites><testsuite name='cuda_binary_test'>\n")
        for test in dict.fromkeys(names + list(bad) + list(skipped)):
            suite, _, name = test.id().removeprefix("__main__.").rpartition(".")
            file.write(f"<testcase classname={quoteattr(suite)} name={quoteattr(name)}>")
            if test in bad:
                file.write(f"<failure message={quoteattr(bad[test])}/>")
            elif test in skipped:
                file.write(f"<skipped message={quoteattr(skipped[test])}/>")
            file.write("</testcase>\n")
        file.write("</testsuite></testsuites>\n")


if __name__ == "__main__":
    program = unittest.main(argv=sys.argv[:1], exit=False, verbosity=2,
                            testRunner=unittest.TextTestRunner(resultclass=Xml, verbosity=2))
    if "XML_OUTPUT_FILE" in os.environ:
        write_xml(os.environ["XML_OUTPUT_FILE"], program.result)
    sys.exit(not program.result.wasSuccessful())
