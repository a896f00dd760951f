#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fine-tuning and inference beside training: bytes that are allocated and seconds of an update.

    tools/bench/finetune.py [--program build/tools/quern/quern] [--updates 4] [--rounds 2]
                            [--only finetune|infer]

ResNet-18 on 32 pictures of 224 x 224: an update of the whole network and of its head alone, by turns;
the fastest update of each. ResNet-50 on 8 pictures of 224 x 224: bytes of a training that keeps all
activations, and of predicting 8 pictures at once and 4 at a time. Pictures are noise. Exit status: 0
if all gates hold (head over whole: bytes 0.35, seconds 0.45; predicting over training: 0.15), else 1.
"""
import argparse
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECIPE = """[model]
name = resnet
depth = {depth}
group = {group}
[data]
kind = images
path = pictures
classes = {classes}
[train]
batch = {batch}
steps = {steps}
optimizer = adamw
lr = 0.001
{more}
[memory]
recompute = none
micro_batch = {batch}
budget = 8GiB
"""
SIDE = 224


def chunk(kind, data):
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))


def write_pictures(folder, count):
    rng = random.Random(1)
    header = struct.pack('>IIBBBBB', SIDE, SIDE, 8, 2, 0, 0, 0)
    for i in range(count):
        rows = b''.join(b'\0' + rng.randbytes(3 * SIDE) for _ in range(SIDE))
        path = folder / 'ab'[i % 2] / f'{i}.png'
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', header) +
                         chunk(b'IDAT', zlib.compress(rows, 1)) + chunk(b'IEND', b''))


class Place:
    def __init__(self, options, folder):
        self.program = str(pathlib.Path(options.program).resolve())
        self.folder = pathlib.Path(folder)
        self.count = next(iter(sorted(ROOT.glob('build*/tests/support/libclcount.so'))), None)

    def run(self, *args):
        """Bytes of device buffers that were alive at once, counted from outside."""
        counts = self.folder / 'counts.json'
        env = {'LD_PRELOAD': str(self.count), 'CLCOUNT_FILE': str(counts)}
        subprocess.run(['env', *(f'{k}={v}' for k, v in env.items()), self.program, *map(str, args)],
                       cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
        return json.loads(counts.read_text())['peak_bytes']

    def train(self, name, **keys):
        """(bytes, seconds of the fastest update behind the first)"""
        (self.folder / f'{name}.ini').write_text(RECIPE.format(**{'more': '', **keys}))
        peak = self.run('train', f'{name}.ini', '--quiet', '--metrics', 'm.json')
        lines = map(json.loads, (self.folder / 'm.json').read_text().splitlines())
        return peak, min(line['seconds'] for line in lines if line.get('step', 0) > 0)


def told(text, small, large, gate):
    ratio = small / large
    digits = 0 if small > 1000 else 3
    print(f"{text:52}{small:>15,.{digits}f}{large:>17,.{digits}f}{ratio:>8.4f}{gate:>7}  "
          f"{'met' if ratio <= gate else 'missed'}", flush=True)
    return ratio <= gate


def finetune(place, options):
    keys = {'depth': 18, 'group': 16, 'classes': 10, 'batch': 32, 'steps': options.updates}
    runs = {'head': [], 'whole': []}
    for _ in range(options.rounds):
        runs['whole'].append(place.train('whole', **keys))
        runs['head'].append(place.train('head', **keys, more='freeze = conv1.*, bn1.*, layer*'))
    best = {name: [min(column) for column in zip(*rows)] for name, rows in runs.items()}
    return [told('ResNet-18, 32 x 224^2, head over whole: bytes', best['head'][0],
                 best['whole'][0], 0.35),
            told('    seconds of an update', best['head'][1], best['whole'][1], 0.45)]


def infer(place):
    keys = {'depth': 50, 'group': 8, 'classes': 1000, 'batch': 8, 'steps': 2}
    whole, _ = place.train('r50', **keys)
    place.run('train', 'r50.ini', '--quiet', '--steps', 1, '--out', 'run')
    pictures = [f'pictures/{"ab"[i % 2]}/{i}.png' for i in range(8)]
    return [told(f'ResNet-50, 8 x 224^2, predicting {few} at a time: bytes',
                 place.run('predict', 'run', *pictures, '--micro-batch', few), whole, 0.15)
            for few in (8, 4)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('--program', default=ROOT / 'build/tools/quern/quern')
    parser.add_argument('--updates', type=int, default=4)
    parser.add_argument('--rounds', type=int, default=2)
    parser.add_argument('--only', choices=('finetune', 'infer'))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Place(options, folder)
        write_pictures(place.folder / 'pictures', 64)
        print(f"{'':52}{'smaller':>15}{'larger':>17}{'ratio':>8}{'gate':>7}")
        met = [] if options.only == 'infer' else finetune(place, options)
        met += [] if options.only == 'finetune' else infer(place)
    return 0 if all(met) else 1


if __name__ == '__main__':
    sys.exit(main())
