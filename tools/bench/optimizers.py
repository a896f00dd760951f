#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Optimizers with small states beside AdamW in f32: the losses of the same trainings.

    tools/bench/optimizers.py FILE [--recipes gpt-kjv,bert-kjv,llama-small]
                              [--optimizers adamw8,flash_adamw] [--seeds 1,2,3] [--updates 200]
                              [--set SECTION.KEY=VALUE]... [--program build/tools/quern/quern]

FILE is the text, as of `bible -f gen1:1-rev22:21`. For each recipe and seed every optimizer trains the
same network from the same start on the same samples; adafactor and apollo, whose steps are of another
size, at a multiple of the recipe's learning rate, with as much less weight decay. The loss is the mean
over the last tenth of the updates, the other one that of what is held out; a gap is how far it is above
adamw's. MiB are those of parameters and optimizer in the plan, s the median of an update. Exit status: 0
if every gap is within 1 %, else 1.
"""
import argparse
import configparser
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BESIDE = 'adamw'
WITHIN = 0.01
# The learning rate, over that of AdamW: of adafactor it is a share of the parameter's size.
RATES = {'adafactor': 50, 'apollo': 2}
HEAD = (f"{'recipe':14}{'seed':>5}  {'optimizer':13}{'loss':>9}{'gap':>10}{'held out':>11}{'gap':>10}"
        f"{'MiB':>8}{'s':>8}")


def rates(recipe, optimizer):
    """The settings of a recipe that go by the learning rate, if the optimizer has its own."""
    if optimizer not in RATES:
        return []
    keys = configparser.ConfigParser(interpolation=None)
    keys.read(ROOT / 'recipes' / f'{recipe}.ini', encoding='utf-8')
    factor = RATES[optimizer]
    factors = {'lr': factor, 'lr_end': factor, 'weight_decay': 1 / factor}
    return [f'train.{key}={keys.getfloat("train", key) * factors[key]:.6g}'
            for key in factors if key in keys['train']]


def train(options, recipe, seed, optimizer):
    """The lines that a training writes of itself."""
    with tempfile.TemporaryDirectory() as folder:
        metrics = pathlib.Path(folder) / 'metrics'
        command = [options.program, 'train', recipe, '--data', options.file, '--quiet',
                   '--steps', str(options.updates), '--seed', str(seed), '--metrics', metrics]
        for setting in (f'train.optimizer={optimizer}', *rates(recipe, optimizer), *options.set):
            command += ['--set', setting]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return [json.loads(line) for line in metrics.read_text(encoding='utf-8').splitlines()]


def figures(told):
    updates = [line for line in told if 'step' in line]
    plan = next(line['plan'] for line in told if 'plan' in line)
    summary = next(line['summary'] for line in told if 'summary' in line)
    last = updates[-max(1, len(updates) // 10):]
    return {'loss': statistics.fmean(line['loss'] for line in last),
            'held_out': summary['test_loss'],
            'bytes': sum(plan['bytes_by_tag'][tag] for tag in ('parameters', 'optimizer')),
            'seconds': statistics.median(line['seconds'] for line in updates)}


def gaps(have, beside):
    return [have[loss] / beside[loss] - 1 for loss in ('loss', 'held_out')]


def row(recipe, seed, optimizer, have, beside):
    loss, held_out = gaps(have, beside)
    print(f"{recipe:14}{seed:5}  {optimizer:13}{have['loss']:9.4f}{100 * loss:+8.2f} %"
          f"{have['held_out']:11.4f}{100 * held_out:+8.2f} %{have['bytes'] / 2**20:8.2f}"
          f"{have['seconds']:8.3f}", flush=True)


def compare(options, recipe, seed):
    """Rows of one network and seed; gives their largest gap."""
    beside, worst = None, 0
    for optimizer in (BESIDE, *options.optimizers):
        have = figures(train(options, recipe, seed, optimizer))
        beside = beside or have
        row(recipe, seed, optimizer, have, beside)
        worst = max(worst, *(abs(gap) for gap in gaps(have, beside)))
    return worst


def words(text):
    return text.split(',')


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('file', type=pathlib.Path)
    parser.add_argument('--recipes', type=words, default=['gpt-kjv', 'bert-kjv', 'llama-small'])
    parser.add_argument('--optimizers', type=words, default=['adamw8', 'flash_adamw'])
    parser.add_argument('--seeds', type=words, default=['1', '2', '3'])
    parser.add_argument('--updates', type=int, default=200)
    parser.add_argument('--set', action='append', default=[])
    parser.add_argument('--program', default=ROOT / 'build/tools/quern/quern')
    options = parser.parse_args()
    print(HEAD)
    worst = max(compare(options, recipe, int(seed))
                for recipe in options.recipes for seed in options.seeds)
    print(f'the largest gap is {100 * worst:.2f} %')
    return int(worst > WITHIN)


if __name__ == '__main__':
    sys.exit(main())
