#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tests/golden/networks.h: what PyTorch makes of torchvision's networks, of small GPTs and of
a U-Net.

Usage: networks.py > tests/golden/networks.h      (needs PyTorch and torchvision; seen with 1.13.1
                                                   and 0.14.1, four minutes)

Weights and data are numbers of Philox4x32-10, which src/base/random.c has, too: no weight is stored.
Of every tensor there are two numbers: the Euclidean norm of a parameter's gradient and its product
with a random vector of the same generator; of a running average, the same two of what it is after one
batch; and of the logits in evaluation. All is computed in double. With --rounding, the distances from the same in single
precision go to standard error: they say what a test can ask for. Of the gradients that is little:
among millions of values some are so near to 0 that rounding decides what ReLU does with them.
"""
import math
import sys
from dataclasses import dataclass

import numpy as np
import torch
import torchvision
from torch import nn
from torchvision.models.vgg import VGG, cfgs, make_layers

SEED, SAMPLES, SQUARE = 2026, 4, 8
# streams of random numbers: tensor i has i and PROBE + i
PROBE, INPUT, LABELS, LOGITS = 1 << 32, 1 << 33, (1 << 33) + 1, (1 << 33) + 2
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


def images(size):
    """Coloured squares with some noise: noise alone would look alike everywhere after some layers,
    and batch norm would leave rounding."""
    shape = (SAMPLES, *size)
    noise = bits(INPUT, int(np.prod(shape))).reshape(shape) % np.uint64(256)
    rows, columns = (np.arange(side) // SQUARE * SQUARE for side in size[1:])
    pixels = (np.uint64(7) * noise[:, :, rows][:, :, :, columns] + noise) // np.uint64(8)
    mean, deviation = (torch.tensor(v).double().reshape(3, 1, 1) for v in (MEAN, DEVIATION))
    return (torch.from_numpy(pixels.astype(np.float64)) / 255 - mean) / deviation


def integers(stream, shape, below):
    values = bits(stream, int(np.prod(shape))) % np.uint64(below)
    return torch.from_numpy(values.astype(np.int64).reshape(shape))


def summary(values, stream):
    values = values.detach().double().numpy().reshape(-1)
    return np.linalg.norm(values), values @ uniform(stream, len(values))


def loss_of(logits, labels):
    """Classes are the second dimension of images, the last of all else."""
    rows = logits.movedim(1, -1) if logits.dim() == 4 else logits
    return nn.functional.cross_entropy(rows.flatten(0, -2), labels)


def measure(network, dtype):
    """Of the logits, the loss and every tensor."""
    net = network.make()
    shapes = {name: tuple(value.shape) for name, value in net.state_dict().items()}
    net.load_state_dict({name: start(name, shape, i) if shape else torch.tensor(0)
                         for i, (name, shape) in enumerate(shapes.items())})
    net = net.to(dtype)
    x = network.input()
    x = x.to(dtype) if x.is_floating_point() else x
    labels = integers(LABELS, SAMPLES * network.labels, network.classes)
    logits = summary(net.eval()(x), LOGITS)
    loss = loss_of(net.train()(x), labels)
    loss.backward()
    values = {name: value.grad for name, value in net.named_parameters()}
    values = {**net.state_dict(), **values}
    rows = [(name, shape, *summary(values[name], PROBE + i)) for i, (name, shape)
            in enumerate(shapes.items())]
    return logits, loss.item(), rows


def distance(got, want, least=0):
    return max(abs(g - w) for g, w in zip(got, want)) / (want[0] + least)


def report(name, got, want):
    largest = max(row[2] for row in want[2] if row[1])
    worst = max((distance(g[2:], w[2:], 1e-4 * largest), g[0])
                for g, w in zip(got[2], want[2]) if g[1])
    print(f"{name}: logits {distance(got[0], want[0]):.1e}, loss {abs(got[1] - want[1]):.1e}, "
          f"worst tensor {worst[0]:.1e} ({worst[1]})", file=sys.stderr)


# --- networks ---

@dataclass
class Network:
    name: str
    model: str
    options: dict
    size: tuple         # channels, height, width of the data
    classes: int
    labels: int         # of one sample
    make: callable

    def input(self):
        if self.model == "gpt":
            return integers(INPUT, (SAMPLES, self.size[2]), self.classes)
        return images(self.size)


def pictures(name, model, options, side, make):
    return Network(name, model, options, (3, side, side), 10, 1, make)


def residual(depth):
    return pictures(f"resnet{depth}", "resnet", {"depth": depth, "group": SAMPLES}, 64,
                    lambda: getattr(torchvision.models, f"resnet{depth}")(num_classes=10))


def vgg(letter, norm, pool, hidden):
    """torchvision's, with a smaller classifier."""
    net = VGG(make_layers(cfgs[letter], batch_norm=norm), num_classes=10, init_weights=False)
    net.avgpool = nn.AdaptiveAvgPool2d(pool)
    net.classifier = nn.Sequential(
        nn.Linear(512 * pool * pool, hidden), nn.ReLU(True), nn.Dropout(0),
        nn.Linear(hidden, hidden), nn.ReLU(True), nn.Dropout(0), nn.Linear(hidden, 10))
    return net


def plain(depth, norm, side, pool):
    letter, hidden = {11: "A", 13: "B", 16: "D", 19: "E"}[depth], 48
    options = {"depth": depth, "pool": pool, "hidden": hidden, "dropout": 0}
    if norm:
        options |= {"batch_norm": 1, "group": SAMPLES}
    return pictures(f"vgg{depth}" + ("_bn" if norm else ""), "vgg", options, side,
                    lambda: vgg(letter, norm, pool, hidden))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (part.reshape(b, t, self.heads, -1).transpose(1, 2)
                   for part in self.c_attn(x).split(c, dim=2))
        scores = q @ k.transpose(2, 3) / math.sqrt(c // self.heads)
        later = torch.ones(t, t, dtype=torch.bool).triu(1)
        y = scores.masked_fill(later, -math.inf).softmax(-1) @ v
        return self.c_proj(y.transpose(1, 2).reshape(b, t, c))


class MLP(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc = nn.Linear(width, 4 * width)
        self.c_proj = nn.Linear(4 * width, width)

    def forward(self, x):
        return self.c_proj(nn.functional.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(width), Attention(width, heads)
        self.ln_2, self.mlp = nn.LayerNorm(width), MLP(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """With the names of nanoGPT."""

    def __init__(self, layers, heads, width, length, vocabulary, tied):
        super().__init__()
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(vocabulary, width), "wpe": nn.Embedding(length, width),
            "h": nn.ModuleList(Block(width, heads) for _ in range(layers)),
            "ln_f": nn.LayerNorm(width)})
        self.lm_head = None if tied else nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        parts = self.transformer
        x = parts.wte(tokens) + parts.wpe.weight
        for block in parts.h:
            x = block(x)
        x = parts.ln_f(x)
        return self.lm_head(x) if self.lm_head else x @ parts.wte.weight.T


def gpt(name, tied, fused):
    options = {"layers": 3, "heads": 2, "width": 48, "tied": int(tied), "fused": int(fused)}
    return Network(name, "gpt", options, (1, 1, 20), 65, 20,
                   lambda: GPT(3, 2, 48, 20, 65, tied))


class Level(nn.Module):
    """Two convolutions with batch norm; on the way up, behind what doubles the image (`double`, as
    Quern names it, is a method of every module, too: it is found among the modules alone)."""

    def __init__(self, before, channels, up):
        super().__init__()
        if up:
            self.double = nn.ConvTranspose2d(before, channels, 2, stride=2)
        self.conv1 = nn.Conv2d(2 * channels if up else before, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x, beside=None):
        if beside is not None:
            x = self._modules["double"](x, output_size=beside.shape[2:])
            x = torch.cat([beside, x], 1)
        return self.bn2(self.conv2(self.bn1(self.conv1(x)).relu())).relu()


class UNet(nn.Module):
    def __init__(self, depth, width, classes):
        super().__init__()
        sizes = [width << level for level in range(depth)]
        for number, (before, channels) in enumerate(zip([3, *sizes], sizes)):
            self.add_module(f"down{number}", Level(before, channels, False))
        for number in range(depth - 1):
            self.add_module(f"up{number}", Level(sizes[number + 1], sizes[number], True))
        self.head = nn.Conv2d(width, classes, 1)
        self.depth = depth

    def forward(self, x):
        beside = []
        for number in range(self.depth):
            x = self._modules[f"down{number}"](nn.functional.max_pool2d(x, 2) if number else x)
            beside.append(x)
        for number in reversed(range(self.depth - 1)):
            x = self._modules[f"up{number}"](x, beside[number])
        return self.head(x)


def segmentation(depth, width, height, columns, classes):
    """Sides that are odd at one level or another."""
    options = {"depth": depth, "width": width, "group": SAMPLES, "norm": "batch"}
    return Network("unet", "unet", options, (3, height, columns), classes, height * columns,
                   lambda: UNet(depth, width, classes))


NETWORKS = [residual(depth) for depth in (18, 34, 50, 101, 152)] + [
    plain(11, False, 224, 7), plain(13, False, 64, 2), plain(16, False, 64, 1),
    plain(19, False, 64, 2), plain(11, True, 64, 1), plain(13, True, 64, 2),
    plain(16, True, 64, 2), plain(19, True, 64, 1), gpt("gpt_tied", True, True),
    gpt("gpt", False, True), gpt("gpt_steps", True, False), segmentation(4, 6, 41, 30, 5)]


# --- writing ---

def numbers(values):
    return ", ".join(f"{value:.9g}" for value in values)


def write(network, result):
    logits, loss, rows = result
    print(f"static const struct golden_tensor {network.name}_tensors[] = {{")
    for tensor, shape, norm, probe in rows:
        dims = f"{{{len(shape)}, {{{', '.join(map(str, shape)) or 0}}}}}"
        print(f'    {{"{tensor}", {dims}, {numbers([norm, probe])}}},')
    print("};")
    options = network.options
    texts = ", ".join(f'{{"{key}", "{value}"}}' for key, value in options.items())
    size = ", ".join(map(str, network.size))
    return (f'    {{"{network.name}", "{network.model}", {{{texts}}}, {len(options)},\n'
            f"     {{{size}}}, {network.classes}, {network.labels}, {{{numbers(logits)}}}, "
            f"{numbers([loss])}, {network.name}_tensors, {len(rows)}}},")


def main():
    lines = []
    print("/* SPDX-License-Identifier: MIT")
    print(" *")
    print(f" * Made by tools/golden/networks.py with PyTorch {torch.__version__} and torchvision")
    print(f" * {torchvision.__version__}. */")
    for network in NETWORKS:
        result = measure(network, torch.float64)
        if "--rounding" in sys.argv:
            report(network.name, measure(network, torch.float32), result)
        lines.append(write(network, result))
    print("static const struct golden_network networks[] = {")
    print("\n".join(lines))
    print("};")


if __name__ == "__main__":
    main()
