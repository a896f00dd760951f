#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""finetune.py PROGRAM WEIGHTS: a ResNet-18 in torchvision's layout (WEIGHTS makes one) gets a new
head for two classes of pictures: what is frozen keeps its bits and costs nothing, the head is drawn
anew and told, and weights that do not fit are refused. Then the recipe for own pictures."""
import json
import math
import re
import struct
import subprocess
import sys

from bad_input import check
from images import CLASSES, write_pictures
from support import Bench

SMALL = ['--micro-batch', 8, '--batch', 8, '--set', 'data.size=72', '--set', 'data.crop=64', '--set',
         'memory.tune=off', '--set', 'data.random_crop=no']


def tensors(path):
    """Name: (type, shape, bytes)"""
    whole = path.read_bytes()
    size = struct.unpack('<Q', whole[:8])[0]
    header = json.loads(whole[8:8 + size])
    header.pop('__metadata__', None)
    return {name: (e['dtype'], e['shape'], whole[8 + size:][slice(*e['data_offsets'])])
            for name, e in header.items()}


def widened(data):
    """f32 of the same numbers as bf16."""
    out = bytearray(2 * len(data))
    out[2::4], out[3::4] = data[0::2], data[1::2]
    return bytes(out)


def check_head(bench):
    out = bench.good('train', 'finetune-resnet18', *SMALL, '--data', 'pictures/train', '--steps', 6,
                     '--out', 'run')
    bench.expect('weights: fc.*: of 1000 classes there, 2 here, and so random' in out, out)
    saved = re.search(r'frozen: (\d+) parameters in 60 tensors, saves (\d+) MiB', out)
    bench.expect(saved and saved[1] == '11176512' and saved[2] == '128', f'{saved and saved[0]}')
    before = tensors(bench.folder / 'resnet18.safetensors')
    after = tensors(bench.folder / 'run/last/weights.safetensors')
    for name, (kind, shape, data) in after.items():
        if name.startswith('fc.'):
            bench.expect(shape[0] == 2, f'{name}: {shape}')
        elif 'running' not in name:
            bench.expect(data == widened(before[name][2]), f'{name}: has changed')
    plans = [json.loads(bench.good('plan', 'finetune-resnet18', *SMALL, '--data', 'pictures/train',
                                   '--json', *more))
             for more in ((), ('--set', 'train.freeze=bn1.bias', '--budget', '1GiB'))]
    peaks = [plan['peak_bytes_planned'] for plan in plans]
    tags = [plan['bytes_by_tag'] for plan in plans]
    bench.expect(peaks[0] < 0.35 * peaks[1], f'{peaks}')
    for tag in ('gradients', 'optimizer'):
        bench.expect(tags[0].get(tag, 0) < 0.001 * tags[1][tag], f'{tag}: {tags}')


def check_refused(bench):
    """All but the head must fit; a head that differs in more than its classes, too."""
    path = bench.folder / 'resnet18.safetensors'
    whole = path.read_bytes()
    args = 'train finetune-resnet18 --data pictures/train --steps 1 --budget 2GiB'
    for old, new, pattern in (
            (b'"fc.weight": {"dtype": "BF16", "shape": [1000, 512]',
             b'"fc.weight": {"dtype": "BF16", "shape": [500, 1024]', r'fc\.weight'),
            (b'"layer4.1.bn2.weight"', b'"layer4.1.bn2.weighs"', r'layer4\.1\.bn2\.weigh'),
            (b'"conv1.weight": {"dtype": "BF16", "shape": [64, 3, 7, 7]',
             b'"conv1.weight": {"dtype": "BF16", "shape": [64, 7, 3, 7]', r'conv1\.weight')):
        bench.expect(whole.count(old) == 1, f'{old}')
        path.write_bytes(whole.replace(old, new))
        code, _, error = bench.run(*args.split(), *SMALL)
        bench.expect(code == 1 and error.count('\n') == 1 and re.search(pattern, error), error)
    path.unlink()
    check(bench, args, 1, r'resnet18\.safetensors: ')


def check_pictures(bench):
    """Own pictures by the shipped recipe: what it says of pictures that it never saw."""
    args = ['--data', 'pictures/train', '--quiet', '--out', 'own', '--set', 'memory.tune=off']
    bench.good('train', 'pictures', *args, '--epochs', 8, '--metrics', 'm.json')
    told = [json.loads(line) for line in
            bench.good('predict', 'own', 'pictures/test', '--json').splitlines()]
    right = sum(t['file'].split('/')[-2] == t['predictions'][0]['class'] for t in told)
    bench.expect(len(told) == 24 and right > 18, f'{right} of {len(told)}')
    bench.expect({t['predictions'][0]['class'] for t in told} <= set(CLASSES), 'names')
    last = json.loads((bench.folder / 'm.json').read_text().splitlines()[-1])['summary']
    bench.expect(last['test_samples'] == 16 and math.isfinite(last['test_loss']), f'{last}')
    check(bench, 'train pictures --data none', 1, r'none: missing: name the folder that has')


def main():
    with Bench(sys.argv[1]) as bench:
        write_pictures(bench.folder / 'pictures')
        subprocess.run([sys.executable, sys.argv[2], bench.folder / 'resnet18.safetensors'],
                       check=True)
        check_head(bench)
        check_refused(bench)
        check_pictures(bench)
        bench.end()


if __name__ == '__main__':
    main()
