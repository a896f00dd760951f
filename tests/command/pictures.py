#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""pictures.py PROGRAM: pictures of plans have axes with units, all names of phases, a whole legend,
and no label lies over another or outside."""
import json
import sys
import xml.etree.ElementTree as ElementTree

from support import Bench

SVG = '{http://www.w3.org/2000/svg}'
WIDE = 0.62  # of a letter, as a share of the font's size: sans-serif fonts are narrower on average
PLANS = {
    'budget near the peak': ['fashion-mnist', '--budget', '8MiB'],
    'budget above the picture': ['fashion-mnist', '--budget', '1GiB'],
    'many phases': ['fashion-mnist', '--micro-batch', 48, '--set',
                    'train.batch_schedule=0:64,9:130,20:99,30:259,40:33,50:500,60:77,70:210'],
    'small': ['fashion-mlp', '--budget', '4MiB'],
    'recomputed below the peak': ['segment-fashion', '--set', 'data.shape=1,128,192', '--budget',
                                  '40MiB', '--micro-batch', 1],
    'bytes in GiB': ['fashion-resnet18', '--budget', '6GiB', '--micro-batch', 128],
}


def labels(svg):
    """(text, left, top, right, bottom, anchor) of each."""
    size = float(svg.get('font-size') or 0)
    for text in svg.iter(f'{SVG}text'):
        font = float(text.get('font-size') or size)
        x, y, wide = float(text.get('x')), float(text.get('y')), WIDE * font * len(text.text)
        anchor = text.get('text-anchor', 'start')
        left = x - {'start': 0, 'middle': 0.5, 'end': 1}[anchor] * wide
        yield text.text, left, y - 0.8 * font, left + wide, y + 0.2 * font, anchor


def overlap(a, b):
    return a[1] < b[3] and b[1] < a[3] and a[2] < b[4] and b[2] < a[4]


def alive(plan):
    """Tags of which something is written, whether or not at the peak."""
    recomputed = any(len(step) > 2 for phase in plan['phases'] for step in phase['steps'])
    return ({tag for tag, size in plan['bytes_by_tag'].items() if size} |
            ({'recomputed activations'} if recomputed else set()))


def check(bench, name, arguments):
    code, out, error = bench.run('plan', *arguments, '--json', '--svg', 'p.svg', '--plan-effort',
                                 'instant')
    bench.expect(code == 0, f'{name}: {code}: {error}')
    plan = json.loads(out)
    svg = ElementTree.parse(bench.folder / 'p.svg').getroot()
    found = list(labels(svg))
    texts = [label[0] for label in found]
    for i, a in enumerate(found):
        for b in found[:i]:
            bench.expect(not overlap(a, b), f'{name}: "{a[0]}" lies over "{b[0]}"')
        bench.expect(0 <= a[1] and a[3] <= float(svg.get('width')) and 0 <= a[2] and
                     a[4] <= float(svg.get('height')), f'{name}: "{a[0]}" lies outside')
    for tag in alive(plan):
        bench.expect(any(text.startswith(f'{tag}, ') for text in texts), f'{name}: no {tag}')
    for phase in plan['phases']:
        bench.expect(texts.count(phase['name']) == [p['name'] for p in plan['phases']].count(
            phase['name']), f'{name}: no {phase["name"]}')
    bench.expect(any(text in ('KiB', 'MiB', 'GiB') for text in texts), f'{name}: no unit')
    ticks = [int(label[0]) for label in found if label[5] == 'end' and label[0].isdigit()]
    bench.expect(3 < len(ticks) < 10 and ticks[0] == 0, f'{name}: ticks {ticks}')
    steps = [label for label in found if label[5] == 'middle' and label[0].isdigit()]
    bench.expect(texts.count('step') == 1 and len(steps) > 4, f'{name}: steps {steps}')


def main():
    with Bench(sys.argv[1]) as bench:
        for name, arguments in PLANS.items():
            check(bench, name, arguments)
        bench.end()


if __name__ == '__main__':
    main()
