#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One process of PyTorch's DistributedDataParallel over gloo, for members.py:

    ddp.py RANK RANKS PORT UPDATES SAMPLES demonstration|gpt [LAYERS HEADS WIDTH LENGTH]

It has one thread, the network of the recipe and a batch of SAMPLES random samples of its own. Rank 0 prints
{"version": ..., "seconds": [of each update]}.
"""
import json
import sys
import time

import torch
from torch import distributed, nn

from gpt import GPT
from peers import demonstration

CLASSES = 256  # of the GPT: bytes


class Language(nn.Module):
    """GPT.loss as a forward pass, which is what DistributedDataParallel wraps."""

    def __init__(self, layers, heads, width, length):
        super().__init__()
        self.net = GPT(layers, heads, width, length, CLASSES)

    def forward(self, rows):
        return self.net.loss(rows)


class Pictures(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = demonstration(torch)

    def forward(self, images, labels):
        return nn.functional.cross_entropy(self.net((images / 255 - 0.286) / 0.353), labels)


def prepare(samples, name, size):
    """(network, its inputs)"""
    if name == 'demonstration':
        images = torch.randint(0, 256, (samples, 1, 28, 28), dtype=torch.uint8)
        return Pictures(), (images, torch.randint(0, 10, (samples,)))
    return Language(*size), (torch.randint(0, CLASSES, (samples, size[3] + 1)),)


def main():
    rank, ranks, port, updates, samples = map(int, sys.argv[1:6])
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    distributed.init_process_group('gloo', f'tcp://127.0.0.1:{port}', rank=rank, world_size=ranks)
    net, inputs = prepare(samples, sys.argv[6], tuple(map(int, sys.argv[7:])))
    net = nn.parallel.DistributedDataParallel(net, gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)
    seconds = []
    for _ in range(updates):
        began = time.perf_counter()
        optimizer.zero_grad()
        loss = net(*inputs)
        loss.backward()
        optimizer.step()
        loss.item()
        seconds.append(time.perf_counter() - began)
    if rank == 0:
        print(json.dumps({'version': f'PyTorch {torch.__version__}', 'seconds': seconds}))
    distributed.destroy_process_group()


if __name__ == '__main__':
    main()
