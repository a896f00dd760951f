#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Quern beside its peers, in turns on this machine:

    tools/bench/compare.py [--only matmul,bf16,conv2d,attention,memory,update] [--rounds 3]
                           [--python PYTHON] [--program build/tools/quern/quern] [--json FILE]

Sides take turns work by work (alternate.py). Figures are the fastest time, and after it in brackets
the median over the rounds of medians within a round; ratios are of the fastest, above 1 means that
Quern is faster. A work is repeated, nine times at most, until the fastest three rounds of each side
differ by less than 1.3; a row for which they still do not agree is marked with ! and is to be
measured again on a quieter machine. Both sides use --threads (2) threads; ours goes through `quern
bench`, with packing and scratch included, after the tuning that a first training does.

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

import alternate

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PATIENCE = 600  # seconds for one answer


class Work:
    """What is timed in one turn: cases of one operator at one size."""

    def __init__(self, op, name, results):
        self.op, self.name = op, name
        self.flops = {key_of(r): r.get('flops') for r in results}
        self.cases = {key_of(r): {'op': op, 'group': r.get('group', name),
                                  'size': r.get('size', [r.get('samples')])} for r in results}


class Quern:
    """Our side: `quern bench` on one work."""

    def __init__(self, options, name='Quern', more=()):
        self.options, self.name, self.more = options, name, more
        self.version, self.missing = None, None

    def report(self, only):
        """(all that was printed, what was timed)"""
        env = {**os.environ, 'POCL_MAX_PTHREAD_COUNT': str(self.options.threads)}
        report = json.loads(subprocess.run(
            [self.options.program, 'bench', '--only', only, '--json', *self.more], check=True,
            env=env, stdout=subprocess.PIPE, text=True).stdout)
        self.version = f"Quern {report['quern']}, {report['platform']} {report['driver']}"
        return report, [r for r in report['results'] if r['outcome'] == 'timed']

    def works(self, op, groups=None):
        """The works of an operator; the first run also tunes."""
        found = {}
        for r in self.report(op)[1]:
            if r['op'] == op and (not groups or r['group'] in groups):
                found.setdefault(r['work'], []).append(r)
        return [Work(op, name, results) for name, results in found.items()]

    def time(self, work):
        return {key_of(r): (r['fastest_seconds'], r['seconds'])
                for r in self.report(f'{work.op} {work.name}')[1] if key_of(r) in work.cases}


def key_of(result):
    return result['op'], result['work'], result.get('group', '')


def peer(options, which, name, **env):
    return alternate.Peer(
        name, [options.python, HERE / 'peers.py', which, str(options.threads),
               str(options.seconds)], PATIENCE, env={**os.environ, **env})


def time_all(options, works, sides):
    table = alternate.Table()
    for work in works:
        alternate.alternate(table, work, sides, options.rounds)
        print('.', end='', file=sys.stderr, flush=True)
    print(file=sys.stderr)
    for side in sides:
        print(f'  {side.name}: {side.version or "not here: " + str(side.missing)}')
    return table


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def ratios(table, keys, ours, others):
    """Of the fastest of the others to ours, where there is one."""
    found = {}
    for key in keys:
        theirs = [s for s in (table.of(side, key).fastest for side in others) if s]
        if theirs and table.of(ours, key).fastest:
            found[key] = min(theirs) / table.of(ours, key).fastest
    return found


def cell(times):
    if not times.fastest:
        return f"{'-':>24}"
    mark = '!' if times.doubtful else ' '
    return f'{1e3 * times.fastest:10.3f} ({1e3 * times.median:.3f}){mark}'.rjust(24)


def show(table, keys, ours, others, flops=None):
    """Milliseconds, and for ours GFLOP/s where `flops` tells the operations."""
    found = ratios(table, keys, ours, others)
    sides = [ours, *others]
    print(f"  {'ms, fastest (median)':48}" + ''.join(f'{side.name:>24}' for side in sides)
          + '   GFLOP/s   ratio')
    for key in keys:
        label = ' '.join(part for part in key[1:] if part)
        own = table.of(ours, key).fastest
        rate = flops[key] / own * 1e-9 if flops and flops.get(key) and own else None
        print(f'  {label:48}' + ''.join(cell(table.of(side, key)) for side in sides)
              + (f'{rate:10.1f}' if rate else ' ' * 10)
              + (f'{found[key]:8.2f}' if key in found else ''), flush=True)
    marked = sum(table.doubtful(sides, [key]) for key in keys)
    if marked:
        print(f'  {marked} of {len(keys)} rows are marked (!): their rounds do not agree')
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
COMPARED = ('demonstration', 'resnet18')  # updates that the peers have


def close(peers):
    for one in peers:
        one.close()


def matmul(options):
    print('Matrix products: linear layers, forward and both gradients, f32')
    ours = Quern(options)
    threads = {'OPENBLAS_NUM_THREADS': str(options.threads)}
    peers = [peer(options, 'torch', 'PyTorch'), peer(options, 'numpy', 'OpenBLAS', **threads),
             peer(options, 'numpy', 'OpenBLAS SkX', OPENBLAS_CORETYPE='SkylakeX', **threads)]
    clblast = Quern(options, 'CLBlast',
                    ('--tune', 'off', '--set', 'memory.variants=linear=clblast'))
    works = ours.works('linear', GROUPS)
    table = time_all(options, works, [ours, *peers])
    for work in works:  # slow, and far away: once
        table.add(clblast, clblast.time(work))
    flops = {key: work.flops[key] for work in works for key in work.cases}
    thin = [key for key in flops if key[1].startswith('thin')]
    keys = [key for key in flops if key not in thin]
    found = show(table, keys, ours, peers, flops)
    reported = geometric_mean(list(show(table, thin, ours, peers, flops).values()))
    if reported:
        print(f'Thin matrix products beside the same: geometric mean {reported:.2f} (a report)')
    mean = conclude('Matrix products beside the fastest of OpenBLAS and PyTorch', found.values(),
                    0.92, 1.0)
    slow = conclude('Matrix products beside CLBlast',
                    ratios(table, keys, ours, [clblast]).values(), 8, 12)
    close(peers)
    return {'matmul': mean, 'matmul, thin': reported, 'matmul beside CLBlast': slow}


def bf16(options):
    print('Matrix products: weights and activations in bf16 beside the same in f32')
    ours = Quern(options, 'bf16', ('--storage', 'bf16', '--set', 'memory.parameter_storage=bf16'))
    single = Quern(options, 'f32')
    works = [w for w in ours.works('linear', GROUPS) if not w.name.startswith('thin')]
    single.works('linear', GROUPS)
    flops = {key: work.flops[key] for work in works for key in work.cases}
    found = show(time_all(options, works, [ours, single]), list(flops), ours, [single], flops)
    return {'bf16': conclude('Matrix products of bf16 beside f32', found.values(), 1.3, 1.8)}


def conv2d(options):
    print('Convolutions, batch 8 (demonstration: 64), forward and both gradients, f32; depthwise ones '
          'are reported, and not in the mean')
    ours, torch = Quern(options), peer(options, 'torch', 'PyTorch')
    works = [w for w in ours.works('conv2d', GROUPS) if not w.name.startswith('two images')]
    flops = {key: work.flops[key] for work in works for key in work.cases}
    for work in works:  # PyTorch makes both gradients in one call, as a training does
        key = ('conv2d', work.name, 'forward')
        if key in work.cases:
            work.cases[('conv2d', work.name, 'gradients')] = {**work.cases[key],
                                                              'group': 'gradients'}
    table = time_all(options, works, [ours, torch])
    show(table, list(flops), ours, [torch], flops)
    layers = {}
    for work in works:
        mine = [table.of(ours, ('conv2d', work.name, g)).fastest for g in GROUPS]
        theirs = [table.of(torch, ('conv2d', work.name, g)).fastest
                  for g in ('forward', 'gradients')]
        if all(theirs):
            layers[work.name] = sum(theirs) / sum(s for s in mine if s)
    for name, ratio in layers.items():
        print(f'  {name:48} forward + both gradients: {ratio:.2f}')
    of_gate = [ratio for name, ratio in layers.items() if not name.startswith('depthwise')]
    close([torch])
    return {'conv2d': conclude('Convolutions beside PyTorch', of_gate, 1.0, 1.2)}


class Summed(Quern):
    """All groups of a work as one case."""

    def works(self, op, groups=None):
        works = super().works(op, groups)
        for work in works:
            case = next(iter(work.cases.values()))
            work.cases = {(op, work.name, ''): {**case, 'group': ''}}
        return works

    def time(self, work):
        timed = [r for r in self.report(f'{work.op} {work.name}')[1] if r['work'] == work.name]
        return {key: [sum(r[field] for r in timed) for field in ('fastest_seconds', 'seconds')]
                for key in work.cases if timed}


def attention(options):
    print('Attention, causal, forward and backward, f32')
    ours, torch = Summed(options), peer(options, 'torch', 'PyTorch')
    works = ours.works('attention')
    table = time_all(options, works, [ours, torch])
    found = show(table, [key for work in works for key in work.cases], ours, [torch])
    close([torch])
    return {'attention': conclude('Attention beside PyTorch', found.values(), 1.0, 1.5)}


MEMORY = ('layer_norm', 'chain', 'batch_norm', 'softmax_cross_entropy', 'adamw')


def memory(options):
    print('Operators that memory bounds: bytes that must move, as a share of a copy of as many')
    shares = {op: [] for op in MEMORY}
    for _ in range(options.rounds):
        for op in MEMORY:  # each in a process of its own, beside its own copy
            report, timed = Quern(options).report(op)
            rate = sum(r['bytes'] for r in timed) / sum(r['fastest_seconds'] for r in timed)
            shares[op].append(rate / report['bytes_per_second_ceiling'])
    medians = {op: statistics.median(values) for op, values in shares.items()}
    for op, share in medians.items():
        print(f"  {op:24} {share:5.2f} (gate 0.7: {'MET' if share >= 0.7 else 'MISSED'}; aim 0.9)")
    print()
    return {f'memory: {op}': share for op, share in medians.items()}


def update(options):
    print('Updates of whole networks')
    ours, torch = Quern(options), peer(options, 'torch', 'PyTorch')
    tinygrad = peer(options, 'tinygrad', 'tinygrad', DEV='CL')
    works = [w for w in ours.works('update') if w.name.split()[0].rstrip(',') in COMPARED]
    for r in ours.report('update')[1]:
        print(f"  {r['work']}: calling thread {100 * r['host_seconds'] / r['seconds']:.2f} % "
              f"of an update (gate: below 2), micro-batch {r['micro_batch']}, "
              f"{r['peak_bytes']} bytes")
    table = time_all(options, works, [ours, torch])
    for work in works:  # far away: once
        table.add(tinygrad, tinygrad.time(work))
    keys = [key for work in works for key in work.cases]
    found = show(table, keys, ours, [torch])
    for key, ratio in found.items():
        conclude(f'{key[1]} beside PyTorch', [ratio], 1.1, 1.4)
    for key, ratio in ratios(table, keys, ours, [tinygrad]).items():
        print(f'{key[1]} beside tinygrad: {ratio:.1f} (a report)')
    close([torch, tinygrad])
    return {f'update: {key[1]}': ratio for key, ratio in found.items()}


TABLES = {f.__name__: f for f in (matmul, bf16, conv2d, attention, memory, update)}


def chosen_tables(parser, tables):
    """The options, and of the tables by name those that --only names."""
    options = parser.parse_args()
    for name in options.only.split(','):
        if name not in tables:
            parser.error(f'--only: {name} is none of {", ".join(tables)}')
    return options, [tables[name] for name in options.only.split(',')]


def machine(options):
    return f'{platform.platform()}, {os.cpu_count()} cores, {options.threads} threads'


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--only', default=','.join(TABLES))
    parser.add_argument('--rounds', type=int, default=alternate.ROUNDS, help='of each work at least')
    parser.add_argument('--seconds', type=float, default=0.2, help='of each peer and case')
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--python', default=sys.executable)
    parser.add_argument('--program', default=str(ROOT / 'build/tools/quern/quern'))
    parser.add_argument('--json', help='write the ratios to this file')
    options, tables = chosen_tables(parser, TABLES)
    print(f'{machine(options)}, {options.rounds} rounds or more\n')
    figures = {}
    for table in tables:
        figures.update(table(options))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(figures, indent=1) + '\n')


if __name__ == '__main__':
    main()
