"""The bundle for machines with a GPU: small enough, whole, and its one command checks what it can here.

    gpu_bundle_test.py gpu_bundle.py SCENARIOS_FOLDER SHIM PROGRAM...
"""
import glob
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest

PACKER, SCENARIOS, SHIM, *PROGRAMS = sys.argv[1:]


def libtorch():
    """The one that the trainer was linked with."""
    trainer = next(path for path in PROGRAMS if path.endswith("/trainwreck-trainer"))
    listed = subprocess.run(["ldd", trainer], check=True, capture_output=True, text=True).stdout
    return os.path.dirname(os.path.dirname(re.search(r"libtorch_cpu\.so => (\S+)", listed)[1]))


class Bundle(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = cls.scratch.name
        archive = cls.folder + "/gpu.tar.gz"
        cls.packing = subprocess.run([sys.executable, PACKER, archive, "--commit", "of-a-test", "--scenarios", SCENARIOS, "--shim", SHIM,
                                      "--torch", "2.11.0", "--nccl", "2.28.9", *PROGRAMS], capture_output=True, text=True)
        if cls.packing.returncode == 0:
            with tarfile.open(archive) as packed:
                packed.extractall(cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def test_is_small_enough_to_carry(self):
        self.assertEqual(self.packing.returncode, 0, self.packing.stdout + self.packing.stderr)
        total = sum(os.path.getsize(os.path.join(folder, name))
                    for folder, _, names in os.walk(self.folder + "/trainwreck-gpu") for name in names)
        self.assertLess(total, 64 << 20)

    def test_refuses_to_grow_beyond(self):
        result = subprocess.run([sys.executable, PACKER, self.folder + "/small.tar.gz", "--scenarios", SCENARIOS, "--shim", SHIM,
                                 "--most-bytes", "100000", *PROGRAMS], capture_output=True, text=True)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("too large to carry", result.stderr)
        self.assertFalse(os.path.exists(self.folder + "/small.tar.gz"))

    def test_notes_what_it_was_built_against(self):
        with open(self.folder + "/trainwreck-gpu/BUILT.json", encoding="utf-8") as file:
            built = json.load(file)
        self.assertEqual((built["LibTorch"], built["NCCL"]), ("2.11.0", "2.28.9"))
        self.assertRegex(built["glibc"], r"^2\.\d+")
        self.assertRegex(built["libstdc++"], r"^3\.4\.\d+$")

    def trainwreck(self, *arguments):
        path = os.path.join(libtorch(), "lib")
        return subprocess.run([self.folder + "/trainwreck-gpu/bin/trainwreck", *arguments], cwd=self.folder + "/trainwreck-gpu/nccl",
                              env={**os.environ, "LD_LIBRARY_PATH": path, "GPU_CHECK_PYTHON": "false", "TRAINWRECK_CACHE": self.folder + "/cache"},
                              capture_output=True, text=True, timeout=250)

    def test_its_programs_can_have_the_faults_of_nccl(self):
        portable = sorted(glob.glob(self.folder + "/trainwreck-gpu/scenarios/portable/nccl-*.yaml"))
        self.assertEqual(len(portable), 4)
        for target, root, paths in (("trainer", "../scenarios", portable), ("python", "../scenarios", portable),
                                    ("python", "scenarios", ["scenarios/one-rank"])):
            said = self.trainwreck("validate", "--target", target, "--scenarios-root", root, *paths)
            self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
            self.assertEqual(said.stdout, "4 scenarios, 4 cases: all valid\n", "none would be skipped")
        # The library of the faults is found; there is no Python with torch here.
        said = self.trainwreck("run", "scenarios/one-rank/drop.yaml", "--target", "python", "--scenarios-root", "scenarios", "--no-preflight",
                               "--output", self.folder + "/drop", "--history", "none")
        self.assertNotIn("requires:preload:nccl", said.stdout)
        self.assertEqual(said.returncode, 7, said.stdout + said.stderr)

    # On the CPU, where no call of NCCL is made; so with another fault.
    def test_its_trainer_runs_as_a_program_that_is_broken_from_outside(self):
        text = "command: [python3, without_faults.py, ../bin/trainwreck-trainer-cuda]"
        path = self.folder + "/trainwreck-gpu/nccl/trainwreck.yaml"
        with open(path, encoding="utf-8") as file:
            declared = file.read()
        self.assertIn(text, declared)
        with open(path, "w", encoding="utf-8") as file:
            # Its steps take a millisecond otherwise, and a busy machine sees the second one when all are made.
            wide = "deterministic: true\n      model.width: 512\n      data.batch_size: 256\n"
            self.assertIn("deterministic: true\n", declared)
            file.write(declared.replace("-cuda]", "]").replace("deterministic: true\n", wide))
        said = self.trainwreck("run", "portable/slow-rank", "--target", "trainer", "--scenarios-root", "../scenarios", "--set", "device=cpu",
                               "--each-seed", "0:1", "--output", self.folder + "/slow-rank", "--history", "none")
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
        self.assertIn("1 case: 1 pass", said.stdout)

    @unittest.skipIf(os.path.exists("/dev/nvidiactl"), "there is a GPU driver: run ci/gpu_check.sh itself")
    def test_its_one_command_says_what_it_could_not_verify(self):
        report = self.folder + "/gpu.md"
        scenario = self.folder + "/trainwreck-gpu/scenarios/nan/corrupt-sample.yaml"
        result = subprocess.run([self.folder + "/trainwreck-gpu/gpu_check.sh", "--report", report, "--results",
                                 self.folder + "/gpu.json", "--rehearse", "--only", "doctor,nccl,sanitizer,suite", scenario],
                                env={**os.environ, "TORCH_HOME": libtorch()}, capture_output=True, text=True, timeout=250)
        self.assertEqual(result.returncode, 4, result.stdout + result.stderr)  # nothing ran on a GPU
        self.assertIn("this call verified nothing on a GPU: there is none", result.stdout)
        self.assertRegex(result.stdout, "NOT VERIFIED: compute-sanitizer racecheck on the kernels: "
                         "(no GPU|the trainer with GPUs does not start: .*)\n")
        self.assertIn("NOT VERIFIED: the scenario suite on a GPU: it ran on the CPU", result.stdout)
        with open(report, encoding="utf-8") as file:
            text = file.read()
        self.assertIn("the machine of this report has no GPU", text)
        self.assertRegex(text, r"\| training by fork and by exec \| passed \|")
        self.assertRegex(text, r"\| scenario suite with device=cpu \| passed \| [\d.]+ \| 1 pass; on cpu \|")
        self.assertIn("| commit | of-a-test |", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
