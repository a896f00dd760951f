#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a GPU is asked when one appears, and a page of what it answered:

    tools/bench/gpu.sh [--state gpu-results] [--python PYTHON] [--program build/tools/quern/quern]
                       [--minutes 8] [--small]

Checks, ceilings, products, attention and convolutions beside PyTorch on CUDA (cuBLAS, FlashAttention,
cuDNN; TF32 off), tuning, and updates of the demonstration, ResNet-18 and -50 and GPT-2 124M. A call
works for at most --minutes and ends with status 75 while there is more to do: the same command goes
on, after a kill too, from what stands in --state. All calls together take at most 25 minutes; what
does not fit is left out. After each call DIR/results.md is the page so far, with what is missing.
Programs and tuning lie in DIR/cache: what earlier runs of Quern found out changes no figure.

The best device is taken, or the one that QN_DEVICE names. PYTHON has PyTorch (default: this one);
without it, or without CUDA, our own figures are taken alone. Nothing comes from a network: data are
random. --small takes tiny sizes, no tuning and PyTorch's CPU, to try the command itself; a minute then
lasts ten.
"""
import argparse
import collections
import contextlib
import functools
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import alternate
import compare
import gpu_page
import works

TOTAL = 25                                # minutes of all calls together
CHECK, BUILD, ROW, TUNE, UPDATE = 5, 3, 1.5, 2, 2.5 # minutes of one step at most
SIDE_BY_SIDE = 8                          # processes that build programs; each has a context of the GPU
PATIENCE = 60                             # seconds for one answer of a peer
ROUNDS = 2                                # of each side, by turns; the fastest counts
MORE_TO_DO = 75

# Works of `quern bench` by operator, the most telling one first; and what the peer is asked for each:
# PyTorch makes both gradients of a convolution in one call.
KERNELS = {
    'linear': ('2048', '1024', 'gpt2 up', 'gpt2 down', 'gpt2 qkv'),
    'attention': ('8 heads of 64, 2048 tokens', '8 heads of 64, 1024 tokens'),
    'conv2d': ('resnet 3x3 64-64 56', 'resnet 3x3 256-256 14', 'resnet 1x1 256-64 56',
               'resnet 3x3/2 128-256 28', 'resnet stem 7x7/2 3-64 224', 'demo 4'),
}
SMALL = {'linear': ('thin 16 rows',), 'attention': ('8 heads of 64, 256 tokens',), 'conv2d': ('demo 5',)}
ASKED = {'linear': compare.GROUPS, 'attention': ('',), 'conv2d': ('forward', 'gradients')}

Step = collections.namedtuple('Step', 'name limit do')


class Problem(Exception):
    """Why a step has no result."""


class State:
    """What is known from this call and those before."""

    def __init__(self, folder, small):
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / 'state.json'
        self.told = {'small': small, 'device': None, 'seconds': 0, 'steps': {}}
        if self.path.exists():
            self.told = json.loads(self.path.read_text(encoding='utf-8'))
        if self.told['small'] != small:
            sys.exit(f'{self.path}: was made {"with" if not small else "without"} --small')

    def save(self):
        """The old file or the new one, whatever happens."""
        new = self.path.with_suffix('.new')
        new.write_text(json.dumps(self.told, indent=1), encoding='utf-8')
        new.replace(self.path)

    def recognise(self, report):
        """Figures of two devices never meet on one page."""
        device = {key: report[key] for key in ('device', 'platform', 'driver', 'quern')}
        self.told['device'] = self.told['device'] or device
        if self.told['device'] != device:
            sys.exit(f'{self.path}: has figures of {self.told["device"]}, and this is {device}: '
                     'another --state')


class Bench:
    """What the steps share: programs, and a folder with random data."""

    def __init__(self, options, state, folder):
        self.options, self.state, self.folder = options, state, folder
        self.tune, self.kept = 'off' if options.small else 'quick', None
        self.cache = state.path.parent.resolve() / 'cache'
        self.cache.mkdir(exist_ok=True)
        works.write_data(folder)
        for work in works.GPU_SMALL if options.small else works.GPU:
            if 'side' in work.size:
                works.write_pictures(folder, work.size['side'], work.samples)
            if 'tokens' in work.size:
                works.write_tokens(folder, work.size['tokens'])

    def how(self, args):
        """Of subprocess: command and environment of our program."""
        return {'args': [self.options.program, *map(str, args)],
                'env': {**os.environ, 'QN_CACHE_DIR': str(self.cache)}}

    def run(self, *args):
        done = subprocess.run(**self.how(args), check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode and not done.stdout.startswith('{'):
            lines = done.stderr.strip().splitlines()
            raise Problem(lines[-1] if lines else f'exit status {done.returncode}')
        return done.stdout

    def report(self, *args):
        report = json.loads(self.run(*args, '--json'))
        self.state.recognise(report)
        return report

    def peer(self):
        """PyTorch in a process of its own; a new one where the last one ended on a case."""
        if not self.kept or (self.kept.missing and self.kept.version):
            which = 'torch' if self.options.small else 'cuda'
            self.kept = alternate.Peer('PyTorch', [self.options.python, compare.HERE / 'peers.py',
                                                   which, '2', '0.2'], PATIENCE)
        return self.kept

    def beside(self, first, ours, cases):
        """Seconds of ours(), which took `first` before, and of the peer for all cases together, by
        turns."""
        mine, theirs, peer = [first], [], self.peer()
        try:
            for number in range(1 if self.options.small else ROUNDS):
                mine += [ours()] if number else []
                samples = [peer.ask(case) for case in cases]
                if samples and all(samples):
                    theirs.append([sample[0] for sample in samples])
        except TimeoutError:  # it may still be at a case
            peer.end('it was late')
            raise
        found = {'seconds': min(mine), 'peer_version': peer.version,
                 'peer_missing': peer.missing or (None if theirs else 'it is not asked that')}
        if theirs:
            found['peer_seconds'] = sum(map(min, zip(*theirs)))
        return found

    def close(self):
        if self.kept:
            self.kept.close()


# --- steps ---

def ceilings(bench):
    report = bench.report('bench', '--only', 'layer_norm', '--tune', 'off')
    return {key: report[key] for key in ('flops_ceiling', 'bytes_per_second_ceiling',
                                         'launch_seconds')}


def check(bench):
    report = bench.report('check', '--small',
                          *(('--op', 'relu,softmax') if bench.options.small else ()))
    return {key: report[key] for key in ('passed', 'failed', 'failures')}


def args_of_kernel(bench, op, name, storage):
    return ('bench', '--only', f'{op} {name}', '--tune', bench.tune, '--storage', storage, '--set',
            f'memory.parameter_storage={storage}')


def args_of_update(bench, work, storage, samples):
    return ('bench', works.write_recipe(bench.folder, work), '--only', 'update', '--batch', samples,
            '--storage', storage, '--tune', bench.tune)


def programs(bench, kernels, updates):
    """Runs all that follows side by side, since a driver builds with one core: it or we keep the
    programs. Times that were taken meanwhile would be wrong, and are forgotten."""
    waiting = [args_of_kernel(bench, *of) for of in kernels]
    waiting += [args_of_update(bench, work, storage, max(1, work.samples // 8))
                for work, storage in updates]
    running, silent = [], subprocess.DEVNULL
    try:
        while waiting or running:
            while waiting and len(running) < min(SIDE_BY_SIDE, os.cpu_count() or 1):
                running.append(subprocess.Popen(**bench.how(waiting.pop(0)), stdout=silent,
                                                stderr=silent))
            time.sleep(0.05)
            running = [process for process in running if process.poll() is None]
    finally:
        for process in running:
            process.kill()
            process.wait()
        for table in bench.cache.glob('tuning-*.json'):
            table.unlink()
    return {}


def fastest(rows):
    return sum(row['fastest_seconds'] for row in rows)


def kernel(bench, op, name, storage):
    def timed():
        report = bench.report(*args_of_kernel(bench, op, name, storage))
        return [r for r in report['results'] if r['op'] == op and r['work'] == name
                and r['outcome'] == 'timed' and (op == 'attention' or r['group'] in compare.GROUPS)]

    first = timed()
    if not first:
        raise Problem('no kernel was timed')
    cases = [{'op': op, 'group': group, 'size': first[0]['size'], 'storage': storage}
             for group in ASKED[op]]
    return {'flops': sum(r['flops'] for r in first),
            **bench.beside(fastest(first), lambda: fastest(timed()), cases)}


def tune(bench, work):
    said = bench.run('tune', works.write_recipe(bench.folder, work), '--batch', work.samples,
                     '--seconds', 1 if bench.options.small else 60)
    return {'said': said.strip().splitlines()[-1]}


def update(bench, work, storage):
    def timed():
        return bench.report(*args_of_update(bench, work, storage, work.samples))['results']

    first = timed()
    cases = [{**work.peer, 'storage': storage}] if work.peer else []
    return {**{key: first[0][key] for key in ('samples', 'micro_batch', 'peak_bytes')},
            **bench.beside(fastest(first), lambda: fastest(timed()), cases)}


def kernels_of(small):
    """(operator, work, storage): of each operator the most telling work, then of each the next one."""
    names = SMALL if small else KERNELS
    return [(op, names[op][rank], storage) for rank in range(max(map(len, names.values())))
            for op in names if rank < len(names[op])
            for storage in (('f32',) if small else ('f32', 'bf16', 'f16'))]


def steps_of(small):
    """In the order in which they matter."""
    networks = works.GPU_SMALL if small else works.GPU
    kernels = kernels_of(small)
    updates = [(work, storage) for work in networks
               for storage in (('bf16',) if small else ('f32', 'bf16'))]
    first = len(KERNELS) * len({storage for _, _, storage in kernels})
    rows = [Step('/'.join(of), ROW, functools.partial(kernel, op=of[0], name=of[1], storage=of[2]))
            for of in kernels]
    yield Step('ceilings', ROW, ceilings)
    yield Step('check', CHECK, check)
    yield Step('programs', BUILD, functools.partial(programs, kernels=kernels, updates=updates))
    yield from rows[:first]
    for work, storage in updates:
        yield Step(f'update/{work.name}/{storage}', UPDATE,
                   functools.partial(update, work=work, storage=storage))
    yield from rows[first:]
    for work in networks[-1:] if small else (networks[0], networks[-1]):
        yield Step(f'tune/{work.name}', TUNE, functools.partial(tune, work=work))


# --- a call ---

@contextlib.contextmanager
def limit(seconds):
    """TimeoutError after so many seconds; processes under way are ended."""
    def late(*_):
        raise TimeoutError(f'not done within {seconds:.0f} s')
    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def take(bench, step, seconds):
    print(f'{step.name} ..', end='', flush=True)
    start = time.monotonic()
    try:
        with limit(seconds):
            result = step.do(bench)
    except (Problem, TimeoutError, OSError, ValueError, KeyError, IndexError) as problem:
        result = {'problem': f'{type(problem).__name__}: {problem}'
                  if isinstance(problem, (ValueError, KeyError, IndexError)) else str(problem)}
    result['took'] = time.monotonic() - start
    told = bench.state.told
    told['steps'][step.name] = result
    told['seconds'] += result['took']
    bench.state.save()
    print(f' {result["took"]:.1f} s' + (f': {result["problem"]}' if 'problem' in result else ''),
          flush=True)


def call(bench, steps, minutes, minute=60):
    """One call's share of the steps. Those for which another call has time. `minute`: its seconds."""
    told, end = bench.state.told, time.monotonic() + minutes * minute
    waiting = [step for step in steps if step.name not in told['steps']]
    while waiting and told['seconds'] + waiting[0].limit * minute <= TOTAL * minute:
        if time.monotonic() + waiting[0].limit * minute > end:
            return waiting
        step = waiting.pop(0)
        take(bench, step, step.limit * minute)
    return []


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--state', type=pathlib.Path, default=pathlib.Path('gpu-results'))
    parser.add_argument('--python', default=sys.executable)
    parser.add_argument('--program', default=str(compare.ROOT / 'build/tools/quern/quern'))
    parser.add_argument('--minutes', type=float, default=8, help='of this call at most')
    parser.add_argument('--small', action='store_true')
    options = parser.parse_args()
    if options.minutes < CHECK:
        parser.error(f'--minutes: a step may take {CHECK}')
    state, steps = State(options.state, options.small), list(steps_of(options.small))
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.closing(Bench(options, state, pathlib.Path(folder))) as bench:
            waiting = call(bench, steps, options.minutes, 600 if options.small else 60)
    page = options.state / 'results.md'
    page.write_text(gpu_page.write(state.told, [step.name for step in steps]), encoding='utf-8')
    print(f'{page}; ' + (f'{len(waiting)} of {len(steps)} steps wait: the same command goes on'
                         if waiting else 'done'))
    return MORE_TO_DO if waiting else 0


if __name__ == '__main__':
    sys.exit(main())
