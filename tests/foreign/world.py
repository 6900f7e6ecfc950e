"""Says what it was started with and how; trains nothing. With `--fails RANK` that rank raises an error at its tenth step."""
import argparse
import os
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=30)
parser.add_argument("--pace", type=float, default=0)
parser.add_argument("--fails", type=int, default=-1)
options = parser.parse_args()
for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS"):
    print(f"has {name}={os.environ.get(name, 'nothing')}", file=sys.stderr)
rank = int(os.environ.get("RANK", "0"))
for step in range(options.steps):
    if rank == options.fails and step == 10:
        raise ValueError("an odd batch")
    if os.environ.get("WORLD_SIZE") is None or rank == 0:
        print(f"[{step}] loss={0.9 ** step + float(os.environ.get('BAD_LUCK', 0))}", flush=True)
    time.sleep(options.pace)
