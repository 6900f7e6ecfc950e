#!/usr/bin/env python3
"""What the hooks cost: processor time of a step with them, as a ratio to one without.

    hooks_cost.py PACKAGE [SIGNAL...]     with a Python that has torch

PACKAGE is the folder `trainwreck` of the wheel or of the build. Two processes train the same small
network, one with hooks and with these signals on demand. They make windows of 50 steps in turns, so
that both meet the same machine. Prints the median of the ratios of neighbouring windows, and their
quartiles.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile

WINDOWS, STEPS = 120, 50

TRAIN = f"""
import sys, time
import torch
torch.set_num_threads(1)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
x, y = torch.randn(32, 64), torch.randint(10, (32,))
for _ in sys.stdin:
    begin = time.process_time()
    for _ in range({STEPS}):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    print((time.process_time() - begin) / {STEPS}, flush=True)
"""


def start(environment):
    return subprocess.Popen(
        [sys.executable, "-c", TRAIN],
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def seconds_of(worker):
    worker.stdin.write("\n")
    worker.stdin.flush()
    return float(worker.stdout.readline())


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    package, signals = os.path.abspath(sys.argv[1]), sys.argv[2:]
    with tempfile.TemporaryDirectory() as folder:
        plan = folder + "/plan.json"
        with open(plan, "w", encoding="utf-8") as file:
            json.dump({"record": signals}, file)
        hooks = {
            "PYTHONPATH": package + "/startup",
            "TRAINWRECK_ADAPTER": "python",
            "TRAINWRECK_TRACE": folder,
            "TRAINWRECK_PLAN": plan,
        }
        with start({}) as plain, start(hooks) as hooked:
            pairs = [(seconds_of(plain), seconds_of(hooked)) for _ in range(5 + WINDOWS)][5:]
            plain.stdin.close()
            hooked.stdin.close()
        with open(folder + "/rank0.jsonl", encoding="utf-8") as trace:
            steps = sum('"grad_norm"' in line for line in trace)
        assert steps > WINDOWS * STEPS, "the hooks were not set"
    low, middle, high = statistics.quantiles([b / a for a, b in pairs], n=4)
    without = statistics.median(a for a, _ in pairs)
    print(
        f"{without * 1e3:.3f} ms without hooks; "
        f"with them {middle:.3f} times ({low:.3f} to {high:.3f})"
    )


if __name__ == "__main__":
    main()
