#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tests/golden/networks.h: what PyTorch makes of torchvision's networks.

Usage: networks.py > tests/golden/networks.h      (needs PyTorch and torchvision; seen with 1.13.1
                                                   and 0.14.1, two minutes)

Weights and images are numbers of Philox4x32-10, which src/base/random.c has, too: no weight is
stored. Of every tensor there are two numbers: the Euclidean norm of a parameter's gradient and its
product with a random vector of the same generator; of a running average, the same two of what it is
after one batch. All is computed in double. With --rounding, the distances from the same in single
precision go to standard error: they say what a test can ask for. Of the gradients that is little:
among millions of values some are so near to 0 that rounding decides what ReLU does with them.
"""
import sys

import numpy as np
import torch
import torchvision
from torch import nn
from torchvision.models.vgg import VGG, cfgs, make_layers

SEED, SAMPLES, CLASSES, SQUARE = 2026, 4, 10, 8
PROBE, IMAGES, LABELS = 1 << 32, 1 << 33, (1 << 33) + 1     # streams; tensors have 0, 1, 2 ...
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
LOW = np.uint64(0xffffffff)
PART = 1 << 20


def philox(index, stream):
    """The first two words of the blocks with these counters, as one number each."""
    c = [index & LOW, index >> np.uint64(32), np.uint64(stream) & LOW, np.uint64(stream >> 32)]
    k = [SEED & 0xffffffff, SEED >> 32]
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [p1 >> np.uint64(32) ^ c[1] ^ np.uint64(k[0]), p1 & LOW,
             p0 >> np.uint64(32) ^ c[3] ^ np.uint64(k[1]), p0 & LOW]
        k = [(k[0] + 0x9E3779B9) & 0xffffffff, (k[1] + 0xBB67AE85) & 0xffffffff]
    return c[0] << np.uint64(32) | c[1]


def bits(stream, count):
    parts = [philox(np.arange(at, min(at + PART, count), dtype=np.uint64), stream)
             for at in range(0, count, PART)]
    return np.concatenate(parts)


def uniform(stream, count):
    """In [-1, 1)."""
    return (bits(stream, count) >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1


def start(name, shape, stream):
    """The value of a tensor, in single precision: activations neither vanish nor grow, and the last
    batch norm of a deep block counts little, or every block would double the rounding."""
    u = uniform(stream, int(np.prod(shape)))
    if name.endswith("running_var"):
        u = 1 + 0.5 * u
    elif len(shape) > 1:
        u *= np.sqrt(6 / np.prod(shape[1:]))
    elif name.endswith("weight"):
        u = (0.5 + 0.2 * u) * (0.2 if "bn3" in name else 1)
    else:
        u *= 0.1
    return torch.from_numpy(u.astype(np.float32).reshape(shape))


def data(side):
    """Images of coloured squares with some noise: noise alone would look alike everywhere after some
    layers, and batch norm would leave rounding."""
    noise = bits(IMAGES, SAMPLES * 3 * side * side).reshape(SAMPLES, 3, side, side) % np.uint64(256)
    corners = np.arange(side) // SQUARE * SQUARE
    images = (np.uint64(7) * noise[:, :, corners][:, :, :, corners] + noise) // np.uint64(8)
    images = torch.from_numpy(images.astype(np.float64)) / 255
    labels = torch.from_numpy((bits(LABELS, SAMPLES) % np.uint64(CLASSES)).astype(np.int64))
    mean, deviation = (torch.tensor(v).double().reshape(3, 1, 1) for v in (MEAN, DEVIATION))
    return (images - mean) / deviation, labels


def summary(values, index):
    values = values.detach().double().numpy().reshape(-1)
    return np.linalg.norm(values), values @ uniform(PROBE + index, len(values))


def measure(net, side, dtype):
    """Logits in evaluation, loss, and the two numbers of every tensor."""
    shapes = {name: tuple(value.shape) for name, value in net.state_dict().items()}
    net.load_state_dict({name: start(name, shape, i) if shape else torch.tensor(0)
                         for i, (name, shape) in enumerate(shapes.items())})
    net = net.to(dtype)
    images, labels = data(side)
    logits = net.eval()(images.to(dtype)).detach()
    loss = nn.functional.cross_entropy(net.train()(images.to(dtype)), labels)
    loss.backward()
    values = dict(net.named_parameters())
    rows = [(name, shape, *summary(values[name].grad if name in values else net.state_dict()[name], i))
            for i, (name, shape) in enumerate(shapes.items())]
    return logits.double().numpy().reshape(-1), loss.item(), rows


def report(name, got, want):
    logits = np.max(np.abs(got[0] - want[0])) / np.max(np.abs(want[0]))
    largest = max(row[2] for row in want[2] if row[1])
    rows = [(max(abs(g[2] - w[2]), abs(g[3] - w[3])) / (w[2] + 1e-4 * largest), g[0])
            for g, w in zip(got[2], want[2]) if g[1]]
    print(f"{name}: logits {logits:.1e}, loss {abs(got[1] - want[1]):.1e}, "
          f"worst tensor {max(rows)[0]:.1e} ({max(rows)[1]})", file=sys.stderr)


# --- networks ---

def vgg(letter, norm, pool, hidden):
    """torchvision's, with a smaller classifier."""
    net = VGG(make_layers(cfgs[letter], batch_norm=norm), num_classes=CLASSES, init_weights=False)
    net.avgpool = nn.AdaptiveAvgPool2d(pool)
    net.classifier = nn.Sequential(
        nn.Linear(512 * pool * pool, hidden), nn.ReLU(True), nn.Dropout(0),
        nn.Linear(hidden, hidden), nn.ReLU(True), nn.Dropout(0), nn.Linear(hidden, CLASSES))
    return net


def residual(depth):
    make = getattr(torchvision.models, f"resnet{depth}")
    return (f"resnet{depth}", "resnet", {"depth": depth, "group": SAMPLES}, 64,
            lambda: make(num_classes=CLASSES))


NETWORKS = [residual(depth) for depth in (18, 34, 50, 101, 152)]


# --- writing ---

def number(value):
    return f"{value:.9g}"


def write(name, model, options, side, result):
    logits, loss, rows = result
    print(f"static const struct golden_tensor {name}_tensors[] = {{")
    for tensor, shape, norm, probe in rows:
        dims = f"{{{len(shape)}, {{{', '.join(map(str, shape)) or 0}}}}}"
        print(f'    {{"{tensor}", {dims}, {number(norm)}, {number(probe)}}},')
    print("};")
    texts = ", ".join(f'{{"{key}", "{value}"}}' for key, value in options.items())
    return (f'    {{"{name}", "{model}", {{{texts}}}, {len(options)}, {side},\n'
            f"     {{{', '.join(map(number, logits))}}}, {number(loss)},\n"
            f"     {name}_tensors, {len(rows)}}},")


def main():
    lines = []
    print("/* SPDX-License-Identifier: MIT")
    print(" *")
    print(f" * Made by tools/golden/networks.py with PyTorch {torch.__version__} and torchvision")
    print(f" * {torchvision.__version__}. */")
    for name, model, options, side, make in NETWORKS:
        result = measure(make(), side, torch.float64)
        if "--rounding" in sys.argv:
            report(name, measure(make(), side, torch.float32), result)
        lines.append(write(name, model, options, side, result))
    print("static const struct golden_network networks[] = {")
    print("\n".join(lines))
    print("};")


if __name__ == "__main__":
    main()
