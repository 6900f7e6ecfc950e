#!/usr/bin/env python3
"""Milliseconds per training step of the reference gpt's twin in PyTorch eager, one thread, fp32, AdamW.

  tools/eager_step.py [--steps N] [--layers 2 --width 64 --heads 4 --vocab 64 --seq-len 64 --batch 8]

Prints the median over the steps after a warm-up. Compare in one go with the reference trainer's `step_s`
(docs/measured/benchmarks.md has the command).
"""
import argparse
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.proj = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], is_causal=True)
        return self.proj(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.attn, self.norm2 = nn.LayerNorm(width), Attention(width, heads), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    def __init__(self, layers, width, heads, vocab, seq_len):
        super().__init__()
        self.embed, self.pos = nn.Embedding(vocab, width), nn.Embedding(seq_len, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocab)

    def forward(self, tokens):
        x = self.embed(tokens) + self.pos.weight[: tokens.shape[1]]
        return self.head(self.norm(self.blocks(x)))


def main():
    parser = argparse.ArgumentParser()
    for name, default in {"steps": 100, "layers": 2, "width": 64, "heads": 4, "vocab": 64, "seq-len": 64,
                          "batch": 8}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Gpt(options.layers, options.width, options.heads, options.vocab, options.seq_len)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95))
    times = []
    for step in range(options.steps + 10):
        tokens = torch.randint(options.vocab, (options.batch, options.seq_len + 1))
        begin = time.perf_counter()
        optimizer.zero_grad()
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        loss.item()
        if step >= 10:
            times.append(time.perf_counter() - begin)
    parameters = sum(p.numel() for p in model.parameters())
    print(f"{parameters} parameters, {1e3 * statistics.median(times):.3f} ms a step")


if __name__ == "__main__":
    main()
