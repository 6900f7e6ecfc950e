"""A PyTorch script: sequences with unequal numbers of counted tokens, gradients accumulated over micro-batches, data parallel under torchrun.
With --divide-by=micro-batches it has the defect that trainers of language models had until 2024: the mean loss of each micro-batch counts
the same, whatever its number of tokens."""
import argparse
import os

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=20)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--batch", type=int, default=8)  # sequences of a micro-batch of a rank
parser.add_argument("--accumulation", type=int, default=1)
parser.add_argument("--divide-by", choices=["tokens", "micro-batches"], default="tokens")
options = parser.parse_args()

VOCAB, LENGTH = 32, 24
torch.set_num_threads(1)
rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
torch.manual_seed(options.seed)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.mix, self.head = nn.Embedding(VOCAB, 32), nn.GRU(32, 48, batch_first=True), nn.Linear(48, VOCAB)

    def forward(self, tokens):
        return self.head(self.mix(self.embed(tokens))[0])


def sequences(step, count):
    """Of a chain that mostly counts up, with a part of its targets counted, as where prompts and padding are not."""
    draw = torch.Generator().manual_seed(options.seed * 1000003 + step)
    jumps = (torch.rand(count, LENGTH + 1, generator=draw) < 0.2) * torch.randint(VOCAB, (count, LENGTH + 1), generator=draw)
    tokens = (torch.cumsum(jumps + 1, 1)) % VOCAB
    targets = tokens[:, 1:].clone()
    for row, counted in zip(targets, torch.randint(1, LENGTH + 1, (count,), generator=draw)):
        row[counted:] = -100
    return tokens[:, :-1], targets


model = Model()
if size > 1:
    distributed.init_process_group("gloo")
    model = DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.005)
for step in range(options.steps):
    inputs, targets = sequences(step, options.batch * options.accumulation * size)
    all_tokens, logged = (targets != -100).sum(), torch.zeros(())
    for index in range(options.accumulation):
        begin = (index * size + rank) * options.batch
        own = slice(begin, begin + options.batch)
        logits, labels = model(inputs[own]).flatten(0, 1), targets[own].flatten()
        if options.divide_by == "tokens":
            loss = nn.functional.cross_entropy(logits, labels, reduction="sum") / all_tokens * size  # the mean over ranks divides by size
        else:
            loss = nn.functional.cross_entropy(logits, labels) / options.accumulation
        loss.backward()
        logged += loss.detach() / size
    if size > 1:
        distributed.all_reduce(logged)
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    if rank == 0:
        print(f"step {step}: loss {logged.item():.6g} norm {norm.item():.6g}", flush=True)
if size > 1:
    os._exit(0)  # gloo's threads now and then end a process by SIGABRT when it is taken down: "terminate called without an active exception"
