#!/usr/bin/env python3
"""How much faster the kernels read tensors in host memory than torch does, on one thread each.

    kernels_benchmark.py PACKAGE     with a Python that has torch

PACKAGE is the folder `trainwreck` of the wheel or of the build. For each case the two take turns.
Prints the median of the ratios of neighbouring times.
"""

import os
import statistics
import sys
import time

import torch

LISTS = {
    "4 tensors, 4,810 elements": ([(64, 64), (64,), (10, 64), (10,)], 500),
    "50 of 65,536": ([(256, 256)] * 50, 30),
    "10 of 5,000,000": ([(5000, 1000)] * 10, 3),
}


PARTS = {"count", "finite", "zeros", "sum", "squares", "max"}


def seconds_of(call, of):
    begin = time.perf_counter()
    call(of)
    return time.perf_counter() - begin


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[1])))
    from trainwreck import families, kernels, tensors

    library = kernels._LIBRARY
    if library is None:
        sys.exit(f"{sys.argv[1]} has no {kernels.FILE}")
    torch.set_num_threads(1)
    calls = {
        "norm": tensors.norm,
        "nonfinite": tensors.nonfinite,
        "digest": tensors.digest,
        "changed": lambda of: [tensors.count_changed(one, one) for one in of],
        "mean, std, max, zeros": lambda of: [families._read(one, PARTS) for one in of],
    }
    for title, (shapes, times) in LISTS.items():
        of = [torch.randn(shape) for shape in shapes]
        for name, call in calls.items():
            ratios = []
            for _ in range(times):
                kernels._LIBRARY = None
                by_torch = seconds_of(call, of)
                kernels._LIBRARY = library
                ratios.append(by_torch / seconds_of(call, of))
            print(f"{title:26}  {name:22}  {statistics.median(ratios):6.1f} times")


if __name__ == "__main__":
    main()
