#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The GPT-2 of text.py and language.py in PyTorch, as the model `gpt` has it.

    gpt.py BATCH LENGTH THREADS

prints as JSON what updates of GPT-2 124M take beyond parameters, gradients and AdamW's states: the bytes
by which the peak of the process (VmHWM) grows over what it has (VmRSS) when all of these exist.
"""
import ctypes
import json
import math
import pathlib
import sys

import torch
from torch import nn

DEVIATION = 0.02
GPT2 = {'layers': 12, 'heads': 12, 'width': 768, 'classes': 50257}


class Block(nn.Module):
    def __init__(self, heads, width):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn, self.attn_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.c_fc, self.mlp_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (part.view(b, t, self.heads, c // self.heads).transpose(1, 2)
                   for part in self.c_attn(self.ln_1(x)).split(c, dim=2))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attn_proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp_proj(nn.functional.gelu(self.c_fc(self.ln_2(x)), approximate='tanh'))


class GPT(nn.Module):
    def __init__(self, layers, heads, width, length, classes):
        super().__init__()
        self.words, self.positions = nn.Embedding(classes, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(heads, width) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                last = DEVIATION / math.sqrt(2 * layers) if 'proj' in name else DEVIATION
                nn.init.normal_(parameter, std=last)
            elif name.endswith('bias'):
                nn.init.zeros_(parameter)

    def forward(self, tokens):
        x = self.words(tokens) + self.positions.weight
        for block in self.blocks:
            x = block(x)
        return self.ln_f(x) @ self.words.weight.T

    def loss(self, rows):
        """Of rows of `length` tokens and the one behind them."""
        logits = self(rows[:, :-1])
        return nn.functional.cross_entropy(logits.flatten(0, 1).float(), rows[:, 1:].flatten())


def updates(batch, length, bf16=False, compiled=False):
    """A function that does one update of GPT-2 124M on random tokens, eagerly or compiled."""
    net = GPT(length=length, **GPT2)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, weight_decay=0, fused=True)
    rows = torch.randint(0, GPT2['classes'], (batch, length + 1))
    loss_of = torch.compile(net.loss) if compiled else net.loss

    def update():
        with torch.autocast(rows.device.type, torch.bfloat16, enabled=bf16):
            loss = loss_of(rows)
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
        return loss.item()
    return update


def of_process(field):
    """Bytes of VmRSS or VmHWM."""
    status = pathlib.Path('/proc/self/status').read_text(encoding='ascii')
    return 1024 * int(status.split(field + ':')[1].split()[0])


def growth(batch, length):
    update = updates(batch, length)
    update()
    ctypes.CDLL(None).malloc_trim(0)
    pathlib.Path('/proc/self/clear_refs').write_text('5', encoding='ascii')  # VmHWM := VmRSS
    before = of_process('VmRSS')
    for _ in range(3):
        update()
    return of_process('VmHWM') - before


def main():
    batch, length, threads = map(int, sys.argv[1:])
    torch.set_num_threads(threads)
    print(json.dumps({'version': f'PyTorch {torch.__version__}', 'bytes': growth(batch, length)}))


if __name__ == '__main__':
    main()
