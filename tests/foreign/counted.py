"""A training program whose samples have unequal numbers of counted targets: it accumulates gradients over micro-batches and can be resumed."""
import argparse
import json
import os
import random

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=30)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--batch", type=int, default=8)  # samples of a micro-batch
parser.add_argument("--accumulation", type=int, default=1)
parser.add_argument("--divide-by", choices=["targets", "micro-batches"], default="targets")
parser.add_argument("--digits", type=int, default=6)
parser.add_argument("--save", default="")
parser.add_argument("--load", default="")
parser.add_argument("--reset-momentum", action="store_true")
options = parser.parse_args()

TRUTH = 1.5, -2.0, 0.5
first, weights, momentum = 0, [0.0] * 3, [0.0] * 3
if options.load:
    with open(options.load, encoding="utf-8") as file:
        saved = json.load(file)
    first, weights = saved["step"], saved["weights"]
    if not options.reset_momentum:
        momentum = saved["momentum"]
for step in range(first, options.steps):
    draw = random.Random(options.seed * 1000003 + step)
    samples = []
    for _ in range(options.batch * options.accumulation):
        targets = []
        for _ in range(draw.choice([1, 2, 3, 12])):
            x = [draw.gauss(0, 1) for _ in TRUTH]
            targets.append((x, sum(a * b for a, b in zip(TRUTH, x)) + draw.gauss(0, 0.5)))
        samples.append(targets)
    loss, gradient = 0.0, [0.0] * 3
    for begin in range(0, len(samples), options.batch):
        micro_batch = [target for sample in samples[begin:begin + options.batch] for target in sample]
        if options.divide_by == "targets":
            share = 1 / sum(map(len, samples))
        else:
            share = 1 / len(micro_batch) / options.accumulation
        for x, y in micro_batch:
            error = sum(a * b for a, b in zip(weights, x)) - y
            loss += share * error * error
            gradient = [g + share * 2 * error * a for g, a in zip(gradient, x)]
    momentum = [0.8 * m + g for m, g in zip(momentum, gradient)]
    weights = [w - 0.02 * m for w, m in zip(weights, momentum)]
    norm = sum(g * g for g in gradient) ** 0.5
    print(f"step {step}: loss {loss:.{options.digits}g} norm {norm:.{options.digits}g}")
    if options.save:
        with open(options.save + "/partial", "w", encoding="utf-8") as file:
            json.dump({"step": step + 1, "weights": weights, "momentum": momentum}, file)
        os.replace(options.save + "/partial", options.save + "/last.json")
