#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a ResNet-18 in torchvision's layout: names, shapes and counters of
`torchvision.models.resnet18().state_dict()`, random numbers in bf16, 23 MB, in a second.

Usage: resnet18.py FILE.safetensors [CLASSES [SEED]]      (needs Python alone)

He's deviation for convolutions, batch norm near 1 and 0; a head of CLASSES (1000).
"""
import json
import math
import random
import struct
import sys

STAGES = ((64, 64), (64, 128), (128, 256), (256, 512))


def convolution(name, out, into, side):
    return [(f'{name}.weight', (out, into, side, side))]


def norm(name, channels):
    parts = ('weight', 'bias', 'running_mean', 'running_var')
    return [(f'{name}.{part}', (channels,)) for part in parts] + [(f'{name}.num_batches_tracked', ())]


def block(name, into, out):
    tensors = convolution(f'{name}.conv1', out, into, 3) + norm(f'{name}.bn1', out)
    tensors += convolution(f'{name}.conv2', out, out, 3) + norm(f'{name}.bn2', out)
    if into != out:
        tensors += convolution(f'{name}.downsample.0', out, into, 1)
        tensors += norm(f'{name}.downsample.1', out)
    return tensors


def shapes(classes):
    tensors = convolution('conv1', 64, 3, 7) + norm('bn1', 64)
    for number, (into, out) in enumerate(STAGES, 1):
        tensors += block(f'layer{number}.0', into, out) + block(f'layer{number}.1', out, out)
    return tensors + [('fc.weight', (classes, 512)), ('fc.bias', (classes,))]


def numbers(name, shape, rng):
    """bf16 of magnitudes in [1, 2) times the power of two below the deviation, of both signs; one
    near 1 for scales and variances."""
    count = math.prod(shape)
    if len(shape) > 1:
        power = math.floor(math.log2(math.sqrt(2 / math.prod(shape[1:]) / 2.33)))
    else:
        power = 0 if name.endswith(('weight', 'var')) else -7
    signs = (0,) if power == 0 else (0, 0x8000)
    low = [struct.pack('<H', sign | (127 + power) << 7) for sign in signs]
    table = bytes(low[i % len(low)][1] for i in range(256))
    first = rng.randbytes(count).translate(bytes((low[0][0] & 0x80) | i % 128 for i in range(256)))
    out = bytearray(2 * count)
    out[0::2] = first if power else bytes(i % 64 | low[0][0] & 0x80 for i in first)
    out[1::2] = rng.randbytes(count).translate(table)
    return bytes(out)


def write(path, classes=1000, seed=1):
    rng, header, data = random.Random(seed), {}, []
    at = 0
    for name, shape in shapes(classes):
        counter = name.endswith('num_batches_tracked')
        values = struct.pack('<q', 1000) if counter else numbers(name, shape, rng)
        header[name] = {'dtype': 'I64' if counter else 'BF16', 'shape': list(shape),
                        'data_offsets': [at, at + len(values)]}
        data.append(values)
        at += len(values)
    text = json.dumps(header).encode()
    with open(path, 'wb') as file:
        file.write(struct.pack('<Q', len(text)) + text + b''.join(data))


if __name__ == '__main__':
    write(sys.argv[1], *map(int, sys.argv[2:]))
