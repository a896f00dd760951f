#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""text.py PROGRAM: a small GPT trained on text and on files of tokens, and what is wrong with them."""
import hashlib
import json
import math
import random
import struct
import sys

from bad_input import check
from support import Bench

RECIPE = """[model]
name = gpt
layers = 1
heads = 2
width = 16
logits = 0
[data]
kind = text
path = text
length = 24
held_out = 0.1
[train]
batch = 8
steps = 40
optimizer = adamw
lr = 0.02
schedule = cosine
[memory]
budget = 16MiB
tune = off
"""
BYTES = 6000


def write_text(bench):
    """Lines of words, so that the next byte is rarely a surprise."""
    draw = random.Random(1)
    words = 'quern grinds kernels, anywhere, with what strength there is'.split()
    text = ''
    while len(text) < BYTES:
        text += ' '.join(draw.choice(words) for _ in range(draw.randrange(3, 9))) + '\n'
    text = text[:BYTES].encode()
    (bench.folder / 'text').write_bytes(text)
    (bench.folder / 'u16').write_bytes(struct.pack(f'<{BYTES}H', *text))
    (bench.folder / 'u32').write_bytes(struct.pack(f'<{BYTES}I', *text))
    (bench.folder / 'llm.bin').write_bytes(struct.pack('<3I', 20240520, 1, BYTES) + bytes(4 * 253) +
                                           struct.pack(f'<{BYTES}H', *text))
    (bench.folder / 'head').write_bytes(text[:5400])
    (bench.folder / 'tail').write_bytes(text[5400:])
    return text


def train(bench, *args, recipe='t.ini'):
    """Losses of the updates, and the summary."""
    bench.good('train', recipe, '--quiet', '--metrics', 'm.json', *args)
    rows = [json.loads(line) for line in (bench.folder / 'm.json').read_text().splitlines()]
    return [row['loss'] for row in rows if 'step' in row], rows[-1]['summary']


def digest(bench, out):
    return hashlib.sha256((bench.folder / out / 'last/weights.safetensors').read_bytes()).digest()


def tokens(kind, *more):
    args = ['data.kind=tokens', f'data.type={kind}', 'data.tokens=256', *more]
    return [part for key in args for part in ('--set', key)]


def near(one, other):
    return abs(one - other) <= 1e-9 * abs(other)


def check_figures(bench):
    losses, summary = train(bench, '--out', 'a')
    loss = summary['test_loss']
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}, held out {loss:.3f}, "
          f"{summary['test_bits_per_byte']:.3f} bits per byte")
    bench.expect(abs(losses[0] - math.log(256)) < 0.3 and loss < 2.8 and losses[-1] < 2.8, f'{losses}')
    bench.expect(near(summary['test_perplexity'], math.exp(loss)), f'{summary}')
    bench.expect(near(summary['test_bits_per_byte'], loss / math.log(2)), f'{summary}')
    bench.expect(summary['test_samples'] == (600 - 1) // 24, f'{summary}')
    bench.expect('test_accuracy' not in summary, f'{summary}')
    best = json.loads(bench.good('eval', 'a/best', '--json'))
    bench.expect(best['test_loss'] <= loss * (1 + 1e-9), f'{best} is not the best')
    out = bench.good('eval', 'a')
    bench.expect(f'test loss {loss:.4f}  perplexity' in out and 'bits/byte' in out and
                 len(out.splitlines()) == 1, out)
    again = json.loads(bench.good('eval', 'a', '--json'))
    bench.expect(near(again['test_loss'], loss) and 'test_classes' not in again, f'{again}')
    _, seen = train(bench, '--steps', 2, '--set', 'model.logits=1')
    bench.expect(0 <= seen['test_accuracy'] < 1 and seen['test_loss'] > 0, f'{seen}')


def check_tokens(bench):
    """The same numbers in every type of file give the same weights."""
    few = ('--steps', 4)
    _, summary = train(bench, *few, '--out', 'text-out')
    for name, kind in (('u16', 'u16'), ('u32', 'u32'), ('llm.bin', 'llm.c')):
        _, other = train(bench, *few, '--out', f'{kind}-out', '--data', name, *tokens(kind))
        bench.expect(digest(bench, f'{kind}-out') == digest(bench, 'text-out'), name)
        bench.expect(other['test_loss'] == summary['test_loss'], name)
        bench.expect('test_bits_per_byte' not in other and 'test_perplexity' in other, f'{other}')
    _, other = train(bench, *few, '--data', 'u16', *tokens('u16', 'data.bytes_per_token=4'))
    bench.expect(near(other['test_bits_per_byte'] * 4, summary['test_bits_per_byte']), f'{other}')
    _, other = train(bench, *few, '--out', 'two', '--data', 'head', '--set', 'data.test_path=tail')
    bench.expect(digest(bench, 'two') == digest(bench, 'text-out'), 'two files')
    bench.expect(other['test_loss'] == summary['test_loss'], 'two files')
    _, other = train(bench, *few, '--set', 'data.held_out=0')
    bench.expect('test_loss' not in other, f'{other}')
    losses, _ = train(bench, '--steps', 1)
    apart, _ = train(bench, '--steps', 1, '--set', 'data.separator=10')
    bench.expect(losses[0] != apart[0] and abs(losses[0] - apart[0]) < 0.1, f'{losses} {apart}')
    with_logits, _ = train(bench, '--steps', 1, '--set', 'data.separator=10', '--set',
                           'model.fused=0')
    bench.expect(abs(with_logits[0] - apart[0]) < 1e-5, f'{with_logits} {apart}')


def check_resumed(bench, text):
    bench.good('train', 't.ini', '--quiet', '--steps', 6, '--out', 'whole')
    bench.good('train', 't.ini', '--quiet', '--steps', 3, '--out', 'half', '--set',
               'train.schedule=constant')
    bench.good('train', 't.ini', '--quiet', '--steps', 6, '--out', 'steady', '--set',
               'train.schedule=constant')
    bench.good('resume', 'half', '--quiet', '--steps', 6)
    bench.expect(digest(bench, 'half') == digest(bench, 'steady') != digest(bench, 'whole'),
                 'resumed')
    (bench.folder / 'text').write_bytes(text[:3000] + b'?' + text[3001:])
    check(bench, 'resume half --steps 8', 1, 'half: data: not the samples this training began with')
    (bench.folder / 'text').write_bytes(text)


def check_bench(bench):
    """Updates on the text itself, and nothing else."""
    report = json.loads(bench.good('bench', 't.ini', '--only', 'update', '--json'))
    bench.expect([(r['work'], r['op'], r['samples']) for r in report['results']] ==
                 [('t.ini', 'update', 8)], f"{report['results']}")
    check(bench, 'bench t.ini --only update --data nowhere', 1, r'nowhere: cannot read: No such file')


def check_bad(bench, text):
    (bench.folder / 'empty').write_bytes(b'')
    (bench.folder / 'short').write_bytes(text[:24])
    (bench.folder / 'odd').write_bytes(text[:1001])
    (bench.folder / 'far').write_bytes(struct.pack('<5977H', *text[:5976], 50000))
    (bench.folder / 'lie.bin').write_bytes((bench.folder / 'llm.bin').read_bytes()[:-2])
    (bench.folder / 'a\x1b[31m').write_bytes(b'')
    bench.expect('tokens' in bench.good('plan', 't.ini', '--data', 'nowhere', '--explain', 'tokens'),
                 'a plan needs no text')
    u16 = ' '.join(tokens('u16'))
    check(bench, 'train t.ini --data nowhere', 1, r'nowhere: cannot read: No such file')
    check(bench, 'train t.ini --data nowhere --set data.origin=apt', 1, 'nowhere: missing: apt')
    check(bench, 'train gpt-kjv', 1, r'kjv\.txt: missing: install the package bible-kjv, then: '
          r'bible -f gen1:1-rev22:21 > kjv\.txt')
    check(bench, 'train t.ini --data .', 1, 'not a regular file')
    check(bench, 'train t.ini --data empty', 1, 'empty: is empty')
    check(bench, 'train t.ini --data a\x1b[31m', 1, r'a\\x1b\[31m: is empty')
    check(bench, 'train t.ini --data short --set data.held_out=0', 1,
          'short: 24 tokens, too few for a sample of 24 and its last label')
    check(bench, 'train t.ini --set data.held_out=0.003', 1, 'text: 18 tokens are held out, too few')
    check(bench, f'train t.ini --data odd {u16}', 1, 'odd: 1001 bytes are no whole number of tokens')
    check(bench, f'train t.ini --data far --set data.held_out=0.09654 {u16}', 1,
          'far: token 5976 is 50000, but there are 256')
    check(bench, f'train t.ini --data lie.bin {" ".join(tokens("llm.c"))}', 1,
          r'lie\.bin: header: count: 6000 tokens are 12000 bytes, but 11998 follow')
    check(bench, 'train t.ini --data text --set data.kind=tokens', 1, "header: is not llm.c's")
    check(bench, 'train t.ini --data u16 --set data.kind=tokens --set data.type=u16', 2,
          r'u16: data\.tokens: missing')
    check(bench, 'train t.ini --set data.separator=256', 2, r'data\.separator: 256 is none of the 256')
    check(bench, 'train t.ini --set data.tokens=100', 1, r'text: token \d+ is 1\d\d, but there are 100')
    check(bench, 'train t.ini --set data.length=0', 2, r'data\.length: .0. ')
    check(bench, 'train t.ini --set data.mean=1', 2, r'data\.mean: goes with data\.kind = idx, images or npy')
    check(bench, 'eval t.ini --weights a/last/weights.safetensors --set data.held_out=0', 2,
          r'data\.held_out: missing')
    bench.recipe('no-path.ini', RECIPE.replace('path = text\n', ''))
    check(bench, 'train no-path.ini', 2, r'data\.path: missing; --data names the file')
    bench.good('train', 'no-path.ini', '--quiet', '--steps', 1, '--data', 'text')
    bench.recipe('both.ini', RECIPE.replace('held_out', 'test_path = a\nheld_out'))
    check(bench, 'train both.ini', 2, r'data\.held_out: and data\.test_path exclude each other')


def main():
    bench = Bench(sys.argv[1])
    with bench:
        bench.recipe('t.ini', RECIPE)
        text = write_text(bench)
        check_figures(bench)
        check_tokens(bench)
        check_resumed(bench, text)
        check_bench(bench)
        check_bad(bench, text)
    bench.end()


if __name__ == '__main__':
    main()
