#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""masked.py PROGRAM: a small BERT learns to fill in what is masked: the same masks whatever the
split, and after a resume; those that are held out never change."""
import json
import math
import sys

from bad_input import check
from support import Bench
from text import digest, near, tokens, train, write_text

RECIPE = """[model]
name = bert
layers = 1
heads = 2
width = 16
dropout = 0
[data]
kind = text
path = text
length = 24
held_out = 0.1
mlm_probability = 0.15
[train]
batch = 8
steps = 60
optimizer = adamw
lr = 0.02
[memory]
budget = 16MiB
tune = off
"""


def check_figures(bench):
    losses, summary = train(bench, '--out', 'a')
    loss = summary['test_loss']
    print(f'loss {losses[0]:.3f} -> {losses[-1]:.3f}, held out {loss:.3f}')
    bench.expect(abs(losses[0] - math.log(257)) < 0.4 and loss < 3.1, f'{losses} {loss}')
    bench.expect(summary['test_samples'] == 600 // 24 and 0 < summary['test_accuracy'] < 1 and
                 'test_bits_per_byte' not in summary, f'{summary}')
    for seed in (1, 9):
        again = json.loads(bench.good('eval', 'a', '--json', '--set', f'train.seed={seed}',
                                      '--micro-batch', seed))
        bench.expect(near(again['test_loss'], loss) or abs(again['test_loss'] - loss) < 1e-5,
                     f'{seed}: other masks are held out: {again} {loss}')
    other, _ = train(bench, '--seed', 2)
    bench.expect(other[0] != losses[0], 'seeds have the same masks')


def check_splits(bench):
    """Micro-batches and recomputation: the same numbers to rounding, or to the bit."""
    whole, _ = train(bench, '--steps', 8, '--out', 'whole')
    for micro in (1, 3):
        split, _ = train(bench, '--steps', 8, '--micro-batch', micro)
        bench.expect(all(abs(a - b) < 1e-4 for a, b in zip(whole, split)), f'{micro}: {split}')
    train(bench, '--steps', 8, '--recompute', 'all', '--out', 'again')
    bench.expect(digest(bench, 'again') == digest(bench, 'whole'), 'recomputed')
    bench.good('train', 't.ini', '--quiet', '--steps', 4, '--out', 'half')
    bench.good('resume', 'half', '--quiet', '--steps', 8)
    bench.expect(digest(bench, 'half') == digest(bench, 'whole'), 'resumed')


def check_vocabularies(bench):
    """The mask is a token of its own, unless the tokenizer or the recipe has one."""
    for more, rows in ((['data.vocabulary=300'], 301), (['data.mask_token=0'], 256), ([], 257),
                       (['data.tokens=300'], 300)):
        args = [part for key in more for part in ('--set', key)]
        plan = bench.good('plan', 't.ini', '--data', 'nowhere', '--explain',
                          'bert.embeddings.word_embeddings.weight', *args)
        bench.expect(f'f32 {rows} x 16' in plan, f'{more}: {plan.splitlines()[0]}')
        train(bench, '--steps', 1, *args)
    by_bytes, _ = train(bench, '--steps', 2)
    by_file, _ = train(bench, '--steps', 2, '--data', 'u16',
                       *tokens('u16', 'data.tokens=257', 'data.mask_token=256'))
    bench.expect(by_bytes == by_file, f'{by_bytes} {by_file}')


def check_bad(bench):
    u16 = ' '.join(tokens('u16'))
    check(bench, 'train t.ini --set data.mlm_probability=1', 2, 'is too large; from 0, below 1')
    check(bench, 'train t.ini --set data.mask_token=-1', 2, r'data\.mask_token: .-1. is too small')
    check(bench, 'train t.ini --set data.tokens=300 --set data.mask_token=300', 2,
          r'data\.mask_token: 300 is none of the 300 tokens')
    check(bench, 'train t.ini --set data.mlm_probability=0 --set data.mask_token=0', 2,
          r'data\.mask_token: needs data\.mlm_probability')
    check(bench, f'train t.ini --data u16 {u16}', 2, r'data\.mask_token: missing')
    check(bench, 'train t.ini --set data.kind=idx', 2, r'goes with data\.kind = ')
    check(bench, 'train t.ini --set data.length=700', 1, 'text: 600 tokens are held out, too few '
          'for a sample of 700')


def main():
    with Bench(sys.argv[1]) as bench:
        bench.recipe('t.ini', RECIPE)
        write_text(bench)
        check_figures(bench)
        check_splits(bench)
        check_vocabularies(bench)
        check_bad(bench)
        bench.end()


if __name__ == '__main__':
    main()
