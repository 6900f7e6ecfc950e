"""A PyTorch script as one finds it: a small network, data parallel where torchrun starts it, logging to TensorBoard."""
import argparse
import os

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.tensorboard import SummaryWriter

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--steps", type=int, default=30)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--clip", type=float, default=0.0)
parser.add_argument("--logdir", default="runs")
options = parser.parse_args()

torch.set_num_threads(1)
torch.manual_seed(options.seed)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
rank = int(os.environ.get("RANK", "0"))
if "TORCHELASTIC_RUN_ID" in os.environ:
    distributed.init_process_group("gloo")
    model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=options.lr)
truth = torch.randn(8, 1)
board = SummaryWriter(options.logdir, flush_secs=1) if rank == 0 else None
for step in range(options.steps):
    inputs = torch.randn(32, 8)
    loss = nn.functional.mse_loss(model(inputs), inputs @ truth)
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), options.clip if options.clip > 0 else float("inf"))
    optimizer.step()
    if board:
        board.add_scalar("Loss/train", loss.item(), step)
        if step % 3 == 0:
            board.add_scalar("Norm", norm.item(), step)
        board.flush()
if board:
    board.close()
