#!/usr/bin/env python3
"""The kernels that the package calls give what torch gives, and are left alone where they cannot read.

Usage: kernels_test.py [unittest options], with a Python that has torch, in the output folder of the package
"""
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, "tests")
import unittest_xml  # pylint: disable=wrong-import-position

PACKED = os.path.abspath("python/packed")
PYTHON = os.environ.get("TRAINWRECK_STACKS_PYTHON") or shutil.which("python3")
TORCH = subprocess.run([PYTHON, "-c", "import torch"], capture_output=True, check=False).returncode == 0

# In a process of its own: the test's Python may have no torch.
BEGIN = f"""
import math, sys
sys.path.insert(0, {PACKED!r})
import torch
from trainwreck import families, kernels, tensors
torch.manual_seed(0)
library = kernels._LIBRARY
assert library is not None, "the library is not loaded"
calls = []

class Counting:
    def __getattr__(self, name):
        calls.append(name)
        return getattr(library, name)

def both(function, *args):
    \"\"\"What a function returns with the kernels, which it must call, and without.\"\"\"
    kernels._LIBRARY, calls[:] = Counting(), []
    by_kernels = function(*args)
    assert calls, "no kernel was called"
    kernels._LIBRARY = None
    by_torch = function(*args)
    kernels._LIBRARY = library
    return by_kernels, by_torch

def near(pair):
    ours, theirs = pair
    assert ours == theirs or abs(ours - theirs) <= 1e-5 * abs(theirs) or (math.isnan(ours) and math.isnan(theirs)), pair

PARTS = set(families.FROM_KERNELS)
def compare(tensor):
    ours, theirs = both(families._read, tensor, PARTS)
    assert ours.keys() == theirs.keys() == PARTS
    for part in PARTS:
        near((ours[part], theirs[part]))
    for function in (tensors.rms, tensors.largest):
        near(both(function, tensor))
    for function in (tensors.norm, tensors.nonfinite):
        near(both(function, [tensor, tensor[:1]]))
"""


@unittest.skipUnless(TORCH, f"{PYTHON} cannot import torch: ci/test.sh installs Debian's")
class KernelsTest(unittest.TestCase):
    def check(self, code):
        done = subprocess.run([PYTHON, "-c", BEGIN + code], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_statistics_of_each_type(self):
        self.check("""
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    for shape in ((1,), (1000,), (37, 113), (3, 5, 7)):
        compare(torch.randn(shape).to(dtype))
""")

    def test_elements_that_are_not_finite_and_zeros(self):
        self.check("""
for bad in (math.nan, math.inf, -math.inf):
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x = torch.randn(2000)
        x[1::7], x[1500], x[3], x[4] = 0.0, bad, -0.0, math.inf
        compare(x.to(dtype))
assert both(tensors.nonfinite, [torch.tensor([1.0, math.nan, -math.inf])]) == (2, 2)
""")

    def test_a_norm_beyond_what_fp32_squares(self):
        self.check("""
x = torch.full((4,), 1e30)
assert abs(tensors.norm([x]) / 2e30 - 1) < 1e-6
""")

    def test_gradients_and_parameters(self):
        self.check("""
p = torch.nn.Parameter(torch.randn(40, 30))
(p ** 2).sum().backward()
compare(p)
compare(p.grad)
near(both(tensors.norm, [p.grad]))
""")

    def test_changed_elements(self):
        self.check("""
before = torch.randn(1003)
now = before.clone()
now[5], now[1002] = 9.0, 8.0
before[7], now[7] = 0.0, -0.0
assert both(tensors.count_changed, now, before) == (3, 3)
assert both(tensors.count_changed, now, now) == (0, 0)
read = kernels.change(now, before)
assert abs(read.now_squares / float(now.double().square().sum()) - 1) < 1e-12
assert abs(read.change_squares / float((now.double() - before.double()).square().sum()) - 1) < 1e-12
""")

    def test_a_digest_sees_each_bit_and_the_order(self):
        self.check("""
seen = set()
x, y = torch.randn(1001), torch.arange(7)
def take(*of):
    seen.add(both(tensors.digest, list(of))[0])
take(x, y); take(y, x); take(x); take(x.to(torch.bfloat16)); take(torch.tensor([True, False]))
bits = x.view(torch.int32)
for bit in (0, 15, 31):
    bits[1000] ^= -2**31 if bit == 31 else 1 << bit
    take(x, y)
assert len(seen) == 8 and all(0 <= one < 2**52 for one in seen), seen
take(x.clone(), y.clone())
assert len(seen) == 8
""")

    def test_what_they_cannot_read_is_left_to_torch(self):
        self.check("""
kernels._LIBRARY = Counting()
x = torch.randn(8, 8)
freed = torch.randn(8, 8)
getattr(freed, "untyped_storage", freed.storage)().resize_(0)
cut = torch.randn(8, 8)[4:]
getattr(cut, "untyped_storage", cut.storage)().resize_(0)
others = {"fp64": x.double(), "whole numbers": torch.arange(4), "transposed": x.t(), "sparse": x.to_sparse(),
          "meta": x.to("meta"), "of complex numbers": torch.randn(3, dtype=torch.complex64).conj().imag, "freed": freed, "a part of it": cut}
for name, one in others.items():
    assert not kernels.can_read([one]), name
    assert not kernels.can_read([x, one]), name
assert kernels.can_read([x]) and kernels.can_digest([x.double(), torch.arange(4)])
assert not kernels.can_digest([x, freed])

class Own(torch.Tensor):
    pass
assert not kernels.can_read([x.as_subclass(Own)])

seen = []
def inner(wrapped):
    seen.append((type(wrapped), kernels.can_read([wrapped])))
    return wrapped.sum()
if hasattr(torch, "func"):
    torch.func.grad(inner)(x)
    assert seen == [(torch.Tensor, False)], seen
for one in (x.double(), x.t()):
    calls[:] = []
    assert abs(tensors.norm([one]) - float(x.norm())) < 1e-5 and not calls
""")

    def test_the_widest_instructions_and_the_plain_ones_give_the_same_bits(self):
        code = BEGIN + "x = torch.randn(100003)\nx[7] = math.nan\nprint(kernels.statistics([x]), kernels.digest([x]), kernels.change(x, x * 2))"
        said = {subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "TRAINWRECK_CPU": one}).stdout
                for one in ("", "portable")}
        self.assertEqual(len(said), 1)
        self.check("""
import os
os.environ["TRAINWRECK_CPU"] = "pentium"
try:
    tensors.norm([torch.ones(3)])
except RuntimeError as error:
    assert "TRAINWRECK_CPU" in str(error)
else:
    raise AssertionError("no error")
""")


if __name__ == "__main__":
    unittest_xml.main(sys.argv[1:])
