#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The other side of gpt-kjv: trains the same GPT on the same text with PyTorch.

Usage: text.py FILE [--updates N] [--evaluate N] [--seed N]

Network, start, loss, optimizer, schedule and splits are those of recipes/gpt-kjv.ini; the order of the
samples is another. Prints the loss as it goes, and for the held-out samples the loss and bits per byte
as `quern train` does, and the median seconds of an update.
"""
import argparse
import math
import pathlib
import statistics
import time

import torch
from torch import nn

from gpt import GPT

LAYERS, HEADS, WIDTH, LENGTH, CLASSES = 4, 4, 128, 128, 256
BATCH, HELD_OUT = 32, 0.05
LR, LR_END, WARMUP, BETAS, DECAY, CLIP = 0.002, 0.0002, 50, (0.9, 0.99), 0.1, 1.0


def samples(text):
    """Rows of LENGTH tokens and the one behind them."""
    count = (len(text) - 1) // LENGTH
    return text[:count * LENGTH + 1].unfold(0, LENGTH + 1, LENGTH)


def rate(update, updates):
    if update < WARMUP:
        return (update + 1) / WARMUP
    part = (update - WARMUP) / (updates - WARMUP)
    return (LR_END + (LR - LR_END) * (1 + math.cos(math.pi * part)) / 2) / LR


@torch.no_grad()
def evaluate(net, rows, update):
    total = sum(net.loss(part.long()).item() * len(part) for part in rows.split(BATCH))
    loss = total / len(rows)
    print(f'update {update}  test loss {loss:.4f}  perplexity {math.exp(loss):.4g}  '
          f'{loss / math.log(2):.4f} bits/byte', flush=True)


def train(net, rows, held_out, options):
    groups = [{'params': [p for p in net.parameters() if p.dim() > 1], 'weight_decay': DECAY},
              {'params': [p for p in net.parameters() if p.dim() < 2], 'weight_decay': 0}]
    optimizer = torch.optim.AdamW(groups, lr=LR, betas=BETAS, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda u: rate(u, options.updates))
    order, seconds = torch.empty(0, dtype=torch.long), []
    for update in range(1, options.updates + 1):
        if len(order) < BATCH:
            order = torch.cat([order, torch.randperm(len(rows))])
        start = time.monotonic()
        loss = net.loss(rows[order[:BATCH]].long())
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), CLIP)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        seconds.append(time.monotonic() - start)
        order = order[BATCH:]
        if update % 50 == 0:
            print(f'update {update}/{options.updates}  loss {loss.item():.4f}', flush=True)
        if update % options.evaluate == 0 or update == options.updates:
            evaluate(net, held_out, update)
    print(f'{statistics.median(seconds):.3f} s an update (median)')


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('file', type=pathlib.Path)
    parser.add_argument('--updates', type=int, default=600)
    parser.add_argument('--evaluate', type=int, default=200)
    parser.add_argument('--seed', type=int, default=1)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.set_num_threads(2)
    text = torch.frombuffer(bytearray(options.file.read_bytes()), dtype=torch.uint8)
    end = len(text) - int(HELD_OUT * len(text))
    print(f'PyTorch {torch.__version__}')
    net = GPT(LAYERS, HEADS, WIDTH, LENGTH, CLASSES)
    train(net, samples(text[:end]), samples(text[end:]), options)


if __name__ == '__main__':
    main()
