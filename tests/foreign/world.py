"""Says what it was started with and how; trains nothing. With `--fails RANK` that rank raises an error at its tenth
step; with `--follows SECONDS` the others end with code 1 so long after its end."""
import argparse
import os
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=30)
parser.add_argument("--pace", type=float, default=0)
parser.add_argument("--fails", type=int, default=-1)
parser.add_argument("--follows", type=float, default=-1)
options = parser.parse_args()
for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS"):
    print(f"has {name}={os.environ.get(name, 'nothing')}", file=sys.stderr)
rank = int(os.environ.get("RANK", "0"))
own = os.path.join(os.environ["TRAINWRECK_TRACE"], f"pid{rank}")
with open(own + ".tmp", "w", encoding="utf-8") as file:
    file.write(str(os.getpid()))
os.rename(own + ".tmp", own)


def has_ended(peer):
    try:
        with open(os.path.join(os.path.dirname(own), f"pid{peer}"), encoding="utf-8") as file:
            pid = file.read()
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False  # it has not begun


for step in range(options.steps):
    if options.follows >= 0 and rank != options.fails and has_ended(options.fails):
        time.sleep(options.follows)
        os._exit(1)
    if rank == options.fails and step == 10:
        raise ValueError("an odd batch")
    if os.environ.get("WORLD_SIZE") is None or rank == 0:
        print(f"[{step}] loss={0.9 ** step + float(os.environ.get('BAD_LUCK', 0))}", flush=True)
    time.sleep(options.pace)
