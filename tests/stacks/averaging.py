"""Data-parallel gradient descent with MPI: each rank draws samples of its own, all step along the mean of the gradients."""
import argparse
import random

from mpi4py import MPI

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--steps", type=int, default=60)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--clip", type=float, default=0)
options = parser.parse_args()

world = MPI.COMM_WORLD
draw = random.Random(1000 * options.seed + world.Get_rank())
slope = 0.0
for step in range(options.steps):
    samples = [draw.uniform(-1, 1) for _ in range(16)]
    errors = [(x, slope * x - 3 * x + draw.gauss(0, 0.1)) for x in samples]
    loss = world.allreduce(sum(error * error for _, error in errors)) / 16 / world.Get_size()
    gradient = world.allreduce(sum(2 * error * x for x, error in errors)) / 16 / world.Get_size()
    if 0 < options.clip < abs(gradient):
        gradient *= options.clip / abs(gradient)
    slope -= options.lr * gradient
    if world.Get_rank() == 0:
        print(f"step {step}: loss {loss:.6g}", flush=True)
