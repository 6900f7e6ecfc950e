"""Data-parallel gradient descent under srun, without MPI: rank 0 listens, and answers each rank's number with the mean of all."""
import argparse
import os
import random
import time
from multiprocessing.connection import Client, Listener

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--steps", type=int, default=60)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--clip", type=float, default=0)
parser.add_argument("--hang", type=int, default=-1)
parser.add_argument("--socket", required=True)
options = parser.parse_args()

os.chdir(os.path.dirname(options.socket))  # the whole path may be too long for a socket
address = os.path.basename(options.socket)
rank, size = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
if rank == 0:
    listener = Listener(address, "AF_UNIX")
    peers = [listener.accept() for _ in range(size - 1)]
else:
    peers = []
    while not peers:
        try:
            peers = [Client(address, "AF_UNIX")]
        except (FileNotFoundError, ConnectionRefusedError):  # rank 0 is not there yet
            time.sleep(0.01)


def mean(number):
    if rank > 0:
        peers[0].send(number)
        return peers[0].recv()
    result = (number + sum(peer.recv() for peer in peers)) / size
    for peer in peers:
        peer.send(result)
    return result


draw = random.Random(1000 * options.seed + rank)
slope = 0.0
for step in range(options.steps):
    if step == options.hang:
        time.sleep(600)
    samples = [draw.uniform(-1, 1) for _ in range(16)]
    errors = [(x, slope * x - 3 * x + draw.gauss(0, 0.1)) for x in samples]
    loss = mean(sum(error * error for _, error in errors) / 16)
    gradient = mean(sum(2 * error * x for x, error in errors) / 16)
    if 0 < options.clip < abs(gradient):
        gradient *= options.clip / abs(gradient)
    slope -= options.lr * gradient
    if rank == 0:
        print(f"step {step}: loss {loss:.6g}", flush=True)
