#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Quern beside its peers, in turns on this machine:

    tools/bench/compare.py [--only matmul,conv2d,attention,memory,update] [--rounds 3]
                           [--python PYTHON] [--program build/tools/quern/quern] [--json FILE]

Every figure is a median over the rounds of medians within a round; both sides use --threads (2)
threads; ours goes through `quern bench`, with packing and scratch included, after the few seconds of
tuning that a first training takes. A ratio above 1 means that Quern is faster.

Peers live outside the tree, in an environment of their own:

    python3 -m venv ~/bench && ~/bench/bin/pip install torch numpy tinygrad

and --python names its interpreter (default: this one). Whatever is missing there is said, and our own
column is printed all the same.
"""
import argparse
import json
import math
import os
import pathlib
import platform
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PATIENCE = 600  # seconds for one library in one round


class Side:
    """One library: its version, or why it is not there, and its seconds by case."""

    def __init__(self, name):
        self.name, self.version, self.missing, self.rounds = name, None, None, {}

    def add(self, key, seconds):
        if seconds:
            self.rounds.setdefault(key, []).append(seconds)

    def seconds(self, key):
        return statistics.median(self.rounds[key]) if key in self.rounds else None


def key_of(result):
    return result['op'], result['work'], result.get('group', '')


def run_quern(options, only, side, *more):
    env = {**os.environ, 'POCL_MAX_PTHREAD_COUNT': str(options.threads)}
    report = json.loads(subprocess.run(
        [options.program, 'bench', '--only', only, '--json', *more], check=True, env=env,
        stdout=subprocess.PIPE, text=True).stdout)
    side.version = f"Quern {report['quern']}, {report['platform']} {report['driver']}"
    timed = [r for r in report['results'] if r['outcome'] == 'timed']
    for result in timed:
        side.add(key_of(result), result['seconds'])
    return report, timed


def run_peer(options, which, cases, side, **env):
    """Cases are (key, {"op", "group", "size"})."""
    try:
        process = subprocess.run(
            [options.python, HERE / 'peers.py', which, str(options.threads), str(options.seconds)],
            input=json.dumps([case for _, case in cases]), text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env={**os.environ, **env}, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        side.missing = f'no answer within {PATIENCE} s'
        return
    if process.returncode:
        side.missing = process.stderr.strip().splitlines()[-1].strip()
        return
    report = json.loads(process.stdout)
    side.version = report['version']
    for (key, _), seconds in zip(cases, report['seconds']):
        side.add(key, seconds)


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def say_sides(sides):
    for side in sides:
        print(f'  {side.name}: {side.version or "not here: " + str(side.missing)}')


def ratios(keys, ours, others):
    """Of the fastest of the others to ours, where there is one."""
    found = {}
    for key in keys:
        theirs = [s for s in (side.seconds(key) for side in others) if s]
        if theirs and ours.seconds(key):
            found[key] = min(theirs) / ours.seconds(key)
    return found


def table(keys, ours, others, work=None):
    """Milliseconds, and for ours GFLOP/s where `work` tells the operations."""
    found = ratios(keys, ours, others)
    names = [side.name for side in [ours, *others]]
    print(f"  {'':48}" + ''.join(f'{name:>14}' for name in names) + '   GFLOP/s   ratio')
    for key in keys:
        label = ' '.join(part for part in key[1:] if part)
        cells = [side.seconds(key) for side in [ours, *others]]
        rate = work[key] / cells[0] * 1e-9 if work and work.get(key) and cells[0] else None
        print(f'  {label:48}' + ''.join(f'{1e3 * c:11.3f} ms' if c else f"{'-':>14}" for c in cells)
              + (f'{rate:10.1f}' if rate else ' ' * 10)
              + (f'{found[key]:8.2f}' if key in found else ''), flush=True)
    return found


def conclude(title, values, gate, aim):
    mean = geometric_mean(list(values))
    if mean is None:
        print(f'{title}: nothing to compare with\n')
        return None
    word = 'MET' if mean >= gate else 'MISSED'
    print(f'{title}: geometric mean {mean:.2f} of {len(values)} (gate {gate}: {word}; aim {aim})\n')
    return mean


# --- the tables ---

GROUPS = ('forward', 'input gradient', 'weight gradient')


def matmul(options):
    print('Matrix products: linear layers, forward and both gradients, f32')
    ours, torch, clblast = Side('Quern'), Side('PyTorch'), Side('CLBlast')
    blas = [Side('OpenBLAS'), Side('OpenBLAS SkX')]
    work = {}
    for number in range(options.rounds):
        _, timed = run_quern(options, 'linear', ours)
        timed = [r for r in timed if r['group'] in GROUPS]
        work.update({key_of(r): r['flops'] for r in timed})
        cases = [(key_of(r), {'op': 'linear', 'group': r['group'], 'size': r['size']})
                 for r in timed]
        run_peer(options, 'torch', cases, torch)
        threads = {'OPENBLAS_NUM_THREADS': str(options.threads)}
        run_peer(options, 'numpy', cases, blas[0], **threads)
        run_peer(options, 'numpy', cases, blas[1], OPENBLAS_CORETYPE='SkylakeX', **threads)
        if number == 0:  # slow, and far away
            run_quern(options, 'linear', clblast, '--tune', 'off', '--set',
                      'memory.variants=linear=clblast')
    say_sides([ours, torch, *blas, clblast])
    thin = [key for key in work if key[1].startswith('thin')]
    keys = [key for key in work if key not in thin]
    found = table(keys, ours, [torch, *blas], work)
    reported = geometric_mean(list(table(thin, ours, [torch, *blas], work).values()))
    if reported:
        print(f'Thin matrix products beside the same: geometric mean {reported:.2f} (a report)')
    mean = conclude('Matrix products beside the fastest of OpenBLAS and PyTorch', found.values(),
                    0.80, 1.0)
    slow = conclude('Matrix products beside CLBlast', ratios(keys, ours, [clblast]).values(), 8, 12)
    return {'matmul': mean, 'matmul, thin': reported, 'matmul beside CLBlast': slow}


def conv2d(options):
    print('Convolutions, batch 8 (demonstration: 64), forward and both gradients, f32; depthwise ones '
          'are reported, and not in the mean')
    ours, torch, work = Side('Quern'), Side('PyTorch'), {}
    for _ in range(options.rounds):
        _, timed = run_quern(options, 'conv2d', ours)
        timed = [r for r in timed if r['group'] in GROUPS
                 and not r['work'].startswith('two images')]
        work.update({key_of(r): r['flops'] for r in timed})
        cases = [(key_of(r), {'op': 'conv2d', 'group': r['group'], 'size': r['size']})
                 for r in timed]
        cases += [((op, name, 'gradients'), {**case, 'group': 'gradients'})
                  for (op, name, group), case in cases if group == 'forward']
        run_peer(options, 'torch', cases, torch)
    keys = list(work)
    say_sides([ours, torch])
    table(keys, ours, [torch], work)
    layers = {}
    for op, name, group in keys:
        if group == 'forward' and torch.seconds((op, name, group)):
            mine = sum(ours.seconds((op, name, g)) for g in GROUPS)
            theirs = sum(torch.seconds((op, name, g)) for g in ('forward', 'gradients'))
            layers[name] = theirs / mine
    for name, ratio in layers.items():
        print(f'  {name:48} forward + both gradients: {ratio:.2f}')
    of_gate = [ratio for name, ratio in layers.items() if not name.startswith('depthwise')]
    return {'conv2d': conclude('Convolutions beside PyTorch', of_gate, 0.85, 1.1)}


def attention(options):
    print('Attention, causal, forward and backward, f32')
    ours, torch = Side('Quern'), Side('PyTorch')
    for _ in range(options.rounds):
        whole = Side('')
        _, timed = run_quern(options, 'attention', whole)
        sums, cases = {}, {}
        for r in timed:
            key = ('attention', r['work'], '')
            sums[key] = sums.get(key, 0) + r['seconds']
            cases[key] = {'op': 'attention', 'group': '', 'size': r['size']}
        for key, seconds in sums.items():
            ours.add(key, seconds)
        ours.version = whole.version
        run_peer(options, 'torch', list(cases.items()), torch)
    say_sides([ours, torch])
    found = table(list(ours.rounds), ours, [torch])
    return {'attention': conclude('Attention beside PyTorch', found.values(), 1.0, 1.5)}


MEMORY = ('layer_norm', 'chain', 'batch_norm', 'softmax_cross_entropy', 'adamw')


def memory(options):
    print('Operators that memory bounds: bytes that must move, as a share of a copy of as many')
    shares = {op: [] for op in MEMORY}
    for _ in range(options.rounds):
        for op in MEMORY:  # each in a process of its own, beside its own copy
            report, timed = run_quern(options, op, Side(''))
            rate = sum(r['bytes'] for r in timed) / sum(r['seconds'] for r in timed)
            shares[op].append(rate / report['bytes_per_second_ceiling'])
    medians = {op: statistics.median(values) for op, values in shares.items()}
    for op, share in medians.items():
        print(f"  {op:24} {share:5.2f} (gate 0.7: {'MET' if share >= 0.7 else 'MISSED'}; aim 0.9)")
    print()
    return {f'memory: {op}': share for op, share in medians.items()}


def update(options):
    print('Updates of whole networks')
    ours, torch, tinygrad = Side('Quern'), Side('PyTorch'), Side('tinygrad')
    for number in range(options.rounds):
        _, timed = run_quern(options, 'update', ours)
        sizes = {'demonstration': [256], 'resnet18': [64]}
        cases = [(key_of(r), {'op': 'update', 'group': r['work'],
                              'size': sizes[r['work'].split()[0].rstrip(',')]}) for r in timed]
        run_peer(options, 'torch', cases, torch)
        if number == 0:
            run_peer(options, 'tinygrad', cases, tinygrad, DEV='CL')
            for r in timed:
                print(f"  {r['work']}: calling thread {100 * r['host_seconds'] / r['seconds']:.2f} % "
                      f"of an update (gate: below 2), micro-batch {r['micro_batch']}, "
                      f"{r['peak_bytes']} bytes")
    say_sides([ours, torch, tinygrad])
    found = table(list(ours.rounds), ours, [torch])
    for key, ratio in found.items():
        conclude(f'{key[1]} beside PyTorch', [ratio], 1.1, 1.4)
    for key, ratio in ratios(list(ours.rounds), ours, [tinygrad]).items():
        print(f'{key[1]} beside tinygrad: {ratio:.1f} (a report)')
    return {f'update: {key[1]}': ratio for key, ratio in found.items()}


TABLES = {f.__name__: f for f in (matmul, conv2d, attention, memory, update)}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--only', default=','.join(TABLES))
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--seconds', type=float, default=0.2, help='of each peer and case')
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--python', default=sys.executable)
    parser.add_argument('--program', default=str(ROOT / 'build/tools/quern/quern'))
    parser.add_argument('--json', help='write the ratios to this file')
    options = parser.parse_args()
    names = options.only.split(',')
    for name in names:
        if name not in TABLES:
            parser.error(f'--only: {name} is none of {", ".join(TABLES)}')
    print(f'{platform.platform()}, {os.cpu_count()} cores, {options.threads} threads, '
          f'{options.rounds} rounds\n')
    figures = {}
    for name in names:
        figures.update(TABLES[name](options))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(figures, indent=1) + '\n')


if __name__ == '__main__':
    main()
