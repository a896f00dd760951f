#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The example of contrastive training on small pictures, in each of its modes: retrieve.py PROGRAM."""
import pathlib
import random
import re
import struct
import sys

from support import Place

TRAIN, TEST = 1280, 64
MODES = (['whole'], ['gradcache'], ['accumulate'], ['contaccum', '24'], ['contaccum', '-24'])


def idx(dims, data):
    return struct.pack(f'>BBBB{len(dims)}I', 0, 0, 8, len(dims), *dims) + bytes(data)


def picture(draw):
    """28 x 28 pixels whose rows are as bright in the left half as in the right one, but for noise."""
    rows = [draw.randrange(0, 200) for _ in range(28)]
    return [row + draw.randrange(50) for row in rows for _ in range(28)]


def write_data(folder):
    draw = random.Random(3)
    for name, count in (('train', TRAIN), ('t10k', TEST)):
        pixels = [pixel for _ in range(count) for pixel in picture(draw)]
        (folder / f'{name}-images-idx3-ubyte').write_bytes(idx((count, 28, 28), pixels))
        (folder / f'{name}-labels-idx1-ubyte').write_bytes(idx((count,), [0] * count))


def main():
    place = Place(QN_CACHE_DIR='')
    program = pathlib.Path(sys.argv[1]).resolve()
    write_data(place.folder)
    place.env['QN_DATA_DIR'] = str(place.folder)
    found = {}
    for mode in MODES:
        said = place.good(program, *mode, *([] if len(mode) > 1 else ['0']), '6')
        match = re.search(r'MRR ([\d.]+) %', said)
        place.expect(match, f'{mode}: {said}')
        found[' '.join(mode)] = float(match.group(1)) if match else 0
        drift = re.search(r'cosine ([\d.]+)', said)
        place.expect(bool(drift) == (len(mode) > 1), f'{mode}: {said}')
        place.expect(not drift or float(drift.group(1)) > 0.9, f'{mode}: {said}')
    print(found)
    for mode, mrr in found.items():
        place.expect(mrr > 50, f'{mode}: mean reciprocal rank {mrr} %, by chance 7 %')
    place.expect(abs(found['whole'] - found['gradcache']) <= 2, f'{found}')
    done = place.run(program, 'wholly')
    place.expect(done.returncode == 2 and 'whole|gradcache' in done.stderr, f'usage: {done.stderr}')
    return place.end()


if __name__ == '__main__':
    sys.exit(main())
