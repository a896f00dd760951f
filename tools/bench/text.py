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

LAYERS, HEADS, WIDTH, LENGTH, CLASSES = 4, 4, 128, 128, 256
BATCH, HELD_OUT, DEVIATION = 32, 0.05, 0.02
LR, LR_END, WARMUP, BETAS, DECAY, CLIP = 0.002, 0.0002, 50, (0.9, 0.99), 0.1, 1.0


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.c_attn, self.attn_proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.c_fc, self.mlp_proj = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (part.view(b, t, HEADS, c // HEADS).transpose(1, 2)
                   for part in self.c_attn(self.ln_1(x)).split(c, dim=2))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attn_proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp_proj(nn.functional.gelu(self.c_fc(self.ln_2(x)), approximate='tanh'))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.positions = nn.Embedding(CLASSES, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.ln_f = nn.LayerNorm(WIDTH)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                last = DEVIATION / math.sqrt(2 * LAYERS) if 'proj' in name else DEVIATION
                nn.init.normal_(parameter, std=last)
            elif name.endswith('bias'):
                nn.init.zeros_(parameter)

    def forward(self, tokens):
        x = self.words(tokens) + self.positions.weight
        for block in self.blocks:
            x = block(x)
        return self.ln_f(x) @ self.words.weight.T

    def loss(self, rows):
        logits = self(rows[:, :-1])
        return nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())


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
    train(GPT(), samples(text[:end]), samples(text[end:]), options)


if __name__ == '__main__':
    main()
