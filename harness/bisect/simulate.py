#!/usr/bin/env python3
"""Compares the search of `trainwreck bisect` with git-bayesect, plain and majority bisection on the same histories.

    pip install git-bayesect==1.2
    bazel build -c opt //harness/bisect:search_simulation
    python3 harness/bisect/simulate.py bazel-bin/harness/bisect/search_simulation [--json FILE]

git-bayesect is called as a library: its Bisector picks the commits and says when it is sure. All methods see the same
runs fail: whether the k-th run of a commit fails is drawn from the trial's seed, the commit and k. All runs count, those
of the ends as well; plain and majority bisection believe the ends. "Told the rates" is our search with a prior that
is certain of them.
"""
import argparse
import json
import math
import subprocess
import sys

RATES = ((1, 0), (0.9, 0), (0.5, 0), (0.25, 0), (0.9, 0.1), (0.8, 0.2), (0, 0), (0.5, 0.5), (1, 1))
MASK = (1 << 64) - 1
MAX_RUNS = 2000
# Where nothing changed git-bayesect has no answer that ends it, other than a wrong one.
MAX_RUNS_WITHOUT_CHANGE = 150


def mix(z):
    z = (z + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def bayesect(size, if_bad, if_good, seed):
    import numpy
    from git_bayesect import Bisector

    seed = mix(seed)
    culprit = 1 + seed % size if if_bad > if_good else 0
    looks = [0] * (size + 1)
    bisector = Bisector(numpy.ones(size + 1))  # its commit 0 is the newest
    limit = MAX_RUNS if culprit else MAX_RUNS_WITHOUT_CHANGE
    runs, claimed = 0, 0.0
    while runs < limit and claimed < 0.95:
        index = bisector.select()
        commit = size - index
        draw = mix((mix((seed + commit) & MASK) + looks[commit]) & MASK)
        looks[commit] += 1
        is_bad = culprit > 0 and commit >= culprit
        bisector.record(index, (draw >> 11) * 2**-53 < (if_bad if is_bad else if_good))
        runs += 1
        claimed = float(bisector.distribution.max())
    blamed = size - int(bisector.distribution.argmax()) if claimed >= 0.95 else 0
    return {"method": "git-bayesect", "culprit": culprit, "blamed": blamed, "runs": runs, "search": runs,
            "claimed": claimed}


def capacity(if_bad, if_good):
    """Bits per run, by ternary search over the share of bad commits."""

    def entropy(p):
        return 0 if p <= 0 or p >= 1 else -p * math.log2(p) - (1 - p) * math.log2(1 - p)

    def bits(x):
        return entropy(x * if_bad + (1 - x) * if_good) - x * entropy(if_bad) - (1 - x) * entropy(if_good)

    low, high = 0.0, 1.0
    for _ in range(100):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (a, high) if bits(a) < bits(b) else (low, b)
    return bits((low + high) / 2)


def summarize(trials):
    runs = sorted(trial["runs"] for trial in trials)
    mean = sum(runs) / len(runs)
    return {
        "right": sum(trial["blamed"] == trial["culprit"] for trial in trials) / len(trials),
        "claimed": sum(trial["claimed"] for trial in trials) / len(trials),
        "mean": mean,
        "p95": runs[min(len(runs) - 1, math.ceil(0.95 * len(runs)) - 1)],
        "search": sum(trial["search"] for trial in trials) / len(trials),
    }


def simulate(binary, size, if_bad, if_good, trials, seed):
    out = subprocess.run([binary, str(size), str(if_bad), str(if_good), str(trials), str(seed)], check=True,
                         capture_output=True, text=True).stdout
    by_method = {}
    for line in out.splitlines():
        trial = json.loads(line)
        by_method.setdefault(trial["method"], []).append(trial)
    by_method["git-bayesect"] = [bayesect(size, if_bad, if_good, seed + i) for i in range(trials)]
    ours, theirs = by_method["trainwreck"], by_method["git-bayesect"]
    assert [trial["culprit"] for trial in ours] == [trial["culprit"] for trial in theirs]
    return {method: summarize(trials) for method, trials in by_method.items()}


def row(size, if_bad, if_good, cell):
    ours, theirs = cell["trainwreck"], cell["git-bayesect"]
    bound = math.log2(size) / capacity(if_bad, if_good) if if_bad > if_good else 0
    ratio = f"{ours['search'] / bound:.2f}" if bound else "-"
    told = f"{cell['told']['mean']:.1f}" if "told" in cell else "-"
    return (f"| {size} | {if_bad:g} / {if_good:g} | {ours['right']:.1%} | {ours['claimed']:.1%} | {ours['mean']:.1f} | {told} | "
            f"{ours['p95'] / ours['mean']:.2f} | {ratio} | {theirs['mean']:.1f} | {theirs['right']:.1%} | "
            f"{cell['plain']['right']:.1%} | {cell['majority']['mean']:.0f} | {cell['majority']['right']:.1%} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--sizes", default="16,128,1024")
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json")
    options = parser.parse_args()
    print("| n | fails if bad / good | right | claimed | runs | told the rates | p95 / mean | search / bound | git-bayesect's runs | right "
          "| plain, right | majority's runs | right |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    cells = []
    for size in map(int, options.sizes.split(",")):
        for if_bad, if_good in RATES:
            cell = simulate(options.binary, size, if_bad, if_good, options.trials, options.seed)
            cells.append({"size": size, "if_bad": if_bad, "if_good": if_good, "methods": cell})
            print(row(size, if_bad, if_good, cell), flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"schema": "trainwreck/bisect-simulation", "version": 1, "trials": options.trials,
                       "seed": options.seed, "cells": cells}, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
