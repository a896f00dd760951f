#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What each way of contrastive training learns, and what it costs:

    tools/bench/contrastive.py fashion|bank|warm|kjv [--seeds 1,2,3]
    tools/bench/contrastive.py time [--batch 512] [--rounds 3] [--updates 2]
    tools/bench/contrastive.py bytes
    tools/bench/contrastive.py loss [--batch 65536]

  fashion  recipe retrieve-fashion: whole, gradcache, accumulate, contaccum with a bank of 128, and the same without
           a bank of queries; the ratio is the largest of the towers' gradient norms in an update
  bank     the same from scratch with banks of 128 to 1024
  warm     from what accumulate learned, with a tenth of the learning rate: whole, contaccum with a bank of 512
  kjv      recipe retrieve-kjv (--folder has kjv.txt and web.txt of tools/verse_pairs.py): whole, contaccum, accumulate
  time     seconds of an update of two transformers (6 layers, width 384, 64 tokens), micro-batches of 8, the fastest
           of runs that take turns; ratios to accumulate
  bytes    by tag, of contaccum and of accumulate: they differ in banks and tables alone
  loss     one update of gradcache by towers of hardly any work, whose vectors have 512 numbers: bytes that the plan says
           and that are made, beside vectors and their gradients. The loss makes batch * batch * 512 * 10 operations

Every run is reported, then mean and deviation over the seeds. Trainings take one after another; figures of quality
do not depend on what else the machine does, those of time do.
"""
import argparse
import json
import pathlib
import random
import re
import statistics
import struct
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]

TRANSFORMERS = """[contrastive]
mode = accumulate
dim = 384
[model]
name = bert
layers = 6
heads = 6
width = 384
dropout = 0
pooling = mean
[data]
kind = lines
path = {folder}/kjv.txt
length = 64
held_out = 0.01
[passages]
path = {folder}/web.txt
[train]
batch = 512
steps = 2
optimizer = adamw
lr = 0.0001
eval_every = 0
[memory]
micro_batch = 8
budget = 4GiB
"""


# Two perceptrons of halves of 4 x 8 pixels.
LOSS = """[contrastive]
mode = gradcache
symmetric = yes
dim = {dim}
[model]
name = mlp
hidden1 = 16
hidden2 = 0
[data]
path = {folder}
pairs = halves
[train]
batch = {batch}
steps = 1
lr = 0.001
eval_every = 0
[memory]
micro_batch = 64
budget = 4GiB
tune = off
"""
DIM = 512


def sets(*keys):
    return [part for key in keys for part in ('--set', key)]


class Runs:
    """Trainings, each in a folder of its own that may be asked for later."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder

    def train(self, name, recipe, *args):
        """(lines of updates, summary)"""
        file = self.folder / f'{name}.jsonl'
        subprocess.run([self.options.program, 'train', recipe, '--quiet', '--metrics', file, '--out',
                        self.folder / name, *map(str, args)], check=True, stdout=subprocess.DEVNULL)
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        return [row for row in rows if 'step' in row], rows[-1]['summary']


def quality(runs, title, recipe, variants):
    """MRR of each variant: a function of the seed gives arguments."""
    print(f'{title}\n  {"":28} {"seed":>4} {"MRR":>6} {"R@1":>6} {"R@10":>6} {"ratio":>6} {"bytes":>10}', flush=True)
    means = {}
    for name, arguments in variants:
        found = []
        for seed in runs.options.seeds:
            rows, end = runs.train(f'{name}-{seed}'.replace(' ', '-'), recipe, '--seed', seed, *arguments(seed))
            ratio = max((row.get('grad_norm_ratio', 0) for row in rows), default=0)
            found.append(100 * end['test_mrr'])
            print(f"  {name:28} {seed:4} {found[-1]:6.1f} {100 * end['test_recall_1']:6.1f} "
                  f"{100 * end['test_recall_10']:6.1f} {ratio:6.1f} {end['peak_bytes_planned']:10}", flush=True)
        means[name] = statistics.mean(found)
        deviation = statistics.stdev(found) if len(found) > 1 else 0
        print(f'  {name:28} mean {means[name]:6.1f} +- {deviation:.1f}', flush=True)
    return means


def plain(*keys):
    return lambda seed: sets(*keys)


def fashion(runs):
    quality(runs, 'retrieve-fashion from scratch', 'retrieve-fashion', [
        *((mode, plain(f'contrastive.mode={mode}')) for mode in ('whole', 'gradcache', 'accumulate', 'contaccum')),
        ('no bank of queries', plain('contrastive.query_bank=no'))])


def bank(runs):
    quality(runs, 'retrieve-fashion from scratch, by bank', 'retrieve-fashion', [
        (f'bank {size}', plain(f'contrastive.bank={size}')) for size in (128, 256, 512, 1024)])


def warm(runs):
    def begin(*keys):
        return lambda seed: sets(f'train.weights={runs.folder}/accumulate-{seed}/last/weights.safetensors',
                                 'train.lr=0.0001', *keys)
    quality(runs, 'retrieve-fashion from weights of accumulate, a tenth of the learning rate', 'retrieve-fashion', [
        ('accumulate', plain('contrastive.mode=accumulate')),
        ('whole', begin('contrastive.mode=whole')),
        ('contaccum 512', begin('contrastive.bank=512'))])


def kjv(runs):
    where = (f'data.path={runs.options.folder}/kjv.txt', f'passages.path={runs.options.folder}/web.txt')
    quality(runs, 'retrieve-kjv', 'retrieve-kjv', [
        (mode, plain(f'contrastive.mode={mode}', *where)) for mode in ('whole', 'contaccum', 'accumulate')])


def write_transformers(runs):
    path = runs.folder / 'transformers.ini'
    path.write_text(TRANSFORMERS.format(folder=runs.options.folder))
    return path


MODES = {'accumulate': (), 'contaccum 1024': ('contrastive.mode=contaccum', 'contrastive.bank=1024'),
         'contaccum 8192': ('contrastive.mode=contaccum', 'contrastive.bank=8192'),
         'gradcache': ('contrastive.mode=gradcache',)}


def times(runs):
    recipe, options = write_transformers(runs), runs.options
    batch = options.batch or 512
    fastest = {name: [] for name in MODES}
    print(f'two transformers, {batch} pairs by 8: fastest of {options.updates} updates in each round')
    for turn in range(options.rounds):
        for name, keys in MODES.items():
            rows, _ = runs.train(f'{name}-{turn}'.replace(' ', '-'), recipe, '--batch', batch, '--steps',
                                 options.updates + 2, *sets(*keys))
            fastest[name].append(min(row['seconds'] for row in rows[1:-1]))  # metrics arrive one update late
    least = min(fastest['accumulate'])
    for name, seconds in fastest.items():
        told = ' '.join(f'{s:.2f}' for s in seconds)
        print(f'  {name:16} {min(seconds):8.2f} s  {min(seconds) / least:6.3f} x accumulate  (rounds: {told})')


def tags(runs, recipe, keys):
    plan = json.loads(subprocess.run([runs.options.program, 'plan', recipe, '--json', *sets(*keys)], check=True,
                                     stdout=subprocess.PIPE, text=True).stdout)
    return {**plan['bytes_by_tag'], 'peak': plan['peak_bytes_planned']}


def count_bytes(runs):
    recipe = write_transformers(runs)
    plans = {name: tags(runs, recipe, keys) for name, keys in MODES.items()}
    names = list(dict.fromkeys(tag for plan in plans.values() for tag in plan))
    print(f"  {'':20}" + ''.join(f'{name:>16}' for name in plans))
    for tag in names:
        print(f'  {tag:20}' + ''.join(f'{plan.get(tag, 0):16}' for plan in plans.values()))


def write_halves(folder, train, test):
    for name, count in (('train', train), ('t10k', test)):
        pixels = random.Random(count).randbytes(32 * count)
        (folder / f'{name}-images-idx3-ubyte').write_bytes(struct.pack('>4I', 0x803, count, 4, 8) + pixels)
        (folder / f'{name}-labels-idx1-ubyte').write_bytes(struct.pack('>2I', 0x801, count) + bytes(count))


def count_loss(runs):
    batch, recipe = runs.options.batch or 65536, runs.folder / 'loss.ini'
    write_halves(runs.folder, batch, 64)
    recipe.write_text(LOSS.format(dim=DIM, folder=runs.folder, batch=batch))
    rows, end = runs.train('loss', recipe)
    vectors = 4 * batch * DIM * 4  # of queries and passages, and their gradients, in f32
    print(f"  {batch} pairs of {DIM} numbers: loss {rows[0]['loss']:.4f}, an update {rows[0]['seconds']:.1f} s")
    for name in ('planned', 'allocated'):
        peak = end[f'peak_bytes_{name}']
        print(f'  peak {name} {peak}: {(peak - vectors) / 2**20:.2f} MiB beside vectors and their gradients')


WORKS = {'fashion': fashion, 'bank': bank, 'warm': warm, 'kjv': kjv, 'time': times, 'bytes': count_bytes,
         'loss': count_loss}


def seeds(text):
    if not re.fullmatch(r'\d+(,\d+)*', text):
        raise argparse.ArgumentTypeError(f'{text} is no list of numbers')
    return [int(seed) for seed in text.split(',')]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('work', choices=WORKS)
    parser.add_argument('--program', default=ROOT / 'build/tools/quern/quern')
    parser.add_argument('--folder', type=pathlib.Path, default=pathlib.Path('.'), help='of kjv.txt and web.txt')
    parser.add_argument('--seeds', type=seeds, default=[1, 2, 3])
    parser.add_argument('--batch', type=int, help='pairs of an update: time 512, loss 65536')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--updates', type=int, default=2)
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    with tempfile.TemporaryDirectory(prefix='quern-bench-') as folder:
        WORKS[options.work](Runs(options, pathlib.Path(folder)))


main()
