"""What nvcc makes of the kernels: no fused multiply-adds, and no more registers and memory than they are known to take.

    cuda_code_test.py REASON NVCC FLAG... -- FILE.cu...

REASON says why there is no nvcc; empty: there is one.
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

REASON, NVCC = sys.argv[1:3]
SPLIT = sys.argv.index("--")
FLAGS, FILES = sys.argv[3:SPLIT], sys.argv[SPLIT + 1:]

# What a kernel may take: registers of a thread, and bytes of shared memory of a block. With 256 threads in a block, 64 registers
# let 4 blocks run on a multiprocessor at a time (65536 registers), 48 let 5, 32 let 8.
CEILINGS = {"SumTerms": (64, 0), "SumChunks": (64, 0), "SumTensors": (40, 14336), "CorruptElements": (48, 0)}

# Fused, or without a rounding of its own, which leaves ptxas free to fuse.
FLOAT = r"\.b?f(?:16|16x2|32|32x2|64)\b"
FUSED = re.compile(rf"^\s*(?:@!?%p\d+\s+)?(?:(?:fma|mad)(?:\.\w+)*?{FLOAT}|(?:add|sub|mul)(?:\.ftz|\.sat)*{FLOAT}).*$", re.M)
ENTRY = re.compile(r"Compiling entry function '(\w+)' for '\w+'\n(?:ptxas info +: )?.*Function properties for \w+\n"
                   r" +(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads\n"
                   r".*Used (\d+) registers.*")
SHARED = re.compile(r"(\d+) bytes smem")


def kernel_of(symbol):
    return next((name for name in CEILINGS if re.search(rf"\d{name}E", symbol)), symbol)


def resources_of(text):
    """{kernel: (stack, spill stores, spill loads, registers, shared)} of what ptxas -v says."""
    found = {}
    for entry in ENTRY.finditer(text):
        shared = SHARED.search(entry[0])
        found[kernel_of(entry[1])] = (*map(int, entry.groups()[1:]), int(shared[1]) if shared else 0)
    return found


def compile_with_nvcc(file, folder, *more):
    """(what it said, {architecture: PTX}) of a .cu file."""
    environment = {"PATH": "/bin:/usr/bin", "TMPDIR": folder}
    done = subprocess.run([NVCC, *FLAGS, "-I.", "-Xptxas=-v", "-keep", "-keep-dir", folder, *more, "-c", file, "-o", folder + "/x.o"],
                          env=environment, capture_output=True, text=True, timeout=300, check=False)
    ptx = {}
    for name in os.listdir(folder):
        if match := re.fullmatch(r".*\.(compute_\d+)\.ptx", name):
            with open(os.path.join(folder, name), encoding="utf-8") as text:
                ptx[match[1]] = text.read()
    return done, ptx


class ReadingTest(unittest.TestCase):
    """The test's own eyes."""

    def test_fused_operations_are_seen(self):
        for line in ("\tfma.rn.f64 \t%fd1, %fd2, %fd3, %fd4;", "\t@%p1 fma.rn.ftz.f32 %f1, %f2, %f3, %f4;", "\tmad.rn.f32 %f1, %f2, %f3, %f4;",
                     "\tfma.rn.bf16x2 %r1, %r2, %r3, %r4;", "\tmul.f64 %fd1, %fd2, %fd3;", "\tadd.ftz.f32 %f1, %f2, %f3;"):
            self.assertRegex(line, FUSED)
        for line in ("\tmad.lo.s32 \t%r1, %r2, %r3, %r4;", "\tmad.wide.u32 %rd1, %r1, 4, %rd2;", "\tmul.rn.f64 %fd1, %fd2, %fd3;",
                     "// fma.rn.f64", "\tadd.s32 %r1, %r2, %r3;"):
            self.assertNotRegex(line, FUSED)

    def test_resources_are_read(self):
        said = ("ptxas info    : 0 bytes gmem\nptxas info    : Compiling entry function '_ZN1x10SumTensorsEPKi' for 'sm_90'\n"
                "ptxas info    : Function properties for _ZN1x10SumTensorsEPKi\n"
                "    16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads\n"
                "ptxas info    : Used 255 registers, used 1 barriers, 14336 bytes smem\nptxas info    : Compile time = 1 ms\n")
        self.assertEqual(resources_of(said), {"SumTensors": (16, 4, 8, 255, 14336)})


@unittest.skipIf(REASON, REASON)
class CudaCodeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.resources, cls.ptx = {}, {}
        for file in FILES:
            with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
                done, ptx = compile_with_nvcc(file, folder)
            if done.returncode != 0:
                raise AssertionError(done.stderr)
            cls.resources.update(resources_of(done.stderr))
            cls.ptx.update({(file, architecture): text for architecture, text in ptx.items()})

    def test_every_kernel_is_known(self):
        self.assertEqual(set(self.resources), set(CEILINGS))
        self.assertEqual({architecture for _, architecture in self.ptx}, {"compute_80", "compute_90"})

    def test_nothing_spills(self):
        for kernel, (stack, stores, loads, _, _) in self.resources.items():
            self.assertEqual((stack, stores, loads), (0, 0, 0), kernel)

    def test_registers_and_shared_memory_stay_below_their_ceilings(self):
        for kernel, (_, _, _, registers, shared) in self.resources.items():
            print(f"{kernel}: {registers} registers, {shared} bytes of shared memory")
            self.assertLessEqual((registers, shared), CEILINGS[kernel], kernel)
            self.assertLessEqual(shared, CEILINGS[kernel][1], kernel)

    def test_no_multiplication_is_fused_with_an_addition(self):
        for (file, architecture), text in self.ptx.items():
            self.assertIsNone(FUSED.search(text), f"{file} for {architecture}")

    def broken(self, kernel, *more):
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
            file = folder + "/broken.cu"
            with open(file, "w", encoding="utf-8") as text:
                text.write(kernel)
            return compile_with_nvcc(file, folder, *more)

    def test_without_the_flag_it_would_be(self):
        _, ptx = self.broken("__global__ void K(double* x) { x[0] = x[0] * x[1] + x[2]; }", "-fmad=true")
        self.assertTrue(all(FUSED.search(text) for text in ptx.values()) and ptx)

    def test_spills_and_warnings_end_the_build(self):
        many = "__global__ void __launch_bounds__(1024, 2) K(float* x) { float v[128]; for (int i = 0; i < 128; ++i) v[i] = x[i * 7]; " \
            "__syncthreads(); for (int i = 0; i < 128; ++i) x[i * 3] = v[i] * v[127 - i]; }"
        done, _ = self.broken(many)
        self.assertNotEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, "(?i)spill|local memory")
        done, _ = self.broken("__global__ void K(int* x) { int unused; x[0] = 1; }")
        self.assertNotEqual(done.returncode, 0, done.stderr)
        self.assertIn("unused", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
