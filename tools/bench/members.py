#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Several members that train one model, beside what they could reach at best, in turns on this machine:

    tools/bench/members.py pair|unequal|ddp|slow-link|bytes|model [--rounds N] [--seconds N]
                           [--python PYTHON] [--program build/tools/quern/quern] [--only TEXT]

  pair       two devices in one process, a core each, beside two unconnected trainings of half the batch
             that run at the same time: samples per second over the sum of theirs (gate 0.85, aim 0.95)
  unequal    two ranks of mpirun; two busy processes share the core of the second: measured and fixed
             shares beside equal ones (gate 1.5, ideal 2), measured ones beside the best fixed (aim 0.95)
  ddp        two ranks, a core each, beside PyTorch's DistributedDataParallel over gloo (gate 1, aim 1.2);
             PYTHON has PyTorch (default: this one)
  slow-link  two ranks whose link carries --rate (100) Mbit/s and takes --delay (20) ms, 16 micro-steps each:
             an update over the bound, compute + bytes / bandwidth + latencies - the backward pass of the
             last micro-step (gate 1.3, aim 1.15); what plain sockets make of the link is told beside it
  bytes      what each of four members has of the optimizer's state and masters, over one member's (gate
             0.30, aim 0.26)
  model      quern plan --members beside what pair, unequal and slow-link measured, and pair and slow-link of
             pairs whose loss is of all samples (within 15 %); each device is as fast as it was by itself,
             in trainings that take turns with those of all

Sides take turns; figures are the best of the rounds, of each round without the first quarter of updates. It
is told on which core each thread computed. Data are random. The first run on a machine tunes kernels, which
takes a minute; --seconds are those of one training.
"""
import argparse
import contextlib
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import cores
import ranks
from cores import CORES, Busy, Training, on_core, run
from works import LINKED, PAIRED, WORKS, write_data, write_recipe

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
POCL = {'OCL_ICD_VENDORS': '/etc/OpenCL/vendors/pocl.icd', 'POCL_MAX_PTHREAD_COUNT': '1'}
# Members in one process compute on their own threads; ranks leave theirs to the exchange.
BASIC, TWICE = {**POCL, 'POCL_DEVICES': 'basic'}, {**POCL, 'POCL_DEVICES': 'basic basic'}
WORKER = {**POCL, 'POCL_DEVICES': 'pthread pthread', 'POCL_AFFINITY': '0'}
LEAST, MOST = 6, 400  # updates of a training
SHARES = ('2:1', '11:5', '3:1', '13:3')
WITHIN = 0.15


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.port = 29500 + os.getpid() % 400
        write_data(folder)

    def command(self, work, batch, steps, *more, name='alone'):
        """(command, file of its figures)"""
        metrics = self.folder / f'{name}.jsonl'
        return [self.options.program, 'train', write_recipe(self.folder, work), '--quiet', '--batch', batch,
                '--micro-batch', work.micro, '--steps', steps, '--metrics', metrics, *more], metrics

    def training(self, work, batch, steps, *more, env, name='alone', wrap=lambda command: command):
        command, metrics = self.command(work, batch, steps, *more, name=name)
        return Training(wrap(command), metrics, env)

    def steps(self, work, env):
        """Updates that take about as long as they should; kernels are tuned then."""
        tune = ('--set', 'memory.tune=quick')
        lines = self.training(work, work.samples, LEAST, *tune, env=env, wrap=lambda c: on_core(CORES[0], c)).end()
        count = math.ceil(self.options.seconds / cores.update_seconds(lines))
        return min(max(count, LEAST), MOST)

    def apart(self, work, steps, env):
        """Two trainings that know nothing of each other."""
        trainings = [self.training(work, work.samples, steps, env=env, name=f'apart{core}',
                                   wrap=lambda command, core=core: on_core(core, command)) for core in CORES]
        return run(trainings)

    def rates_apart(self, work, steps, env):
        """Samples per second of each of them."""
        lines, told = self.apart(work, steps, env)
        seen('unconnected', told)
        return [cores.rate(one) for one in lines]

    def together(self, work, steps):
        """Two members in one process."""
        devices = ('--device', 'basic', '--device', 'basic')
        return run([self.training(work, 2 * work.samples, steps, *devices, env=TWICE)], pin=True)

    def joined(self, work, steps, *more, wrap=ranks.on_cores, env=None):
        """Two ranks: [lines of the first], what was seen."""
        one = self.training(work, 2 * work.samples, steps, *more, name='joined', wrap=wrap,
                            env={**WORKER, **ranks.SETTINGS, **(ranks.HERE if env is None else env)})
        return run([one], pids=lambda: ranks.rank_pids(self.options.program, one.metrics))

    def plan(self, work, *more, env):
        command = [self.options.program, 'plan', write_recipe(self.folder, work), '--micro-batch', work.micro, '--json',
                   *more]
        return json.loads(subprocess.run([*map(str, command)], check=True, stdout=subprocess.PIPE, text=True,
                                         env={**os.environ, **env}).stdout)


# --- tables ---


def verdict(value, gate, aim, more=True):
    reached = (lambda bound: value >= bound) if more else (lambda bound: value <= bound)
    return f'{gate} {"met" if reached(gate) else "MISSED"}, {aim} {"met" if reached(aim) else "missed"}'


def table(*columns):
    print('\n| ' + ' | '.join(columns) + ' |\n' + '|---' * len(columns) + '|', flush=True)


def row(*cells):
    print('| ' + ' | '.join(str(cell) for cell in cells) + ' |', flush=True)


def seen(what, told):
    """Says on which cores threads computed; ends where the members had none of their own."""
    texts = (', '.join(f'core {core} {seconds:.1f} s' for core, seconds in sorted(by_core.items()) if seconds)
             for by_core in told)
    print(f'  {what}: ' + ' and '.join(f'[{text}]' for text in texts), flush=True)
    if not cores.are_apart(told):
        raise SystemExit(f'{what}: not a core for each')


def chosen(options, works):
    return [work for work in works.values() if options.only in work.name]


def all_of(values, form='{:.1f}'):
    return ', '.join(form.format(value) for value in values)


# --- what is measured ---


def measure_pair(bench, work):
    """Of each round: samples per second of two members, those of each of two unconnected trainings."""
    steps = bench.steps(work, BASIC)
    together, apart = [], []
    for _ in range(bench.options.rounds):
        lines, told = bench.together(work, steps)
        together.append(cores.rate(lines[0]))
        seen('two members', told)
        apart.append(bench.rates_apart(work, steps, BASIC))
    return together, apart


def pair(bench):
    rows = [(work, *measure_pair(bench, work)) for work in chosen(bench.options, WORKS)]
    table('two members, one core each', 'samples per second', 'two unconnected trainings', 'ratio', 'gate, aim')
    for work, together, apart in rows:
        sums = [sum(rates) for rates in apart]
        ratio = max(together) / max(sums)
        row(work.name, all_of(together), all_of(sums), f'{ratio:.3f}', verdict(ratio, 0.85, 0.95))


def measure_unequal(bench, work, shares):
    """By share: samples per second of each round; and those of each of two unconnected trainings."""
    steps, rates, apart = bench.steps(work, WORKER), {share: [] for share in shares}, []
    with Busy(2, CORES[1]):
        for _ in range(bench.options.rounds):
            for share in shares:
                lines, told = bench.joined(work, steps, '--share', share)
                rates[share].append(cores.rate(lines[0]))
                seen(f'share {share}', told)
                told = lines[0][-1]['summary']['members']
                print(f'    took {all_of([member["share"] for member in told], "{:g}")}', flush=True)
            apart.append(bench.rates_apart(work, steps, WORKER))
    return rates, apart


def unequal(bench):
    rows = [(work, *measure_unequal(bench, work, ('1:1', 'auto', *SHARES))) for work in chosen(bench.options, WORKS)]
    table('second member slowed', 'by itself over the first', *rows[0][1], 'auto over equal', 'gate, ideal',
          'auto over the best fixed', 'aim')
    for work, rates, apart in rows:
        slowed = [second / first for first, second in apart]
        best = {share: max(values) for share, values in rates.items()}
        gain, beside = best['auto'] / best['1:1'], best['auto'] / max(best[share] for share in ('1:1', *SHARES))
        row(work.name, all_of(slowed, '{:.2f}'), *(f'{rate:.1f}' for rate in best.values()), f'{gain:.2f}',
            verdict(gain, 1.5, 2.0), f'{beside:.3f}', '0.95 ' + ('met' if beside >= 0.95 else 'missed'))


def torch_rate(bench, work, steps):
    """Samples per second of two processes of PyTorch."""
    bench.port += 1
    size = [str(number) for number in work.size.values()]
    processes = [subprocess.Popen(
        on_core(core, [bench.options.python, HERE / 'ddp.py', rank, 2, bench.port, steps, work.samples,
                       work.name.split()[0], *size]),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for rank, core in enumerate(CORES)]
    answers = [process.communicate() for process in processes]
    if any(process.returncode for process in processes):
        raise SystemExit(f'ddp.py: {answers[0][1]}{answers[1][1]}')
    told = json.loads(answers[0][0])
    lines = [{'step': step, 'seconds': seconds} for step, seconds in enumerate(told['seconds'])]
    return 2 * work.samples / cores.update_seconds(lines), told['version']


def ddp(bench):
    rows, version = [], ''
    for work in chosen(bench.options, WORKS):
        steps, ours, theirs = bench.steps(work, WORKER), [], []
        for _ in range(bench.options.rounds):
            lines, told = bench.joined(work, steps)
            ours.append(cores.rate(lines[0]))
            seen('ranks', told)
            rate, version = torch_rate(bench, work, steps)
            theirs.append(rate)
        rows.append((work, ours, theirs))
    table('two ranks, one core each', 'samples per second', f'{version} DDP, gloo', 'ratio', 'gate, aim')
    for work, ours, theirs in rows:
        ratio = max(ours) / max(theirs)
        row(work.name, all_of(ours), all_of(theirs), f'{ratio:.2f}', verdict(ratio, 1.0, 1.2))


# Messages that an update waits for, one after another: weights of losses, parts of gradients, norms of
# what each member owns, parameters.
LATENCIES = 4


def slowest(work, apart):
    """Seconds of an update of the slower of two trainings, each at its fastest; `apart`: see measure_link."""
    return work.samples / min(map(max, zip(*apart)))


def bound(bench, work, compute, link):
    """Seconds of an update at least, and its parts; `compute`: of one without the link."""
    plan = bench.plan(work, '--batch', work.samples, env=WORKER)
    size = 4 * plan['trained_parameters']  # sent by each of two members, gradients and results together
    backward = plan['backward_seconds'] * compute / plan['predicted_seconds']
    carried = size / link.bandwidth
    return compute + max(carried - backward, 0) + LATENCIES * link.latency(), carried, backward


def measure_link(bench, work, link):
    """Of each round: seconds of an update across the link, samples per second of each of two unconnected
    trainings."""
    steps, across, apart = bench.steps(work, WORKER), [], []
    for _ in range(bench.options.rounds):
        lines, told = bench.joined(work, steps, wrap=link.command, env={})
        across.append(cores.update_seconds(lines[0]))
        seen('ranks', told)
        apart.append(bench.rates_apart(work, steps, WORKER))
    return across, apart


@contextlib.contextmanager
def slow_link(bench):
    """The link, or None where there can be none."""
    reason = ranks.why_no_link()
    if reason:
        print(f'slow-link: skipped: {reason}')
        yield None
        return
    with ranks.Link(1e6 * bench.options.rate, bench.options.delay, bench.folder) as link:
        link.look()
        print(f'  the link: {link.told}')
        yield link


def over_link(bench):
    with slow_link(bench) as link:
        if not link:
            return
        rows = [(work, *measured, bound(bench, work, slowest(work, measured[1]), link))
                for work in chosen(bench.options, LINKED) for measured in [measure_link(bench, work, link)]]
        latency = 1e3 * link.latency()
    table(f'{bench.options.rate:g} Mbit/s, {latency:.2f} ms', 'an update', 'without the link', 'bytes / bandwidth',
          'last backward pass', 'bound', 'ratio', 'gate, aim')
    for work, across, apart, (least, carried, backward) in rows:
        ratio = min(across) / least
        alone = [work.samples / min(rates) for rates in apart]
        row(work.name, all_of(across, '{:.3f} s'), all_of(alone, '{:.3f} s'), f'{carried:.3f} s', f'{backward:.3f} s',
            f'{least:.3f} s', f'{ratio:.2f}', verdict(ratio, 1.3, 1.15, more=False))


# --- bytes ---

STORED = {'f32': (), 'bf16': ('--set', 'memory.parameter_storage=bf16')}


def state_bytes(plan):
    """Of the optimizer, masters included."""
    return plan['bytes_by_tag']['optimizer']


def count_bytes(bench):
    four = ('--device', 'basic') * 4
    env = {**POCL, 'POCL_DEVICES': 'basic basic basic basic'}
    table('optimizer state and masters', 'one member', 'each of four', 'the largest over it', 'gate, aim')
    for work in chosen(bench.options, WORKS):
        for storage, keys in STORED.items():
            more = ('--batch', 4 * work.micro, *keys)
            whole = state_bytes(bench.plan(work, *more, '--device', 'basic', env=env))
            parts = [state_bytes(plan) for plan in bench.plan(work, *more, *four, env=env)['members']]
            row(f'{work.name}, {storage}', whole, all_of(parts, '{}'), f'{max(parts) / whole:.3f}',
                verdict(max(parts) / whole, 0.30, 0.26, more=False))
            check_allocated(bench, work, *keys, *four, env=env)


def check_allocated(bench, work, *more, env):
    """What the plans say is what a training of one update makes."""
    lines = bench.training(work, 4 * work.micro, 1, *more, env=env, name='bytes').end()
    for member in lines[-1]['summary']['members']:
        if member['peak_bytes_planned'] != member['peak_bytes_allocated']:
            raise SystemExit(f'{work.name}: planned is not allocated: {member}')


# --- the model ---

TEAM = """[members]
nodes = {nodes}
{devices}
[link inside]
bandwidth = {copied:.0f} B/s
[link between]
bandwidth = {bandwidth:.0f} B/s
latency = {latency:.9f} s
"""
DEVICE = """[device {name}]
facts = facts.json
costs = {costs}
match = {match}
micro_batch = {micro}
share = {share}
speed = {speed}
"""


def copied_per_second():
    """Bytes of gradients between members of one memory: each is read, sent, added and written."""
    block, seconds = bytearray(1 << 26), []
    for _ in range(5):
        began = time.perf_counter()
        bytes(block)
        seconds.append(time.perf_counter() - began)
    return len(block) / min(seconds) / 4


class Model:
    """Predictions of quern plan --members, by facts and costs of this machine."""

    def __init__(self, bench, env, match):
        self.bench, self.env, self.match, self.copied = bench, env, match, copied_per_second()
        facts = subprocess.run([bench.options.program, 'devices', '--json'], check=True, stdout=subprocess.PIPE,
                               env={**os.environ, **env}).stdout
        (bench.folder / 'facts.json').write_bytes(facts)

    def costs(self):
        """What was timed on this device; of several drivers the last."""
        cache = os.environ.get('XDG_CACHE_HOME') or pathlib.Path.home() / '.cache'
        folder = pathlib.Path(os.environ.get('QN_CACHE_DIR') or pathlib.Path(cache) / 'quern')
        return max((path for path in folder.glob('tuning-*.json') if self.match in path.read_text()),
                   key=os.path.getmtime)

    def speeds(self, work, apart):
        """Of devices, over what they were when kernels were timed: by trainings of theirs alone."""
        alone = self.bench.plan(work, '--batch', work.samples, env=self.env)['predicted_seconds']
        return [alone * max(rates) / work.samples for rates in zip(*apart)]

    def seconds(self, work, batch, members, nodes=1, link=None):
        """Of an update; members: (share, speed) of each of a node."""
        devices = ''.join(DEVICE.format(name=f'd{number}', costs=self.costs(), match=self.match, micro=work.micro,
                                        share=share, speed=speed)
                          for number, (share, speed) in enumerate(members))
        team = self.bench.folder / 'team.ini'
        team.write_text(TEAM.format(nodes=nodes, devices=devices, copied=self.copied,
                                    bandwidth=link.bandwidth if link else 1e9, latency=link.latency() if link else 0))
        told = json.loads(subprocess.run(
            [self.bench.options.program, 'plan', write_recipe(self.bench.folder, work), '--batch', str(batch),
             '--members', team, '--json'], check=True, stdout=subprocess.PIPE, text=True).stdout)
        return told['teams'][0]['exchanges']['direct']['seconds']


def compare(what, predicted, measured):
    off = predicted / measured - 1
    row(what, f'{predicted:.4f} s', f'{measured:.4f} s', f'{predicted / measured:.3f}',
        'within 15 %' if abs(off) <= WITHIN else 'MISSED')


def model_rows(bench):
    """(what, predicted, measured) of every case."""
    for work in chosen(bench.options, {**WORKS, **PAIRED}):
        together, apart = measure_pair(bench, work)
        known = Model(bench, BASIC, 'basic')
        members = [(1, speed) for speed in known.speeds(work, apart)]
        yield f'pair, {work.name}', known.seconds(work, 2 * work.samples, members), 2 * work.samples / max(together)
    for work in chosen(bench.options, WORKS):
        rates, apart = measure_unequal(bench, work, ('1:1', '3:1'))
        known = Model(bench, WORKER, 'pthread')
        for share, values in rates.items():
            members = zip(map(float, share.split(':')), known.speeds(work, apart))
            seconds = known.seconds(work, 2 * work.samples, members)
            yield f'unequal, {work.name}, {share}', seconds, 2 * work.samples / max(values)
    with slow_link(bench) as link:
        for work in chosen(bench.options, {**LINKED, **PAIRED}) if link else ():
            across, apart = measure_link(bench, work, link)
            known = Model(bench, WORKER, 'pthread')
            seconds = known.seconds(work, 2 * work.samples, [(1, min(known.speeds(work, apart)))], 2, link)
            yield f'slow link, {work.name}', seconds, min(across)


def model(bench):
    rows = list(model_rows(bench))
    table('an update', 'predicted', 'measured', 'ratio', '')
    for one in rows:
        compare(*one)


# With rounds, and seconds of each training, so that none takes much longer than five minutes.
MEASURES = {'pair': (pair, 3, 5), 'unequal': (unequal, 2, 3), 'ddp': (ddp, 3, 5), 'slow-link': (over_link, 3, 5),
            'bytes': (count_bytes, 1, 1), 'model': (model, 2, 3)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('measure', choices=MEASURES)
    parser.add_argument('--rounds', type=int, help='of all sides (1 to 3, as the measure takes its time)')
    parser.add_argument('--seconds', type=float, help='of each training (1 to 5)')
    parser.add_argument('--only', default='', help='only works with this in their names')
    parser.add_argument('--python', default=sys.executable)
    parser.add_argument('--program', default=ROOT / 'build/tools/quern/quern')
    parser.add_argument('--rate', type=float, default=100, help='Mbit/s')
    parser.add_argument('--delay', type=float, default=20, help='ms')
    options = parser.parse_args()
    measure, rounds, seconds = MEASURES[options.measure]
    options.rounds, options.seconds = options.rounds or rounds, options.seconds or seconds
    if len(CORES) < 2:
        raise SystemExit('members.py needs two cores')
    with tempfile.TemporaryDirectory(prefix='quern-bench-') as folder:
        measure(Bench(options, pathlib.Path(folder)))


if __name__ == '__main__':
    main()
