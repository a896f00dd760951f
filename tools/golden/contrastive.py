#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tests/golden/contrastive.h: contrastive.py > tests/golden/contrastive.h.

Two towers tanh(W x) after 50 updates of plain gradient descent, by PyTorch's autograd in double: on the
mean over micro-steps of InfoNCE (ContAccum, Kim et al. 2024, equations 1 to 7), with banks of the
last vectors, detached, that earlier micro-steps made; and on the whole batch. Banks may start after so
many updates, or be limited to fewer vectors from then on.
"""
import math

import torch

WIDE, CODE, BATCH, MICRO, UPDATES, CHANGE = 6, 4, 11, 4, 50, 20
TEMPERATURE, RATE = 0.5, 0.3


def data(sample, side):
    return [math.sin(1.7 * sample + 0.9 * k + 0.1 * (sample % 13) * k + 2 * side)
            for k in range(WIDE)]


def rows(first, count, side):
    return torch.tensor([data(i, side) for i in range(first, first + count)], dtype=torch.float64)


def start(side):
    return torch.tensor([[0.5 * math.sin(c * WIDE + k + 3 * side) for k in range(WIDE)]
                         for c in range(CODE)], dtype=torch.float64, requires_grad=True)


def info_nce(queries, passages, of, symmetric):
    """The mean over the first `of` queries, whose passages have the same numbers."""
    scores = queries @ passages.T / TEMPERATURE
    own = torch.arange(of)
    loss = torch.nn.functional.cross_entropy(scores[:of], own)
    if symmetric:
        loss = (loss + torch.nn.functional.cross_entropy(scores.T[:of], own)) / 2
    return loss


def cycle(towers, banks, first, micro, bank, query_bank, symmetric):
    starts = range(0, BATCH, micro)
    for at in starts:
        count = min(micro, BATCH - at)
        own = [torch.tanh(rows(first + at, count, side) @ towers[side].T) for side in (0, 1)]
        both = [torch.cat([own[side], banks[side]]) for side in (0, 1)]
        queries = both[0] if query_bank else own[0]
        loss = info_nce(queries, both[1], len(queries), symmetric)
        (loss / len(starts)).backward()
        for side in (0, 1):
            banks[side] = torch.cat([banks[side], own[side].detach()])[-bank or BATCH * UPDATES:]
            banks[side] = banks[side] if bank else banks[side][:0]


def train(micro, before, after, query_bank=True, symmetric=False):
    """Banks of `before` vectors, and of `after` from the update CHANGE on."""
    towers = [start(0), start(1)]
    banks = [torch.zeros(0, CODE, dtype=torch.float64) for _ in towers]
    for update in range(UPDATES):
        bank = before if update < CHANGE else after
        banks = [all_of[len(all_of) - min(bank, len(all_of)):] for all_of in banks]
        cycle(towers, banks, update * BATCH, micro, bank, query_bank, symmetric)
        with torch.no_grad():
            for w in towers:
                w -= RATE * w.grad
                w.grad.zero_()
    return torch.cat([w.detach().flatten() for w in towers]).tolist()


CASES = (('whole', (BATCH, 0, 0)), ('whole_symmetric', (BATCH, 0, 0, True, True)),
         ('accumulate', (MICRO, 0, 0)), ('contaccum', (MICRO, 7, 7)),
         ('contaccum_symmetric', (MICRO, 7, 7, True, True)), ('passages_alone', (MICRO, 7, 7, False)),
         ('late', (MICRO, 0, 7)), ('limited', (MICRO, 7, 3)))


def main():
    print('/* SPDX-License-Identifier: MIT\n *\n * Made by tools/golden/contrastive.py; see there. */')
    print(f'enum {{ WIDE = {WIDE}, CODE = {CODE}, BATCH = {BATCH}, MICRO = {MICRO}, '
          f'UPDATES = {UPDATES}, CHANGE = {CHANGE} }};')
    for name, how in CASES:
        numbers = ', '.join(f'{x:.9g}' for x in train(*how))
        print(f'static const double golden_{name}[] = {{{numbers}}};')


if __name__ == '__main__':
    main()
