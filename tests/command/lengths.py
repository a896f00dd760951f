#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""lengths.py PROGRAM: documents as samples of different length (data.lengths): what is trained is the
same as in samples of the longest alone, however it is planned, and a resumed training has the same
bits."""
import hashlib
import json
import random
import sys

from bad_input import check
from support import Bench

RECIPE = """[model]
name = {name}
layers = 1
heads = 2
width = 16
{model}[data]
kind = text
path = text
separator = 10
lengths = {lengths}
held_out = 0.1
{data}[train]
batch = 12
steps = 6
seed = 3
optimizer = adamw
lr = 0.01
eval_every = 3 updates
[memory]
budget = 16MiB
micro_batch = 4
tune = off
"""
MODELS = {'gpt': ('', ''), 'llama': ('kv_heads = 1\ninner = 24\n', ''),
          'bert': ('dropout = 0\n', 'mlm_probability = 0.15\n')}


def write_text(bench):
    """Lines of 1 to 30 words, most of them short."""
    draw = random.Random(1)
    words = 'quern grinds kernels, anywhere, with what strength there is'.split()
    lines = [' '.join(draw.choice(words) for _ in range(1 + int(30 * draw.random() ** 4)))
             for _ in range(300)]
    text = '\n'.join(lines).encode()
    (bench.folder / 'text').write_bytes(text)
    return text


def recipe(bench, model, lengths='16, 48,128'):
    keys, data = MODELS[model]
    bench.recipe(f'{model}.ini', RECIPE.format(name=model, model=keys, data=data, lengths=lengths))
    return f'{model}.ini'


def train(bench, name, *args):
    """Rows of the metrics."""
    bench.good('train', name, '--quiet', '--metrics', 'm.json', *args)
    return [json.loads(line) for line in (bench.folder / 'm.json').read_text().splitlines()]


def losses(rows):
    return [row['loss'] for row in rows if 'step' in row]


def digest(bench, out):
    return hashlib.sha256((bench.folder / out / 'last/weights.safetensors').read_bytes()).digest()


def near(one, other, within):
    return len(one) == len(other) and all(abs(a - b) <= within * abs(b) for a, b in zip(one, other))


def check_model(bench, model):
    name = recipe(bench, model)
    rows = train(bench, name, '--out', f'{model}-a')
    summary = rows[-1]['summary']
    expected = losses(rows)
    recipe(bench, model, '128')
    alone = train(bench, name)
    bench.expect(near(losses(alone), expected, 1e-4), f'{model}: {losses(alone)} {expected}')
    padded = alone[-1]['summary']
    bench.expect(near([padded['test_loss']], [summary['test_loss']], 1e-5) and
                 abs(padded['test_accuracy'] - summary['test_accuracy']) < 2e-3 and
                 padded['test_samples'] == summary['test_samples'], f'{model}: {padded} {summary}')
    recipe(bench, model)
    for args in (['--micro-batch', '5'], ['--micro-batch', '12']):
        other = losses(train(bench, name, *args))
        bench.expect(near(other, expected, 1e-4), f'{model} {args}: {other} {expected}')
    train(bench, name, '--recompute', 'all', '--out', f'{model}-b')
    bench.expect(digest(bench, f'{model}-a') == digest(bench, f'{model}-b'), f'{model}: recomputed')
    bench.good('train', name, '--quiet', '--steps', 3, '--out', f'{model}-c')
    bench.good('resume', f'{model}-c', '--quiet', '--steps', 6)
    bench.expect(digest(bench, f'{model}-a') == digest(bench, f'{model}-c'), f'{model}: resumed')
    again = json.loads(bench.good('eval', f'{model}-a', '--json'))
    bench.expect(near([again['test_loss']], [summary['test_loss']], 1e-9), f'{again} {summary}')
    return summary


def check_figures(bench, text, summary):
    """Held-out lines: the rest of the one at the border, then all others."""
    held = text[len(text) - int(0.1 * len(text)):].split(b'\n')
    samples = sum((len(line) - (i == len(held) - 1) + 127) // 128 for i, line in enumerate(held))
    bench.expect(summary['test_samples'] == samples, f'{summary}: not {samples}')
    bench.expect('test_bits_per_byte' in summary, f'{summary}')


def check_more(bench):
    """A budget that changes, text that is generated, and a plan without data."""
    (bench.folder / 'budget').write_text('16MiB\n')
    bench.good('train', 'gpt.ini', '--quiet', '--budget-file', 'budget', '--steps', 2)
    facts = json.loads(bench.good('generate', 'gpt-a', '--prompt', 'quern', '--json'))
    bench.expect(len(facts['tokens']) == 128 - 5, f'as far as the longest goes: {facts}')
    shown = bench.good('plan', 'gpt.ini', '--data', 'nowhere', '--explain', 'tokens.16')
    bench.expect('tokens.16' in shown, shown)
    report = json.loads(bench.good('bench', 'gpt.ini', '--only', 'update', '--json'))
    bench.expect(report['results'][0]['samples'] == 12, f'{report}')


def check_bad(bench, text):
    sets = 'train gpt.ini --set data.'
    for value in ('48,16', '16,16', '0,16', '1.5', '16;48', '', '1,2,3,4,5,6,7,8', '20000000'):
        check(bench, f'{sets}lengths={value}', 2, r'data\.lengths: ')
    check(bench, f'{sets}stride=4', 2, r'data\.stride: goes with data\.length')
    check(bench, 'train gpt.ini --set train.batch=adaptive --set train.batch_min=8 --set '
          'train.batch_max=16', 2, r'data\.lengths: go with no adaptive batch')
    bench.recipe('both.ini', RECIPE.format(name='gpt', model='', data='length = 8\n', lengths='8'))
    check(bench, 'train both.ini', 2, r'data\.lengths: and data\.length exclude each other')
    bench.recipe('whole.ini', RECIPE.format(name='gpt', model='', data='', lengths='8').replace(
        'separator = 10\n', ''))
    check(bench, 'train whole.ini', 2, r'data\.lengths: needs data\.separator')
    (bench.folder / 'ends').write_bytes(b'\n' * 100)
    check(bench, 'train gpt.ini --data ends', 1, r'ends: no document of the split has a token')
    bench.good('train', 'gpt.ini', '--quiet', '--steps', 2, '--out', 'cut')
    (bench.folder / 'text').write_bytes(text[:3000] + b'\n' + text[3001:])
    check(bench, 'resume cut --steps 4', 1, 'cut: data: not the samples this training began with')


def main():
    bench = Bench(sys.argv[1])
    with bench:
        text = write_text(bench)
        summaries = [check_model(bench, model) for model in MODELS]
        check_figures(bench, text, summaries[0])
        check_more(bench)
        check_bad(bench, text)
    bench.end()


if __name__ == '__main__':
    main()
