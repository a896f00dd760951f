#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tests/golden/predict: what PyTorch predicts for small pictures with small networks.

Usage: predict.py tests/golden/predict      (needs PyTorch and Pillow; seen with 1.13.1 and 9.4)

Six pictures, NETWORK.safetensors with random weights of a cnn and a unet, and predictions.json: the
probabilities of the classes of each picture by the cnn, the class of each pixel by the unet, one
letter each ('a' is class 0). Pixels whose two best logits are nearer than 1e-3 are '.': rounding may
decide them.
"""
import json
import pathlib
import random
import struct
import sys

import torch
from PIL import Image
from torch import nn

HEIGHT, WIDTH, PICTURES, CLASSES = 16, 20, 6, 5
MEAN, DEVIATION = (0.5, 0.45, 0.4), (0.25, 0.3, 0.2)
CLOSE = 1e-3


class CNN(nn.Module):
    """Quern's cnn of width 8."""

    def __init__(self):
        super().__init__()
        for i, (before, after) in enumerate(((3, 8), (8, 8), (8, 16), (16, 16), (16, 32)), 1):
            self.add_module(f'conv{i}', nn.Conv2d(before, after, 3, padding=1, bias=False))
            self.add_module(f'bn{i}', nn.BatchNorm2d(after))
        self.fc = nn.Linear(32, CLASSES)

    def forward(self, x):
        for i in range(1, 6):
            x = self._modules[f'bn{i}'](self._modules[f'conv{i}'](x)).relu()
            x = nn.functional.max_pool2d(x, 2) if i in (2, 4) else x
        return self.fc(x.mean((2, 3)))


class Level(nn.Module):
    """`double`, as Quern names it, is a method of every module, too."""

    def __init__(self, before, channels, up):
        super().__init__()
        if up:
            self._modules['double'] = nn.ConvTranspose2d(before, channels, 2, stride=2)
        self.conv1 = nn.Conv2d(2 * channels if up else before, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x, beside=None):
        if beside is not None:
            x = torch.cat([beside, self._modules['double'](x)], 1)
        return self.bn2(self.conv2(self.bn1(self.conv1(x)).relu())).relu()


class UNet(nn.Module):
    """Quern's unet of depth 2 and width 4 with batch norm."""

    def __init__(self):
        super().__init__()
        self.down0, self.down1 = Level(3, 4, False), Level(4, 8, False)
        self.up0, self.head = Level(8, 4, True), nn.Conv2d(4, CLASSES, 1)

    def forward(self, x):
        beside = self.down0(x)
        return self.head(self.up0(self.down1(nn.functional.max_pool2d(beside, 2)), beside))


def save(path, tensors):
    """A safetensors file of f32."""
    header, data = {}, b''
    for name, value in tensors.items():
        values = value.reshape(-1).tolist()
        header[name] = {'dtype': 'F32', 'shape': list(value.shape),
                        'data_offsets': [len(data), len(data) + 4 * len(values)]}
        data += struct.pack(f'<{len(values)}f', *values)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack('<Q', len(text)) + text + data)


def draw(folder, number):
    """Blots on a ground, with noise."""
    rng = random.Random(number)
    blots = [(rng.randrange(HEIGHT), rng.randrange(WIDTH), rng.randrange(9, 60),
              [rng.randrange(256) for _ in range(3)]) for _ in range(4)]
    picture = Image.new('RGB', (WIDTH, HEIGHT))
    for y in range(HEIGHT):
        for x in range(WIDTH):
            colour = [128, 128, 128]
            for top, left, size, value in blots:
                colour = value if (y - top) ** 2 + (x - left) ** 2 < size else colour
            picture.putpixel((x, y), tuple(min(255, c + rng.randrange(16)) for c in colour))
    picture.save(folder / f'{number}.png')
    values = torch.tensor(list(picture.getdata()), dtype=torch.float64).T
    mean, deviation = (torch.tensor(v).double().reshape(3, 1) for v in (MEAN, DEVIATION))
    return ((values / 255 - mean) / deviation).reshape(3, HEIGHT, WIDTH)


def make(network, seed):
    """Averages as if it had been trained, and a last layer that decides."""
    torch.manual_seed(seed)
    net = network().eval()
    for name, value in net.state_dict().items():
        if name.endswith('running_mean'):
            value.normal_(0, 0.2)
        elif name.endswith('running_var'):
            value.uniform_(0.1, 0.6)
        elif name in ('fc.weight', 'head.weight'):
            value.mul_(6)
    return net


def letters(logits):
    best, label = logits.topk(2, dim=0)
    close = (best[0] - best[1] < CLOSE).reshape(-1).tolist()
    return ''.join('.' if near else chr(ord('a') + c)
                   for near, c in zip(close, label[0].reshape(-1).tolist()))


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    x = torch.stack([draw(folder, number) for number in range(PICTURES)])
    cnn, unet = make(CNN, 1), make(UNet, 2)
    with torch.no_grad():  # no class is above all others everywhere
        cnn.fc.bias -= cnn(x.float()).mean(0)
        unet.head.bias -= unet(x.float()).mean((0, 2, 3))
    for name, net in (('cnn', cnn), ('unet', unet)):
        save(folder / f'{name}.safetensors', {key: value for key, value in net.state_dict().items()
                                              if value.dtype == torch.float32})
    with torch.no_grad():
        shares = cnn.double()(x).softmax(1).tolist()
        masks = [letters(logits) for logits in unet.double()(x)]
    (folder / 'predictions.json').write_text(json.dumps(
        {f'{i}.png': {'probabilities': [round(p, 9) for p in shares[i]], 'mask': masks[i]}
         for i in range(PICTURES)}, indent=1) + '\n')


main()
