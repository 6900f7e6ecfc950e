"""Fits a line, data parallel. Gradients are gathered into fresh memory, so that a call that is left out shows in the loss even
with one rank; the loss is all-reduced behind them.
"""
import argparse
import os

import torch
from torch import distributed

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=40)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--device", default="cuda")
options = parser.parse_args()
rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
device = torch.device(options.device, int(os.environ["LOCAL_RANK"])) if options.device == "cuda" else torch.device("cpu")
if device.type == "cuda":
    torch.cuda.set_device(device)
distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")

draw = torch.Generator().manual_seed(1000 * options.seed + rank)
truth = torch.arange(8.0, device=device)
weight = torch.zeros(8, device=device)
for step in range(options.steps):
    inputs = torch.randn(32, 8, generator=draw).to(device)
    errors = inputs @ (weight - truth)
    gradient = 2 * inputs.T @ errors / 32
    gathered = torch.zeros(ranks, 8, device=device)
    distributed.all_gather_into_tensor(gathered, gradient)
    weight = weight - 0.05 * gathered.mean(0)
    loss = (errors * errors).mean()
    distributed.all_reduce(loss)
    if rank == 0:
        print(f"step {step}: loss {loss.item() / ranks:.9g}", flush=True)
distributed.destroy_process_group()
