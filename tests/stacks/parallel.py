"""A PyTorch script, data parallel, in which one rank fails in a way of choice. Says on stdout how the training goes, and in a file when the
rank failed."""
import argparse
import json
import os
import signal
import sys
import time

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--how", default="none")
parser.add_argument("--rank", type=int, default=1)
parser.add_argument("--pace", type=float, default=0.02)
parser.add_argument("--quick", action="store_true")  # ranks that lose a peer end at once
parser.add_argument("--trace", action="store_true")
options = parser.parse_args()


def spin():
    while True:
        pass


WAYS = {
    "sigkill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "sigsegv": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "sigabrt": lambda: os.kill(os.getpid(), signal.SIGABRT),
    "sigstop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
    "exit": lambda: os._exit(1),
    "sys_exit": lambda: sys.exit(3),
    "raise": lambda: [].pop(),
    "sleep": lambda: time.sleep(3600),
    "spin": spin,
    "slow": lambda: time.sleep(4),
}

if "OMPI_COMM_WORLD_RANK" in os.environ:
    rank, size = int(os.environ["OMPI_COMM_WORLD_RANK"]), int(os.environ["OMPI_COMM_WORLD_SIZE"])
elif "SLURM_PROCID" in os.environ:
    rank, size = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
else:
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.set_num_threads(1)
torch.manual_seed(rank)
folder = os.environ["TRAINWRECK_TRACE"]
if "MASTER_ADDR" in os.environ:
    distributed.init_process_group("gloo")
else:
    distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=size)
model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=options.lr)
truth = torch.arange(8.0).reshape(8, 1) / 8
trace = open(f"{folder}/rank{rank}.jsonl", "a", buffering=1) if options.trace else None
begin = time.time()
if trace:
    trace.write(json.dumps({"t": "start", "rank": rank}) + "\n")
for step in range(options.steps):
    if step == 20 and rank == options.rank and options.how != "none":
        with open(f"{folder}/failed_at", "w") as file:
            file.write(repr(time.time()))
        WAYS[options.how]()
    inputs = torch.randn(32, 8)
    if trace:
        trace.write(json.dumps({"t": "collective", "step": step, "call": step, "op": "all_reduce", "shape": "[161]", "dtype": "float32"}) + "\n")
    loss = nn.functional.mse_loss(model(inputs), inputs @ truth)
    optimizer.zero_grad()
    try:
        loss.backward()
    except RuntimeError:
        if options.quick:
            os._exit(1)
        raise
    optimizer.step()
    time.sleep(options.pace)
    if trace:
        trace.write(json.dumps({"t": "step", "step": step, "time": time.time() - begin, "loss": loss.item()}) + "\n")
    elif rank == 0:
        print(f"step {step}: loss {loss.item():.6g}", flush=True)
if trace:
    trace.write(json.dumps({"t": "end", "why": "completed", "step": options.steps}) + "\n")
