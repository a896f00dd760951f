#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Composes garments of Fashion-MNIST on large canvases, with exact masks, for segmentation.

Usage: segment_fashion.py FOLDER [--height H] [--width W] [--train N] [--test N] [--garments N]
                          [--size LEAST MOST] [--data FOLDER] [--seed N]

Writes FOLDER/train and FOLDER/test: NAME.png, grey, and NAME_mask.png with the class of each pixel:
0 is the background, 1 to 10 are Fashion-MNIST's classes in their order. Every garment is enlarged
by a whole factor and lies somewhere, over those before it; its pixels are those of its image that
are brighter than THRESHOLD, so that mask and picture agree to the pixel. The background is a ramp
of greys with noise. The same arguments give the same files. Needs nothing but Python.
"""
import argparse
import gzip
import pathlib
import random
import struct
import zlib

SIDE, THRESHOLD = 28, 24
FILES = {'train': 'train', 'test': 't10k'}


def read_idx(path, head):
    with gzip.open(path) if path.suffix == '.gz' else path.open('rb') as file:
        return file.read()[head:]


def find(folder, name):
    for path in (folder / name, folder / f'{name}.gz'):
        if path.exists():
            return path
    raise SystemExit(f'{folder / name}: no such file, nor with .gz; --data names its folder')


def chunk(kind, data):
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))


def write_png(path, rows, width):
    """Grey, 8 bits."""
    header = struct.pack('>IIBBBBB', width, len(rows), 8, 0, 0, 0, 0)
    data = zlib.compress(b''.join(b'\0' + bytes(row) for row in rows), 6)
    path.write_bytes(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', header) + chunk(b'IDAT', data) +
                     chunk(b'IEND', b''))


def background(draw, height, width):
    """Rows of a ramp between two dark greys, with noise."""
    first, last = draw.randrange(20, 90), draw.randrange(20, 90)
    noise = draw.randbytes(width + 4096)
    rows = []
    for y in range(height):
        grey = first + (last - first) * y // height
        table = bytes(grey + value // 16 for value in range(256))
        start = draw.randrange(4096)
        rows.append(bytearray(noise[start:start + width].translate(table)))
    return rows


def runs(row):
    """Where a row of a garment is: (first, last + 1) of each stretch above the threshold."""
    first = None
    for x, value in enumerate([*row, 0]):
        if value > THRESHOLD and first is None:
            first = x
        elif value <= THRESHOLD and first is not None:
            yield first, x
            first = None


def place(rows, mask, garment, label, factor, top, left):
    height, width = len(rows), len(rows[0])
    for y in range(max(top, 0), min(top + SIDE * factor, height)):
        at = (y - top) // factor * SIDE
        line = garment[at:at + SIDE]
        for first, last in runs(line):
            begin, end = left + first * factor, left + last * factor
            low, high = max(begin, 0), min(end, width)
            if low >= high:
                continue
            pixels = b''.join(bytes([value]) * factor for value in line[first:last])
            rows[y][low:high] = pixels[low - begin:high - begin]
            mask[y][low:high] = bytes([label + 1]) * (high - low)


def compose(options, images, labels, seed):
    draw = random.Random(seed)
    height, width = options.height, options.width
    rows = background(draw, height, width)
    mask = [bytearray(width) for _ in range(height)]
    for _ in range(options.garments):
        which = draw.randrange(len(labels))
        factor = draw.randint(*options.size)
        size = SIDE * factor
        place(rows, mask, images[which * SIDE * SIDE:(which + 1) * SIDE * SIDE], labels[which],
              factor, draw.randrange(-size // 4, height - size * 3 // 4),
              draw.randrange(-size // 4, width - size * 3 // 4))
    return rows, mask


def write_split(options, split, count):
    folder = options.folder / split
    folder.mkdir(parents=True, exist_ok=True)
    images = read_idx(find(options.data, f'{FILES[split]}-images-idx3-ubyte'), 16)
    labels = read_idx(find(options.data, f'{FILES[split]}-labels-idx1-ubyte'), 8)
    for i in range(count):
        rows, mask = compose(options, images, labels, f'{options.seed} {split} {i}')
        write_png(folder / f'{i:05}.png', rows, options.width)
        write_png(folder / f'{i:05}_mask.png', mask, options.width)


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('folder', type=pathlib.Path)
    parser.add_argument('--height', type=int, default=1400, help='of an image (1400)')
    parser.add_argument('--width', type=int, default=2100, help='(2100)')
    parser.add_argument('--train', type=int, default=200, help='images (200)')
    parser.add_argument('--test', type=int, default=20, help='images (20)')
    parser.add_argument('--garments', type=int, default=24, help='on each (24)')
    parser.add_argument('--size', type=int, nargs=2, default=(6, 16), metavar=('LEAST', 'MOST'),
                        help='how many times a garment is enlarged (6 16)')
    parser.add_argument('--data', type=pathlib.Path,
                        help="folder of Fashion-MNIST's files (its package's)",
                        default=pathlib.Path('/usr/share/datasets/fashion-mnist'))
    parser.add_argument('--seed', type=int, default=1, help='of everything random (1)')
    options = parser.parse_args()
    least, most = options.size
    if not 1 <= least <= most or SIDE * most * 3 // 4 > min(options.height, options.width):
        parser.error('--size: garments must be at least 1 times and at most as large as the canvas')
    return options


def main():
    options = read_options()
    write_split(options, 'train', options.train)
    write_split(options, 'test', options.test)


if __name__ == '__main__':
    main()
