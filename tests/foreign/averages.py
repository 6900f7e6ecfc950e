"""Fits a number with one gradient a rank, averaged by a libnccl that lies at FAKE_NCCL; its buffers are the host's."""
import argparse
import ctypes
import os

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int)
parser.add_argument("--lr", type=float)
options = parser.parse_args()
rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


class UniqueId(ctypes.Structure):
    _fields_ = [("internal", ctypes.c_char * 128)]


nccl = ctypes.CDLL(os.environ["FAKE_NCCL"])
meeting = f"/tmp/averages-{os.environ['MASTER_PORT']}"
with open(meeting, "ab") as file:
    os.truncate(file.fileno(), 1 << 20)
unique, comm = UniqueId(meeting.encode()), ctypes.c_void_p()
nccl.ncclCommInitRank.argtypes = [ctypes.c_void_p, ctypes.c_int, UniqueId, ctypes.c_int]
assert nccl.ncclCommInitRank(ctypes.byref(comm), ranks, unique, rank) == 0

value = 3.0
kept = []  # a call that is held back has its buffers to the end
for step in range(options.steps):
    gradient = 2 * (value - 1) + (0.5 if rank == 0 else -0.5)
    mine, total = ctypes.c_float(gradient), ctypes.c_float()
    kept.append((mine, total))
    code = nccl.ncclAllReduce(ctypes.byref(mine), ctypes.byref(total), ctypes.c_size_t(1), 7, 0, comm, None)
    if code != 0:
        raise RuntimeError(f"NCCL error {code} in all_reduce")
    loss = ctypes.c_float((value - 1) ** 2)
    value -= options.lr * total.value / ranks
    if rank == 0:
        print(f"[{step}] loss={loss.value}", flush=True)
