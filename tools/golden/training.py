#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tests/golden/training.h: what PyTorch makes of a small network in a few updates.

Usage: training.py > tests/golden/training.h      (needs PyTorch; seen with 2.15)

Weights and data are sines, so that the C side makes the same ones. tests/run/golden.c trains the same
network and compares losses, gradient norms, running averages and a bias. The first convolution has no
bias: before batch norm its gradient is rounding noise, which Adam would turn into whole steps.
"""
import math

import torch
from torch import nn

SAMPLES, UPDATES, CLASSES = 12, 6, 5


def sines(count, step, amplitude, shape):
    values = [amplitude * math.sin(step * (i + 1)) for i in range(count)]
    return torch.tensor(values, dtype=torch.float32).reshape(shape)


def fill(parameter, step, amplitude):
    with torch.no_grad():
        parameter.copy_(sines(parameter.numel(), step, amplitude, parameter.shape))


def network():
    net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4),
                        nn.ReLU(), nn.MaxPool2d(2),
                        nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2),
                        nn.Tanh(), nn.Flatten(), nn.Linear(24, CLASSES))
    for index, (_, parameter) in enumerate(net.named_parameters()):
        fill(parameter, 0.7 + 0.31 * index, 0.4)
    with torch.no_grad():
        net[1].weight += 1
    return net


def losses(optimizer_of):
    net = network()
    optimizer = optimizer_of(net)
    x = sines(SAMPLES * 64, 0.713, 1.0, (SAMPLES, 1, 8, 8))
    labels = torch.tensor([(3 * i) % CLASSES if i % 4 else 99 for i in range(SAMPLES)])
    weight = torch.tensor([0.5, 1.0, 2.0, 1.5, 0.25])
    criterion = nn.CrossEntropyLoss(weight=weight, ignore_index=99, label_smoothing=0.1)
    rows = []
    for _ in range(UPDATES):
        optimizer.zero_grad()
        loss = criterion(net(x), labels)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()
        rows.append((loss.item(), norm.item()))
    return rows, net


def numbers(values):
    return "{" + ", ".join(f"{value:.9g}" for value in values) + "}"


# Weight decay spares what has fewer than two dimensions.
def groups(net, decay):
    many = [p for p in net.parameters() if p.dim() > 1]
    few = [p for p in net.parameters() if p.dim() < 2]
    return [{"params": many, "weight_decay": decay}, {"params": few, "weight_decay": 0.0}]


class Adafactor:
    """PyTorch's, which of a convolution's weight is to see the matrix (outputs, all that one of them
    reads): its parameters are such views. eps1 is so small that it does nothing."""

    def __init__(self, net, rate):
        self.seen = {p: nn.Parameter(p.detach().flatten(1) if p.dim() > 1 else p.detach())
                     for p in net.parameters()}
        self.inner = torch.optim.Adafactor(
            [dict(group, params=[self.seen[p] for p in group["params"]])
             for group in groups(net, 0.01)], lr=rate, eps=(1e-30, 1e-3))

    def zero_grad(self):
        for p in self.seen:
            p.grad = None

    def step(self):
        for p, seen in self.seen.items():
            seen.grad = p.grad.reshape(seen.shape)
        self.inner.step()


CASES = {
    "sgd": lambda net: torch.optim.SGD(groups(net, 0.01), lr=0.1, momentum=0.9),
    "nesterov": lambda net: torch.optim.SGD(groups(net, 0.01), lr=0.1, momentum=0.9,
                                            nesterov=True),
    "adam": lambda net: torch.optim.Adam(groups(net, 0.01), lr=0.02),
    "adamw": lambda net: torch.optim.AdamW(groups(net, 0.01), lr=0.02, betas=(0.8, 0.95)),
    "adafactor": lambda net: Adafactor(net, 0.45),
}


def main():
    print("/* SPDX-License-Identifier: MIT")
    print(" *")
    print(f" * Made by tools/golden/training.py with PyTorch {torch.__version__}. */")
    print("static const struct golden golden[] = {")
    for name, optimizer_of in CASES.items():
        rows, net = losses(optimizer_of)
        print(f'    {{"{name}",')
        print(f"     {numbers(row[0] for row in rows)},")
        print(f"     {numbers(row[1] for row in rows)},")
        print(f"     {numbers(net[1].running_mean.tolist())},")
        print(f"     {numbers(net[1].running_var.tolist())},")
        print(f"     {numbers(net[7].bias.tolist())}}},")
    print("};")


if __name__ == "__main__":
    main()
