#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Language models of real size beside their peers, in turns on this machine:

    tools/bench/language.py [--only speed,memory] [--lengths 64,256] [--rounds 3] [--threads 2]
                            [--python PYTHON] [--llm-c CHECKOUT] [--program build/tools/quern/quern]

speed: tokens per second of updates of GPT-2 124M, batch 4, AdamW, in f32 beside PyTorch, eager and
compiled, and beside llm.c's train_gpt2.c (4 x 64 tokens, which is its own size); with activations in
bf16 beside PyTorch's autocast. Sides take turns as in compare.py, whose page says what the figures
and the marks mean.

memory: the bytes of the plan of the row of speed beyond 16 bytes a parameter, and the growth of
PyTorch beyond the same (gpt.py).

PYTHON has PyTorch (default: this one); CHECKOUT is a working tree of github.com/karpathy/llm.c, built
here with gcc -Ofast -fno-finite-math-only -march=native -fopenmp (without the second its losses are no
numbers). Weights and tokens are random; what is missing is said.
"""
import argparse
import array
import json
import os
import pathlib
import random
import re
import statistics
import struct
import subprocess
import sys
import tempfile

import alternate
from compare import ROOT, cell, chosen_tables, machine, peer

BATCH, CLASSES, WIDTH, LAYERS, POSITIONS = 4, 50257, 768, 12, 1024
# By tokens of a sample: a third of what PyTorch takes beyond parameters, gradients and states.
BUDGETS = {64: 2_200_000_000, 256: 2_390_000_000}

RECIPE = """[model]
name = gpt
logits = 0
[data]
kind = tokens
type = u16
path = tokens
tokens = {tokens}
length = {length}
held_out = 0
[train]
batch = {batch}
steps = 1
optimizer = adamw
[memory]
budget = {budget}
"""


class Work:
    def __init__(self, length, storage):
        self.length, self.storage = length, storage
        self.name = f'GPT-2 124M, {BATCH} x {length} tokens, {storage}'
        self.key = ('gpt2', self.name, '')
        self.cases = {self.key: {'op': 'gpt2', 'group': 'eager', 'size': [BATCH, length]}}


class Quern:
    """`quern bench` of a recipe."""

    def __init__(self, options, folder):
        self.options, self.folder, self.name = options, folder, 'Quern'
        self.version, self.missing = None, None
        draw = random.Random(1)
        tokens = array.array('H', (draw.randrange(CLASSES) for _ in range(1 << 16)))
        (folder / 'tokens').write_bytes(tokens.tobytes())

    def recipe(self, work):
        path = self.folder / f'gpt2-{work.length}.ini'
        path.write_text(RECIPE.format(tokens=CLASSES, length=work.length, batch=BATCH,
                                      budget=BUDGETS.get(work.length, '3GiB')),
                        encoding='ascii')
        return path

    def report(self, work, command, *more):
        env = {**os.environ, 'POCL_MAX_PTHREAD_COUNT': str(self.options.threads)}
        return json.loads(subprocess.run(
            [self.options.program, command, self.recipe(work), '--storage', work.storage, '--json',
             *more], check=True, env=env, stdout=subprocess.PIPE, text=True).stdout)

    def time(self, work):
        report = self.report(work, 'bench', '--only', 'update')
        self.version = f"Quern {report['quern']}, {report['platform']} {report['driver']}"
        result = report['results'][0]
        return {work.key: (result['fastest_seconds'], result['seconds'])}


class Mode:
    """One mode of PyTorch, in the process that several share."""

    def __init__(self, name, torch, group):
        self.name, self.torch, self.group = name, torch, group

    version = property(lambda self: self.torch.version)
    missing = property(lambda self: self.torch.missing)

    def time(self, work):
        sample = self.torch.ask({**work.cases[work.key], 'group': self.group})
        return {work.key: sample} if sample else {}


class LlmC:
    """train_gpt2.c on a checkpoint of random weights; a few steps of it."""

    STEPS = 4
    SOURCES = ('dev/data/tinyshakespeare/tiny_shakespeare_train.bin',
               'dev/data/tinyshakespeare/tiny_shakespeare_val.bin')

    def __init__(self, options, folder):
        self.name, self.version, self.missing = 'llm.c', None, None
        self.folder, self.threads = folder / 'llm.c', options.threads
        if not options.llm_c:
            self.missing = '--llm-c names no checkout'
            return
        self.folder.mkdir()
        subprocess.run(['gcc', '-Ofast', '-fno-finite-math-only', '-march=native', '-fopenmp',
                        '-DOMP', '-w',
                        pathlib.Path(options.llm_c, 'train_gpt2.c').resolve(), '-lm', '-o',
                        self.folder / 'train_gpt2'], check=True)
        self.version = 'llm.c, gcc -Ofast -fno-finite-math-only -march=native -fopenmp'
        self.write_checkpoint()
        for name in self.SOURCES:
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            tokens = (folder / 'tokens').read_bytes()
            header = struct.pack('<3I', 20240520, 1, len(tokens) // 2) + bytes(4 * 253)
            (self.folder / name).write_bytes(header + tokens)

    def write_checkpoint(self):
        """Version 3: a header of 256 integers, then the parameters in f32, the table padded."""
        padded = -(-CLASSES // 128) * 128
        header = (20240326, 3, POSITIONS, CLASSES, LAYERS, 12, WIDTH, padded)
        table = (padded + POSITIONS) * WIDTH
        rest = LAYERS * (12 * WIDTH * WIDTH + 13 * WIDTH) + 2 * WIDTH
        some = array.array('f', (random.Random(2).gauss(0, 0.02) for _ in range(1 << 16)))
        numbers = (some * ((table + rest) // len(some) + 1))[:table + rest]
        with open(self.folder / 'gpt2_124M.bin', 'wb') as file:
            file.write(struct.pack('<8I', *header) + bytes(4 * 248))
            numbers.tofile(file)

    def time(self, work):
        if self.missing or work.length != 64 or work.storage != 'f32':
            return {}
        seconds = []
        with subprocess.Popen(['./train_gpt2'], cwd=self.folder, stdout=subprocess.PIPE, text=True,
                              bufsize=1, env={**os.environ, 'OMP_NUM_THREADS': str(self.threads)}
                              ) as process:
            for line in process.stdout:
                took = re.search(r'took ([\d.]+) ms', line)
                seconds += [float(took[1]) / 1e3] if took else []
                if len(seconds) == self.STEPS:
                    process.kill()
        if len(seconds) < self.STEPS:
            self.missing = 'it ended'
            return {}
        return {work.key: (min(seconds), statistics.median(seconds))}


# --- the tables ---

def judge(what, ratio, gate, aim):
    print(f'    {what}: {ratio:.2f} (gate {gate}: {"MET" if ratio >= gate else "MISSED"}; aim {aim}: '
          f'{"met" if ratio >= aim else "missed"})')


# Names of sides with gate and aim, by storage.
RATIOS = {'f32': {'PyTorch': (1.15, 1.4), 'PyTorch, compiled': (1.0, 1.2), 'llm.c': (5, 5.5)},
          'bf16': {'PyTorch, bf16': (1.0, 1.3)}}


def speed(options, folder):
    print('Updates of GPT-2 124M with AdamW: ms, fastest (median), tokens per second')
    torch = peer(options, 'torch', 'PyTorch')
    ours = Quern(options, folder)
    sides = {'f32': [ours, Mode('PyTorch', torch, 'eager'),
                     Mode('PyTorch, compiled', torch, 'compiled'), LlmC(options, folder)],
             'bf16': [ours, Mode('PyTorch, bf16', torch, 'bf16')]}
    for storage, several in sides.items():
        for length in options.lengths:
            work, table = Work(length, storage), alternate.Table()
            alternate.alternate(table, work, several, options.rounds)
            print(work.name)
            for side in several:
                times = table.of(side, work.key)
                rate = BATCH * length / times.fastest if times.fastest else 0
                print(f'  {side.name:20}{cell(times)} {rate:8.1f}  '
                      f'{side.version or side.missing}', flush=True)
            for side in several[1:]:
                times = table.of(side, work.key).fastest
                if times:
                    judge(f'beside {side.name}', times / table.of(ours, work.key).fastest,
                          *RATIOS[storage][side.name])
    torch.close()


def memory(options, folder):
    print('Bytes beyond 16 a parameter: of our plan, and by which PyTorch grows')
    ours = Quern(options, folder)
    for length in options.lengths:
        work = Work(length, 'f32')
        plan = ours.report(work, 'plan')
        parameters = (CLASSES + length) * WIDTH + LAYERS * (12 * WIDTH * WIDTH + 13 * WIDTH) + 2 * WIDTH
        beyond = plan['peak_bytes_planned'] - 16 * parameters
        theirs = json.loads(subprocess.run(
            [options.python, pathlib.Path(__file__).parent / 'gpt.py', str(BATCH), str(length),
             str(options.threads)], check=True, stdout=subprocess.PIPE, text=True).stdout)
        share = beyond / theirs['bytes']
        print(f"  {work.name}: {beyond / 1e6:.1f} MB, {theirs['version']} {theirs['bytes'] / 1e6:.1f} MB: "
              f'{share:.3f} (gate 0.4: {"MET" if share <= 0.4 else "MISSED"}; aim 0.3: '
              f'{"met" if share <= 0.3 else "missed"})', flush=True)


TABLES = {f.__name__: f for f in (speed, memory)}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--only', default=','.join(TABLES))
    parser.add_argument('--lengths', type=lambda text: [int(n) for n in text.split(',')],
                        default=[64, 256], help='tokens of a sample')
    parser.add_argument('--rounds', type=int, default=alternate.ROUNDS, help='of each work at least')
    parser.add_argument('--seconds', type=float, default=5, help='of each peer and case')
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--python', default=sys.executable)
    parser.add_argument('--llm-c', help='a checkout of llm.c')
    parser.add_argument('--program', default=str(ROOT / 'build/tools/quern/quern'))
    options, tables = chosen_tables(parser, TABLES)
    print(machine(options))
    with tempfile.TemporaryDirectory() as folder:
        for table in tables:
            table(options, pathlib.Path(folder))


if __name__ == '__main__':
    main()
