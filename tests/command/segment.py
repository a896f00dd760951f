#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""segment.py PROGRAM TOOL: garments on canvases, made by the tool, and a U-Net that finds them."""
import hashlib
import json
import subprocess
import sys
import zlib

from support import Bench

RECIPE = """[model]
name = unet
depth = 3
width = 8
[data]
kind = images
path = canvases/train
test_path = canvases/test
channels = 1
mask = _mask
classes = 11
mean = 0.3
deviation = 0.25
[train]
batch = 8
steps = 100
optimizer = adamw
lr = 0.01
schedule = cosine
[memory]
budget = 4MiB
tune = off
"""
HEIGHT, WIDTH = 71, 98
CANVASES = ['--height', HEIGHT, '--width', WIDTH, '--garments', 3, '--size', 1, 2]


def make(bench, tool, folder, *args):
    done = subprocess.run([sys.executable, tool, bench.folder / folder, *map(str, args)],
                          capture_output=True, text=True)
    return done.returncode, done.stderr


def pixels(path):
    """Of a PNG as the tool writes it: grey, no filter."""
    data = path.read_bytes()
    start = data.index(b'IDAT')
    length = int.from_bytes(data[start - 4:start], 'big')
    rows = zlib.decompress(data[start + 4:start + 4 + length])
    return [rows[y * (WIDTH + 1) + 1:(y + 1) * (WIDTH + 1)] for y in range(HEIGHT)]


def digest(folder):
    sha = hashlib.sha256()
    for path in sorted(folder.rglob('*.png')):
        sha.update(path.name.encode() + path.read_bytes())
    return sha.hexdigest()


def check_canvases(bench, tool):
    code, error = make(bench, tool, 'canvases', '--train', 40, '--test', 8, *CANVASES)
    bench.expect(code == 0, error)
    make(bench, tool, 'again', '--train', 40, '--test', 8, *CANVASES)
    make(bench, tool, 'other', '--train', 40, '--test', 8, '--seed', 2, *CANVASES)
    same, again, other = (digest(bench.folder / name) for name in ('canvases', 'again', 'other'))
    bench.expect(same == again != other, 'the same arguments give the same files')
    seen = set()
    for path in sorted((bench.folder / 'canvases/train').glob('*_mask.png')):
        mask, image = pixels(path), pixels(path.with_name(path.name.replace('_mask', '')))
        for row, line in zip(mask, image):
            seen.update(row)
            bench.expect(all(grey > 24 for label, grey in zip(row, line) if label), f'{path}')
    bench.expect(seen == set(range(11)), f'classes {seen}')
    code, error = make(bench, tool, 'bad', '--size', 3, 2)
    bench.expect(code == 2 and '--size' in error, error)
    code, error = make(bench, tool, 'bad', '--data', bench.folder / 'nowhere', *CANVASES)
    bench.expect(code == 1 and 'no such file' in error, error)


def check_training(bench):
    """The canvases have odd sides; a budget below what keeping all needs changes no weight."""
    (bench.folder / 's.ini').write_text(RECIPE)
    bench.good('train', 's.ini', '--quiet', '--metrics', 'm.json')
    rows = [json.loads(line) for line in (bench.folder / 'm.json').read_text().splitlines()]
    losses = [row['loss'] for row in rows if 'step' in row]
    summary, plan = rows[-1]['summary'], rows[0]['plan']
    print(f"loss {losses[0]:.2f} -> {losses[-1]:.2f}, mean IoU {summary['test_iou']:.3f}, accuracy "
          f"{summary['test_accuracy']:.3f}, {plan['recomputed_steps']} steps recomputed")
    bench.expect(losses[-1] < losses[0] / 2, f'{losses[0]} -> {losses[-1]}')
    bench.expect(summary['test_iou'] > 0.08 and summary['test_accuracy'] > 0.65, f'{summary}')
    bench.expect(plan['recomputed_steps'] > 0, f"{plan['recomputed_steps']}")
    for out, budget in (('a', '4MiB'), ('b', '64MiB')):
        bench.good('train', 's.ini', '--quiet', '--steps', 4, '--out', out, '--micro-batch', 2,
                   '--budget', budget)
    bench.expect(digest_of(bench, 'a') == digest_of(bench, 'b'), 'the same weights in any budget')


def digest_of(bench, out):
    return hashlib.sha256((bench.folder / out / 'last/weights.safetensors').read_bytes()).digest()


def main():
    bench = Bench(sys.argv[1])
    check_canvases(bench, sys.argv[2])
    check_training(bench)
    bench.end()


if __name__ == '__main__':
    main()
