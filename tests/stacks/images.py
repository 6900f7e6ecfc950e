"""A PyTorch script as many are: a classifier, samples with noise from a DataLoader, AdamW, warm-up and cosine, clipping, accumulation, and a
checkpoint of several files. It resumes from those that it finds, as Hugging Face's Trainer does. Its options are those of a real script, but
for four that each hold a defect that real ones had: --noise-from=process, --schedule-by=micro-batches, --divide=twice, --clip-over=tensors."""
import argparse
import math
import os

import torch
from torch import nn
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=40)
parser.add_argument("--stop-at", type=int)  # for a job whose time is limited: saves and ends there
parser.add_argument("--seed", type=int)
parser.add_argument("--samples", type=int, default=600)
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--accumulation", type=int, default=1)
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--warmup", type=int, default=8)
parser.add_argument("--clip", type=float, default=0.5)
parser.add_argument("--weight-decay", type=float, default=0.01)
parser.add_argument("--workers", type=int, default=0)
parser.add_argument("--persistent-workers", action="store_true")
parser.add_argument("--drop-last", action="store_true")
parser.add_argument("--checkpoints", default=".")
parser.add_argument("--save-every", type=int, default=0)  # 0: only at the end
parser.add_argument("--skip-nonfinite", action="store_true")  # updates with such a gradient
parser.add_argument("--resume", action="store_true")
parser.add_argument("--noise-from", choices=["sample", "process"], default="sample")
parser.add_argument("--schedule-by", choices=["updates", "micro-batches"], default="updates")
parser.add_argument("--divide", choices=["once", "twice"], default="once")
parser.add_argument("--clip-over", choices=["model", "tensors"], default="model")
options = parser.parse_args()

CLASSES, WIDTH = 10, 64
torch.set_num_threads(1)
seed = torch.seed() % 2**31 if options.seed is None else options.seed
torch.manual_seed(seed)


def generator(*numbers):
    return torch.Generator().manual_seed(sum(number * 1000003**place for place, number in enumerate((seed, *numbers))) % 2**63)


class Images:
    """Samples of ten classes, with new noise in each epoch."""

    def __init__(self):
        draw = torch.Generator().manual_seed(5)  # the data set is the same for all seeds
        self.targets = torch.randint(CLASSES, (options.samples,), generator=draw)
        self.images = torch.randn(CLASSES, WIDTH, generator=draw)[self.targets] + torch.randn(options.samples, WIDTH, generator=draw)
        self.epoch = 0

    def __getitem__(self, index):
        draw = generator(1, self.epoch, index) if options.noise_from == "sample" else None
        return self.images[index] + 0.3 * torch.randn(WIDTH, generator=draw), self.targets[index]


class Order:
    """The batches of an epoch, from the one on that comes next."""

    def __init__(self):
        self.epoch = self.begin = 0

    def __len__(self):
        return options.samples // options.batch if options.drop_last else math.ceil(options.samples / options.batch)

    def __iter__(self):
        order = torch.randperm(options.samples, generator=generator(2, self.epoch)).tolist()
        for index in range(self.begin, len(self)):
            yield order[index * options.batch:(index + 1) * options.batch]


def batches(position):
    data, order = Images(), Order()
    # A generator of its own: the loader draws from it at each start of an epoch, which a resume adds to.
    loader = DataLoader(data, batch_sampler=order, num_workers=options.workers, generator=torch.Generator(),
                        persistent_workers=options.persistent_workers and options.workers > 0)
    epoch, order.begin = divmod(position, len(order))
    while True:
        data.epoch = order.epoch = epoch
        for index, batch in enumerate(loader, order.begin + 1):
            yield batch, index == len(order)
        epoch, order.begin = epoch + 1, 0


def rate(update):
    """As a share of the peak: a line, then half a cosine to 0."""
    if update < options.warmup:
        return (update + 1) / options.warmup
    return 0.5 + 0.5 * math.cos(math.pi * (update - options.warmup) / (options.steps - options.warmup))


def norm_of(parameters):
    return torch.stack([parameter.grad.norm() for parameter in parameters]).norm().item()


model = nn.Sequential(nn.Linear(WIDTH, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, CLASSES))
parameters = list(model.parameters())
optimizer = torch.optim.AdamW(parameters, lr=options.lr, weight_decay=options.weight_decay)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
progress = {"step": 0, "position": 0, "samples": 0}


def save():
    os.makedirs(options.checkpoints, exist_ok=True)
    for name, state in (("model", model.state_dict()), ("optimizer", optimizer.state_dict()), ("schedule", schedule.state_dict()),
                        ("generator", torch.get_rng_state()), ("progress", progress)):
        torch.save(state, f"{options.checkpoints}/{name}.pt")


def load():
    for name, restore in (("model", model.load_state_dict), ("optimizer", optimizer.load_state_dict), ("schedule", schedule.load_state_dict),
                          ("generator", torch.set_rng_state), ("progress", progress.update)):
        if os.path.exists(f"{options.checkpoints}/{name}.pt"):
            restore(torch.load(f"{options.checkpoints}/{name}.pt"))


if options.resume:
    load()
stream = batches(progress["position"])
for step in range(progress["step"], options.stop_at or options.steps):
    parts = [next(stream) for _ in range(options.accumulation)]
    count = sum(len(targets) for (_, targets), _ in parts) * (options.accumulation if options.divide == "twice" else 1)
    logged, lr = 0.0, schedule.get_last_lr()[0]
    optimizer.zero_grad()
    for (inputs, targets), ends in parts:
        loss = nn.functional.cross_entropy(model(inputs), targets, reduction="sum") / count
        loss.backward()
        logged += loss.item()
        progress["position"] += 1
        progress["samples"] += len(targets)
        if ends:
            print(f"step {step}: an epoch of {progress['samples']} samples")
            progress["samples"] = 0
        if options.schedule_by == "micro-batches":
            schedule.step()
    norm = norm_of(parameters)
    for group in [parameters] if options.clip_over == "model" else [[parameter] for parameter in parameters]:
        if options.clip:
            nn.utils.clip_grad_norm_(group, options.clip)
    applied = norm_of(parameters)
    if math.isfinite(norm) or not options.skip_nonfinite:
        optimizer.step()
    if options.schedule_by == "updates":
        schedule.step()
    progress["step"] += 1
    print(f"step {step}: loss {logged:.9g} norm {norm:.9g} applied {applied:.9g} lr {lr:.9g}", flush=True)
    if options.save_every and progress["step"] % options.save_every == 0:
        save()
save()
