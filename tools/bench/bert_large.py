#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""BERT-large with an effective batch of 4 samples of 512 tokens, in three ways, in turns on this machine:

    tools/bench/bert_large.py [--only bytes,speed] [--rounds 3] [--updates 3] [--threads 2]
                              [--program build/tools/quern/quern]

whole: one micro-batch of 4 that keeps all activations; parts: four of 1 that do; recomputed: four of 1
that compute activations again where the budget of the recipe bert-large-accumulation wants it.

bytes: of the device as they are planned, all of them and those of activations alone. speed: seconds of an
update, each way trained for some updates at a time, without one before and one after them, since the host
runs ahead of the device; and the bytes that were allocated. The texts are drawn words. Shares of speed and of activations are of those of the first way.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

import alternate
from compare import ROOT, cell, chosen_tables, machine

RECIPE, GB = 'bert-large-accumulation', 1e9
SAMPLES, WORDS = 64, 600
PERSISTENT = ('parameters', 'state', 'gradients', 'optimizer')


class Way:
    """Arguments of the command; the gate of the peak in GB; gates and aims of speed and of activations
    against the first way, None: it is the first."""

    def __init__(self, name, args, peak, speed=None, activations=None):
        self.name, self.args, self.peak, self.speed, self.activations = name, args, peak, speed, activations
        self.allocated = None


KEEP = ('--recompute', 'none', '--budget', '16GiB')
WAYS = (Way('whole', ('--micro-batch', '4', *KEEP), 9.0),
        Way('parts', ('--micro-batch', '1', *KEEP), 6.4, (0.95, 0.98), 0.26),
        Way('recomputed', ('--micro-batch', '1'), 5.8, (0.78, 0.82), 0.10))


def write(folder):
    """Lines of text that all become 512 tokens."""
    draw = random.Random(1)
    words = [''.join(draw.choice('abcdefgh') for _ in range(draw.randrange(2, 9))) for _ in range(400)]
    with open(folder / 'lines.jsonl', 'w', encoding='ascii') as file:
        for i in range(SAMPLES):
            text = ' '.join(draw.choice(words) for _ in range(WORDS))
            file.write(json.dumps({'text': text, 'kind': i % 6}) + '\n')


def run(options, *args):
    env = {**os.environ, 'POCL_MAX_PTHREAD_COUNT': str(options.threads)}
    return subprocess.run([options.program, *map(str, args)], check=True, env=env, stdout=subprocess.PIPE,
                          text=True).stdout


class Side:
    """One way, trained for some updates."""

    def __init__(self, way, options, folder):
        self.way, self.name, self.options, self.folder = way, way.name, options, folder

    def time(self, work):
        figures = self.folder / 'metrics'
        run(self.options, 'train', RECIPE, '--data', self.folder / 'lines.jsonl', '--set',
            'data.vocabulary=300', '--set', 'data.held_out=0', '--steps', self.options.updates + 2,
            '--metrics', figures, '--quiet', *self.way.args)
        lines = [json.loads(line) for line in figures.read_text().splitlines()]
        self.way.allocated = lines[-1]['summary']['peak_bytes_allocated']
        seconds = [line['seconds'] for line in lines if 'loss' in line][1:-1]
        return {key: (min(seconds), statistics.median(seconds)) for key in work.cases}


class Work:
    cases = {'update': {}}


# --- the tables ---

def word(good, words=('MET', 'MISSED')):
    return words[not good]


def show_bytes(options, folder):
    print('Bytes of the device as planned: GB, and beyond parameters, gradients and states: GB')
    first = None
    for way in WAYS:
        plan = json.loads(run(options, 'plan', RECIPE, '--data', 'nowhere', '--json', *way.args))
        peak = plan['peak_bytes_planned']
        rest = peak - sum(plan['bytes_by_tag'][tag] for tag in PERSISTENT)
        first = first or rest
        aim = ('' if way.activations is None else
               f' (aim {way.activations}: {word(rest <= way.activations * first, ("met", "missed"))})')
        print(f'  {way.name:12}{peak / GB:6.3f} (gate {way.peak}: {word(peak <= way.peak * GB)}), '
              f'{rest / GB:6.3f}, {rest / first:.3f} of the first{aim}', flush=True)


def show_speed(options, folder):
    print('Updates: ms, fastest (median), share of the first in speed, GB that were allocated')
    write(folder)
    sides = [Side(way, options, folder) for way in WAYS]
    table = alternate.Table()
    alternate.alternate(table, Work, sides, options.rounds, options.rounds)
    first = table.of(sides[0], 'update').fastest
    for side in sides:
        times, way = table.of(side, 'update'), side.way
        share = first / times.fastest
        judged = ('' if way.speed is None else
                  f' (gate {way.speed[0]}: {word(share >= way.speed[0])}; '
                  f'aim {way.speed[1]}: {word(share >= way.speed[1], ("met", "missed"))})')
        print(f'  {way.name:12}{cell(times)} {share:6.3f}{judged}, {way.allocated / GB:.3f}', flush=True)


TABLES = {'bytes': show_bytes, 'speed': show_speed}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--only', default=','.join(TABLES))
    parser.add_argument('--rounds', type=int, default=alternate.ROUNDS)
    parser.add_argument('--updates', type=int, default=3, help='of each way and round')
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--program', default=str(ROOT / 'build/tools/quern/quern'))
    options, tables = chosen_tables(parser, TABLES)
    print(machine(options))
    with tempfile.TemporaryDirectory() as folder:
        for table in tables:
            table(options, pathlib.Path(folder))


if __name__ == '__main__':
    sys.exit(main())
