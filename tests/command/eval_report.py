#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""eval_report.py PROGRAM: the page of `quern eval --report` says what the predictions of the same
samples do, of classes, masks and texts; names from outside are text in it."""
import base64
import html.parser
import json
import re
import sys
import zlib

from bad_input import check
from images import RECIPE, write_pictures, write_png
from support import Bench

MASKS = """[model]
name = unet
depth = 2
width = 2
[data]
kind = images
path = squares
test_path = squares
mask = _mask
classes = 3
[train]
batch = 4
steps = 3
lr = 0.05
[memory]
tune = off
"""
ODD = '<b>"along"'


class Page(html.parser.HTMLParser):
    """The tables as lists of rows of texts, the pictures as bytes, the captions of figures."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.images, self.captions, self.tags, self.into = [], [], [], set(), None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == 'table':
            self.tables.append([])
        elif tag == 'tr':
            self.tables[-1].append([])
        elif tag in ('td', 'th'):
            self.tables[-1][-1].append('')
            self.into = self.tables[-1][-1]
        elif tag == 'figcaption':
            self.captions.append('')
            self.into = self.captions
        elif tag == 'br':
            self.captions[-1] += '|'
        elif tag == 'img':
            kind, data = dict(attrs)['src'].split(',', 1)
            assert kind == 'data:image/png;base64'
            self.images.append(base64.b64decode(data, validate=True))

    def handle_endtag(self, tag):
        if tag in ('td', 'th', 'figcaption'):
            self.into = None

    def handle_data(self, data):
        if self.into is not None:
            self.into[-1] += data


def read(bench, *args):
    bench.good('eval', *args, '--report', 'r.html')
    text = (bench.folder / 'r.html').read_text()
    for foreign in ('http:', 'https:', '<script src', '<link', '<b>'):
        bench.expect(foreign not in text, f'the page has {foreign}')
    return Page(text)


def is_png(data, height, width):
    """Whole, and of this size."""
    at, sums = 8, True
    while at < len(data):
        size = int.from_bytes(data[at:at + 4], 'big')
        body, crc = data[at + 4:at + 8 + size], data[at + 8 + size:at + 12 + size]
        sums &= zlib.crc32(body) == int.from_bytes(crc, 'big')
        at += 12 + size
    return sums and data[16:24] == width.to_bytes(4, 'big') + height.to_bytes(4, 'big')


def check_classes(bench):
    write_pictures(bench.folder / 'pictures')
    for split in ('train', 'test'):
        (bench.folder / 'pictures' / split / 'along').rename(
            bench.folder / 'pictures' / split / ODD)
    names = sorted([ODD, 'across'])
    (bench.folder / 'p.ini').write_text(RECIPE.replace('size = 14', 'size = 12, 12'))
    bench.good('train', 'p.ini', '--quiet', '--steps', 4, '--out', 'run')
    page, told = read(bench, 'run'), json.loads(bench.good('eval', 'run', '--json'))
    shares = [json.loads(line) for line in
              bench.good('predict', 'run', 'pictures/test', '--json', '--top', 2).splitlines()]
    pairs = [(s['file'].split('/')[-2], s) for s in shares]
    confusion = [[sum(label == a and s['predictions'][0]['class'] == b for label, s in pairs)
                  for b in names] for a in names]
    figures, classes, matrix = page.tables
    bench.expect(dict(map(tuple, figures[1:]))['test_accuracy'] == f'{told["test_accuracy"]:.6g}',
                 f'{figures}')
    bench.expect(matrix[0][1:] == names and
                 [[int(n) for n in row[1:]] for row in matrix[1:]] == confusion, f'{matrix}')
    for c, row in enumerate(classes[1:]):
        right, labels, guesses = confusion[c][c], sum(confusion[c]), sum(r[c] for r in confusion)
        want = [right / guesses if guesses else None, right / labels, 2 * right / (labels + guesses),
                right / (labels + guesses - right)]
        bench.expect(row == [names[c], str(labels)] +
                     ['-' if w is None else f'{w:.4f}' for w in want], f'{row}, not {want}')
    wrong = [(label, *s['predictions'], s['file']) for label, s in pairs
             if s['predictions'][0]['class'] != label]
    wrong.sort(key=lambda w: w[2]['probability'])  # of the two classes, that of its own
    bench.expect(wrong and len(page.captions) == len(wrong) == len(page.images) and
                 all(is_png(image, 12, 12) for image in page.images), f'{len(page.images)} pictures')
    for (label, guess, _, file), caption in zip(wrong, page.captions):
        bench.expect(caption == f'{label}, taken for {guess["class"]} '
                     f'({100 * guess["probability"]:.2f} %)|{bench.folder / file}', caption)


def check_masks(bench):
    for i in range(5):
        write_png(bench.folder / f'squares/{i}.png', 8, 6, 3,
                  lambda y, x, i=i: 3 * [200 if y < 4 else 40 * i])
        write_png(bench.folder / f'squares/{i}_mask.png', 8, 6, 1,
                  lambda y, x: [(y < 4) + (x < 3 and y > 6)])
    (bench.folder / 'm.ini').write_text(MASKS)
    bench.good('train', 'm.ini', '--quiet', '--out', 'masks')
    page = read(bench, 'masks')
    bench.good('predict', 'masks', 'squares', '--out', 'm.npy')
    masks = (bench.folder / 'm.npy').read_bytes()[-5 * 48:]
    truth = bytes((y < 4) + (x < 3 and y > 6) for y in range(8) for x in range(6))
    wrong = [sum(a != b for a, b in zip(masks[48 * i:48 * i + 48], truth)) / 48 for i in range(5)]
    said = [float(re.match(r'([\d.]+) % of pixels wrong\|', text)[1]) for text in page.captions]
    bench.expect(said == [float(f'{100 * w:.2f}') for w in sorted(wrong, reverse=True) if w],
                 f'{said}, not {wrong}')
    bench.expect(len(page.images) == 3 * len(said) and
                 all(is_png(image, 8, 6) for image in page.images), 'masks: pictures')
    total = [sum(map(int, row[1:])) for row in page.tables[2][1:]]
    bench.expect(total == [5 * truth.count(c) for c in range(3)], f'{total}')


def main():
    with Bench(sys.argv[1]) as bench:
        check_classes(bench)
        check_masks(bench)
        check(bench, 'eval run --report no/such.html', 1, r'no/such\.html: ')
        (bench.folder / 't.txt').write_text('a text to learn\n' * 40)
        (bench.folder / 'g.ini').write_text(
            '[model]\nname = gpt\nlayers = 1\nheads = 2\nwidth = 16\n[data]\nkind = text\n'
            'path = t.txt\nlength = 8\n[train]\nbatch = 4\nsteps = 1\n[memory]\ntune = off\n')
        bench.good('train', 'g.ini', '--quiet', '--out', 'text')
        check(bench, 'eval text --report t.html', 2, r'--report: the model gpt tells tokens')
        bench.end()


if __name__ == '__main__':
    main()
