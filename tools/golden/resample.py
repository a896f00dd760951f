#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tests/golden/resample.h: what Pillow makes of small images of another size.

Usage: resample.py > tests/golden/resample.h      (needs Pillow; seen with 9.4.0)

Pixel i of an image of n bytes is (i * i * 37 + i * 11) % 251, so that tests/data/resample.c makes the
same ones.
"""
import PIL
from PIL import Image

# channels, height and width before and after
CASES = [
    (1, (7, 9), (7, 9)),
    (1, (7, 9), (3, 4)),
    (1, (5, 4), (8, 11)),
    (3, (6, 5), (4, 7)),
    (3, (23, 17), (2, 3)),
    (1, (1, 40), (3, 1)),
    (1, (64, 3), (5, 3)),
]


def image(channels, size):
    count = channels * size[0] * size[1]
    pixels = bytes((i * i * 37 + i * 11) % 251 for i in range(count))
    return Image.frombytes("L" if channels == 1 else "RGB", size[::-1], pixels)


def numbers(values):
    return "{" + ", ".join(map(str, values)) + "}"


def main():
    print("/* SPDX-License-Identifier: MIT")
    print(" *")
    print(f" * Made by tools/golden/resample.py with Pillow {PIL.__version__}. */")
    print("static const struct golden golden[] = {")
    for channels, size, to in CASES:
        one = image(channels, size)
        bilinear = one.resize(to[::-1], Image.BILINEAR)
        nearest = one.resize(to[::-1], Image.NEAREST)
        print(f"    {{{channels}, {numbers(size)}, {numbers(to)},")
        print(f"     {numbers(bilinear.tobytes())},")
        print(f"     {numbers(nearest.tobytes())}}},")
    print("};")


if __name__ == "__main__":
    main()
