#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The other side of segment-fashion: trains the same U-Net on canvases with PyTorch.

Usage: segment.py FOLDER --updates N [--batch N] [--depth N] [--width N] [--lr RATE] [--seed N]

FOLDER is one of tools/segment_fashion.py. Network, loss, optimizer, schedule and the metrics are
those of recipes/segment-fashion.ini; each image is normalised by itself, as where the micro-batch
is 1. Prints the loss as it goes, then accuracy and mean intersection over union of the test images
as `quern train` does.
"""
import argparse
import pathlib
import struct
import time
import zlib

import torch

CLASSES, MEAN, DEVIATION = 11, 0.3, 0.25


def read_png(path):
    """Grey, 8 bits, rows without a filter: what segment_fashion.py writes."""
    data, at, packed = path.read_bytes(), 8, b''
    while at < len(data):
        size, kind = struct.unpack('>I4s', data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        if kind == b'IHDR':
            width, height = struct.unpack('>II', body[:8])
        packed += body if kind == b'IDAT' else b''
        at += size + 12
    rows = torch.frombuffer(bytearray(zlib.decompress(packed)), dtype=torch.uint8)
    return rows.view(height, width + 1)[:, 1:]


def read_split(folder):
    pairs = []
    for path in sorted(folder.glob('*_mask.png')):
        image = read_png(path.with_name(path.name.replace('_mask', ''))).float() / 255
        pairs.append((((image - MEAN) / DEVIATION)[None, None], read_png(path).long()[None]))
    return pairs


def groups_of(channels):
    """Of the norm, as in src/models/layers.c: up to 8, of at least 2 channels each."""
    return next((n for n in range(8, 1, -1) if channels % n == 0 and channels // n >= 2), 1)


class Level(torch.nn.Sequential):
    """Two convolutions with group norm and ReLU behind each."""

    def __init__(self, before, channels):
        layers = []
        for count in (before, channels):
            layers += [torch.nn.Conv2d(count, channels, 3, padding=1, bias=False),
                       torch.nn.GroupNorm(groups_of(channels), channels), torch.nn.ReLU()]
        super().__init__(*layers)


class UNet(torch.nn.Module):
    def __init__(self, depth, width):
        super().__init__()
        sizes = [width << level for level in range(depth)]
        self.down = torch.nn.ModuleList(map(Level, [1, *sizes], sizes))
        self.double_size = torch.nn.ModuleList(
            torch.nn.ConvTranspose2d(2 * size, size, 2, stride=2) for size in sizes[:-1])
        self.up = torch.nn.ModuleList(Level(2 * size, size) for size in sizes[:-1])
        self.head = torch.nn.Conv2d(width, CLASSES, 1)
        for layer in self.modules():
            if isinstance(layer, torch.nn.Conv2d):
                torch.nn.init.kaiming_normal_(layer.weight)
            elif isinstance(layer, torch.nn.ConvTranspose2d):   # an output sums a weight a channel
                torch.nn.init.normal_(layer.weight, std=(2 / layer.in_channels) ** 0.5)
        for name, values in self.named_parameters():
            if name.endswith('bias'):
                torch.nn.init.zeros_(values)

    def forward(self, x):
        beside = []
        for number, level in enumerate(self.down):
            x = level(torch.nn.functional.max_pool2d(x, 2) if number else x)
            beside.append(x)
        for level in reversed(range(len(self.up))):
            x = self.double_size[level](x, output_size=beside[level].shape[2:])
            x = self.up[level](torch.cat([beside[level], x], 1))
        return self.head(x)


def train(net, images, options):
    optimizer = torch.optim.AdamW(net.parameters(), lr=options.lr, weight_decay=0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, options.lr, total_steps=options.updates, pct_start=0.3, cycle_momentum=False)
    order, start = [], time.monotonic()
    for update in range(1, options.updates + 1):
        total = 0.0
        for _ in range(options.batch):
            order = order or torch.randperm(len(images)).tolist()
            image, mask = images[order.pop()]
            loss = torch.nn.functional.cross_entropy(net(image), mask) / options.batch
            loss.backward()
            total += loss.item()
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if update % 10 == 0 or update == options.updates:
            print(f'update {update}/{options.updates}  loss {total:.4f}  '
                  f'{(time.monotonic() - start) / update:.2f} s an update', flush=True)


@torch.no_grad()
def evaluate(net, images):
    net.eval()
    both = torch.zeros(CLASSES, CLASSES, dtype=torch.long)
    for image, mask in images:
        pairs = mask.flatten() * CLASSES + net(image).argmax(1).flatten()
        both += torch.bincount(pairs, minlength=CLASSES ** 2).view(CLASSES, CLASSES)
    either = both.sum(0) + both.sum(1) - both.diag()
    overlap = (both.diag() / either)[either > 0].mean()
    print(f'test accuracy {100 * both.diag().sum() / both.sum():.2f} %  mean IoU {overlap:.4f}')


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('folder', type=pathlib.Path)
    parser.add_argument('--updates', type=int, required=True)
    parser.add_argument('--batch', type=int, default=4)
    parser.add_argument('--depth', type=int, default=5)
    parser.add_argument('--width', type=int, default=16)
    parser.add_argument('--lr', type=float, default=0.002)
    parser.add_argument('--seed', type=int, default=1)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    torch.set_num_threads(2)
    net = UNet(options.depth, options.width)
    train(net, read_split(options.folder / 'train'), options)
    evaluate(net, read_split(options.folder / 'test'))


if __name__ == '__main__':
    main()
