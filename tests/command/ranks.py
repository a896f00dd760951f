#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ranks.py PROGRAM [CLCOUNT SLOWDEVICE NOTHREADS SLOWDISK SLOWTOLD] [full]: the processes that mpirun starts
train one model: the same bits as the devices of one process, and the same losses and weights as one device.
What ends a rank ends all, and the training goes on from the last checkpoint. `full`: ranks die ten times, not
three. ranks.py PROGRAM check_NAME...: these parts alone. Status 77: there is no mpirun."""
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '../mpi'))

import images
import lengths

from members import (DEVICES, MIB, NEAR, ONE, PAIRS, STILL, TWO, compare, constant, figures, losses, pairs,
                     train, weights)
from run import SETTINGS
from runs import digest, lines
from support import Bench

TEXT = """[model]
name = gpt
layers = 1
heads = 2
width = 16
logits = 0
[data]
kind = text
path = {text}
vocabulary = 280
length = 16
[train]
batch = 8
schedule = constant
"""
UPDATES = 50
PLAIN = ('--quiet', '--set', 'memory.tune=off', '--set', 'train.eval_every=0')
# Ranks, what each says of its devices, shares of all.
TEAMS = [
    (2, (), None),
    (3, ('--micro-batch', 24), '3:2:1'),
    (4, ('--recompute', 'all'), '2:0:1:1'),
    (2, TWO, '4:3:2:1'),
]
ENDS = 60  # seconds in which all must have ended


class Ranks(Bench):
    """Runs the program in several processes."""

    def command(self, ranks, *args, wrap=()):
        """`ranks`: how many; or, of each, what it has besides `args`, or runs in (a list)."""
        each = [()] * ranks if isinstance(ranks, int) else ranks
        parts = []
        for own in each:
            parts += [':'] if parts else []
            before, after = (own, ()) if isinstance(own, list) else ([], own)
            parts += ['-n', '1', *before, self.program, *args, *after]
        return [shutil.which('mpirun.openmpi') or 'mpirun', *map(str, parts)]

    def start(self, *args, ranks=None, **env):
        if ranks is None:
            return super().start(*args, **env)
        return subprocess.Popen(self.command(ranks, *args), cwd=self.folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env={**os.environ, **SETTINGS, **env})

    def run(self, *args, **env):
        process = self.start(*args, **env)
        out, error = process.communicate(timeout=300)
        return process.returncode, out, error


def said(error):
    """The lines of the program, without those of mpirun."""
    return [line for line in error.splitlines() if line.startswith('quern: ')]


def alive(program):
    """Processes of the program that have not ended."""
    found = []
    for name in os.listdir('/proc'):
        try:
            if name.isdigit() and os.readlink(f'/proc/{name}/exe') == program:
                found.append(int(name))
        except OSError:
            pass
    return found


def rank_of(pid):
    with open(f'/proc/{pid}/environ', 'rb') as file:
        env = dict(item.split(b'=', 1) for item in file.read().split(b'\0') if b'=' in item)
    return int(env.get(b'OMPI_COMM_WORLD_RANK', -1))


def children(bench, process, count):
    """The processes of the ranks, by rank."""
    end = time.time() + ENDS
    while time.time() < end and process.poll() is None:
        try:
            found = {rank_of(pid): pid for pid in alive(bench.program) if is_child(pid, process.pid)}
        except OSError:
            continue
        if sorted(found) == list(range(count)):
            return found
        time.sleep(0.01)
    raise RuntimeError(f'no {count} ranks: {process.communicate()}')


def is_child(pid, of):
    with open(f'/proc/{pid}/stat') as file:
        return int(file.read().rsplit(')', 1)[1].split()[1]) == of


def nobody_left(bench, what, pids):
    """What mpirun ends may take a moment more than mpirun."""
    end = time.time() + 15
    while time.time() < end and any(pid in alive(bench.program) for pid in pids):
        time.sleep(0.05)
    left = [pid for pid in pids if pid in alive(bench.program)]
    bench.expect(not left, f'{what}: processes are left: {left}')


def preloaded(library, **env):
    """What a rank runs in, so that the library comes before all others."""
    folder, name = os.path.split(os.path.abspath(library))
    return ['env', f'LD_PRELOAD={name}', f'LD_LIBRARY_PATH={folder}', *(f'{key}={env[key]}' for key in env)]


def wait_for(bench, process, name, text):
    path = bench.folder / name
    while process.poll() is None and not (path.exists() and text in path.read_text()):
        time.sleep(0.01)


def train_ranks(bench, out, ranks, *args, recipe='fashion-mlp', **env):
    bench.good('train', recipe, *PLAIN, '--out', out, '--metrics', f'{out}.json', *args, ranks=ranks, **env)
    return lines(bench, f'{out}.json')


def norms(rows):
    return [row['grad_norm'] for row in rows if 'step' in row]


def same_bits(bench, what, a, b):
    bench.expect(digest(bench, a) == digest(bench, b), f'{what}: other bits')


# --- the same model ---


def check_teams(bench):
    """Beside one device, losses, norms of gradients and weights; beside those of one process, all bits."""
    one = train(bench, 'one', ONE, '--steps', UPDATES)
    for number, (ranks, said_of_each, share) in enumerate(TEAMS):
        out, shares = f'team{number}', ('--share', share) if share else ()
        rows = train_ranks(bench, out, ranks, *said_of_each, *shares, '--steps', UPDATES)
        compare(bench, f'{ranks} ranks {share}', rows, out, (one, 'one'), NEAR)
        far = max(abs(a - b) / b for a, b in zip(norms(rows), norms(one)))
        bench.expect(len(norms(rows)) == UPDATES and far < 10 * NEAR, f'{out}: gradients differ by {far}')
    rows = train(bench, 'within', (*TWO, *TWO), '--steps', UPDATES, share='4:3:2:1')
    same_bits(bench, '2 ranks of 2 and 4 devices of one process', 'team3', 'within')
    pictures = [[(bench.folder / out / name).read_text() for name in
                 ('plan.svg', 'plan-1.svg', 'plan-2.svg', 'plan-3.svg')] for out in ('team3', 'within')]
    bench.expect(pictures[0] == pictures[1] and len({*pictures[0]}) == 4, 'pictures of the plans')


def check_told(bench):
    """All members stand in figures and columns, those of other ranks, too."""
    plan, *_, last = lines(bench, 'team3.json')
    members = last['summary']['members']
    bench.expect([p['budget_bytes'] for p in plan['members']] == [8 * MIB, 9 * MIB] * 2, 'plans')
    bench.expect([m['share'] for m in members] == [4, 3, 2, 1], f'{members}')
    bench.expect(sum(m['samples'] for m in members) == 256 * UPDATES, f'{members}')
    for key in ('peak_bytes_planned', 'peak_bytes_allocated', 'budget_bytes'):
        bench.expect(last['summary'][key] == sum(m[key] for m in members), f'{key}: {last}')
    numbers = sum(len(tensor) for tensor in weights(bench, 'team3').values())
    sent = sum(m['bytes_sent'] for m in members)
    bench.expect(abs(sent / UPDATES / (2 * 3 * 4 * numbers) - 1) < 0.01, f'{sent} bytes sent')
    bench.expect(all(m['computed_seconds'] > 0 and m['waited_seconds'] >= 0 for m in members), f'{members}')
    out = bench.good('plan', 'fashion-mlp', *TWO, '--share', '4:3:2:1', ranks=2)
    rows = [' '.join(line.split()) for line in out.splitlines()]
    for row in ('member 0 1 2 3', 'samples of an update 102 77 51 26', 'budget 8 MiB 9 MiB 8 MiB 9 MiB'):
        bench.expect(rows.count(row) == 1, f'no {row}: {out}')
    code, _, error = bench.run('plan', 'fashion-mlp', '--members', 'nowhere', ranks=2)
    bench.expect(code and len(said(error)) == 1, f'members that are not here: {code}: {error}')
    told = json.loads(bench.good('plan', 'fashion-mlp', '--json', ranks=3))
    bench.expect(sum(plan['batch'] for plan in told['members']) == 256, f'{told}')
    out = bench.good('train', 'fashion-mlp', '--steps', 3, *PLAIN[1:], ranks=2)
    bench.expect(out.count('test accuracy') == out.count('sent in an update') == 1, f'printed twice: {out}')


AHEAD = ['unshare', '--time', '--monotonic', '5000', '--']


def check_profile(bench):
    """One trace of all members, on rank 0's clock: the update of one lies in the time of that of another."""
    unlike = subprocess.run([*AHEAD, 'true'], check=False, capture_output=True).returncode == 0
    if not unlike:
        print('skipped: clocks that are apart: no time namespaces here')
    rows = train_ranks(bench, 'traced', [('--profile', 'trace.json'), AHEAD if unlike else ()], *TWO, '--steps', 4)
    profile = next(row['profile'] for row in rows if 'profile' in row)
    bench.expect(len(profile['members']) == 4 and profile['members'][0] == profile['seconds'], f'{profile}')
    events = json.loads((bench.folder / 'trace.json').read_text())['traceEvents']
    names = {e['pid']: e['args']['name'] for e in events if e['name'] == 'process_name'}
    bench.expect(names == {number + 1: f'member {number}' for number in range(4)}, f'{names}')
    spans = {}
    for pid in names:
        steps = [e for e in events if e['pid'] == pid and e['ph'] == 'X']
        spans[pid] = min(e['ts'] for e in steps), max(e['ts'] + e['dur'] for e in steps)
        took = sum(profile['members'][pid - 1].values())
        bench.expect({e['cat'] for e in steps} == profile['members'][pid - 1].keys(), f'{pid}: {profile}')
        bench.expect(abs(sum(e['dur'] for e in steps) / 1e6 - took) < 1e-6 * took + 1e-6, f'{pid}: {took}')
    begins, ends = zip(*spans.values())
    bench.expect(min(begins) == 0 and max(begins) < min(ends), f'updates follow one another: {spans}')


def check_evaluations(bench):
    """All ranks evaluate, lower the learning rate and end together, as the devices of one process."""
    plateau = ('--quiet', '--epochs', 8, '--set', 'train.eval_every=1', '--set', 'train.plateau_patience=1', '--set',
               'train.plateau_factor=0.1', '--set', 'train.schedule=constant')
    bench.good('train', 'r.ini', *plateau, '--out', 'plateau', '--metrics', 'plateau.json', ranks=2)
    bench.good('train', 'r.ini', *plateau, '--out', 'plateau_within', '--metrics', 'plateau_within.json', *ONE,
               *ONE)
    rates = {row['lr'] for row in lines(bench, 'plateau.json') if 'step' in row}
    bench.expect(len(rates) > 1, f'the rate stays: {rates}')
    same_bits(bench, 'lower rates', 'plateau', 'plateau_within')
    told = figures(lines(bench, 'plateau.json'))
    bench.expect(len(told) == 8 and told == figures(lines(bench, 'plateau_within.json')), f'{told}')
    args = ('--set', 'train.eval_every=1', '--set', 'train.patience=2', '--set', 'train.lr=1e-9')
    bench.good('train', 'r.ini', '--quiet', '--out', 'early', '--metrics', 'early.json', *args, '--epochs',
               50, ranks=2)
    summary = lines(bench, 'early.json')[-1]['summary']
    bench.expect(summary['ended_early'] and summary['updates'] < 50, f'{summary}')


def check_averages(bench):
    """All evaluate the averages of which each rank has a part."""
    args = ('--quiet', '--epochs', 2, '--set', 'train.ema=0.9', '--set', 'train.eval_every=1')
    for out, how in (('average', {'ranks': 3}), ('average_within', {})):
        devices = () if how else (*ONE, *ONE, *ONE, '--shard', 'none')
        bench.good('train', 'r.ini', *args, *devices, '--out', out, '--metrics', f'{out}.json', **how)
    one, other = (figures(lines(bench, f'{out}.json')) for out in ('average', 'average_within'))
    bench.expect(len(one) == 2 and one == other, f'evaluations of averages: {one}, within: {other}')
    same_bits(bench, 'averages', 'average', 'average_within')


def check_pairs(bench):
    """Rank 0 has the vectors of all: those of one device, by the same weights in the same micro-batches."""
    how = (*PAIRS, *STILL, '--set', 'memory.micro_batch=16')
    recipe = pairs(bench)
    want = figures(train(bench, 'pairs', ONE, *how, recipe=recipe))
    have = figures(train_ranks(bench, 'pairs_of_ranks', 3, '--share', '2:0:1', *how, recipe=recipe))
    bench.expect(len(want) == 1 and have == want, f'{have}, one device {want}')


def check_auto(bench):
    """Measured shares are the same on all ranks, and stay those of the checkpoint."""
    train_ranks(bench, 'auto', 2, '--steps', 5, '--share', 'auto')
    before = [m['share'] for m in lines(bench, 'auto.json')[-1]['summary']['members']]
    bench.expect(sum(before) == 256 and min(before) > 0, f'auto: {before}')
    bench.good('resume', 'auto', '--quiet', '--steps', 6, '--metrics', 'auto.json', ranks=2)
    after = [m['share'] for m in lines(bench, 'auto.json')[-1]['summary']['members']]
    bench.expect(after == before, f'auto: {before}, then {after}')


def check_tuning(bench):
    """Ranks of one machine tune one after another: equal devices have the same plan, also after resuming."""
    cache = {'QN_CACHE_DIR': str(bench.folder / 'cache')}
    args = ('train', 'r.ini', '--quiet', '--batch', 32, '--shard', 'none', '--set', 'memory.tune=quick', '--set',
            'train.schedule=constant')
    bench.good(*args, '--steps', 6, '--out', 'tuned', '--metrics', 'tuned.json', ranks=2, **cache)
    first, second = lines(bench, 'tuned.json')[0]['members']
    bench.expect(first['predicted_seconds'] == second['predicted_seconds'], 'ranks tuned side by side')
    bench.good('resume', 'tuned', '--quiet', '--steps', 12, ranks=2, **cache)
    bench.good(*args, '--steps', 12, '--out', 'tuned_whole', ranks=2, **cache)
    same_bits(bench, 'tuned and resumed', 'tuned', 'tuned_whole')


# --- what each rank reads ---

# Folders that differ from rank to rank; of four samples two are each rank's.
FOLDERS = ('whole', 'broken0', 'broken1')
SAMPLES = 4


def write_pictures(bench):
    """The same files in all folders."""
    for split in ('train', 'test'):
        for number in range(SAMPLES):
            for folder in FOLDERS:
                images.write_png(bench.folder / folder / split / f'class{number % 2}' / f'{number}.png', 16, 16, 3,
                                 lambda y, x, n=number: [(16 * y + 40 * n) % 256, 16 * x, 60 * n])
    bench.recipe('i.ini', images.RECIPE, **{'name = cnn\nwidth = 8\ngroup = 8': 'name = mlp'})


def damage(bench, folder, split, number):
    """The header stays as it is."""
    path = bench.folder / folder / split / f'class{number % 2}' / f'{number}.png'
    data = bytearray(path.read_bytes())
    data[-20] ^= 0xff  # of the pixels' checksum, which stands before the last 12 bytes, or of the pixels
    path.write_bytes(data)


def train_pictures(bench, out, *folders, how=()):
    each = [('--set', f'data.path={bench.folder / folder}/train', '--set',
             f'data.test_path={bench.folder / folder}/test') for folder in folders]
    args = ('train', 'i.ini', '--quiet', '--batch', SAMPLES, '--steps', 1, '--micro-batch', 1, '--out', out, '--metrics',
            f'{out}.json', *how)
    return bench.run(*args, ranks=each) if len(each) > 1 else bench.run(*args, *each[0], *ONE, *ONE)


def check_reading(bench):
    """A rank decodes the samples of its own members: the others may be broken where it is."""
    write_pictures(bench)
    code, _, error = train_pictures(bench, 'together', 'whole')
    bench.expect(code == 0 and not error, f'{code}: {error}')
    needed = []
    for number in range(SAMPLES):
        damage(bench, 'broken0', 'train', number)
        code, _, error = train_pictures(bench, f'needs{number}', 'broken0', 'whole')
        needed += [number] if code else []
        bench.expect(not code or re.search(rf'rank 0: .*/{number}\.png', error), f'{number}: {code}: {error}')
        damage(bench, 'broken0', 'train', number)
    bench.expect(len(needed) == SAMPLES / 2, f'rank 0 reads {needed}')
    for number in range(SAMPLES):
        damage(bench, f'broken{int(number in needed)}', 'train', number)
        damage(bench, f'broken{int(number % 2 == 0)}', 'test', number)
    code, _, error = train_pictures(bench, 'apart', 'broken0', 'broken1')
    bench.expect(code == 0 and not error, f'each has what it needs: {code}: {error}')
    same_bits(bench, 'samples of two folders', 'apart', 'together')
    bench.expect(figures(lines(bench, 'apart.json')) == figures(lines(bench, 'together.json')), 'other figures')
    pairs = ('--set', 'data.pairs=halves', '--set', 'contrastive.mode=gradcache')
    for out, folders in (('halves', ('whole',)), ('halves_apart', ('broken0', 'broken1'))):
        code, _, error = train_pictures(bench, out, *folders, how=pairs)
        bench.expect(code == 0 and not error, f'{out}: {code}: {error}')
    same_bits(bench, 'halves of two folders', 'halves_apart', 'halves')
    shutil.copytree(bench.folder / 'whole', bench.folder / 'untestable')
    damage(bench, 'untestable', 'test', SAMPLES - 1)
    for out, folder in (('untrained', 'broken0'), ('unevaluated', 'untestable')):
        code, _, error = train_pictures(bench, out, 'whole', folder)
        bench.expect(code == 1 and re.search(rf'^quern: rank 1: .*/{folder}/.*\.png: ', error, re.M), f'{code}: {error}')


def check_lengths(bench):
    """Documents of different length come by their length, of the whole batch, whoever reads them."""
    lengths.write_text(bench)
    recipe = lengths.recipe(bench, 'gpt', '16, 128')
    train_ranks(bench, 'lengths', 3, '--share', '1:0:2', '--steps', 2, recipe=recipe)
    train(bench, 'lengths_within', ONE * 3, '--steps', 2, recipe=recipe, share='1:0:2')
    same_bits(bench, 'lengths', 'lengths', 'lengths_within')


# --- going on ---


def check_resume(bench):
    """The same members: the same bits. Others: the same training."""
    recipe = constant(bench)
    share = ('--share', '3:1')
    rows = [row for row in train_ranks(bench, 'whole', 2, '--steps', 40, *share, recipe=recipe)
            if row.get('step', 0) >= 20]
    train_ranks(bench, 'half', 2, '--steps', 20, *share, recipe=recipe)
    for out in ('one_goes_on', 'three_go_on', 'within_goes_on'):
        shutil.copytree(bench.folder / 'half', bench.folder / out, symlinks=True)
    bench.good('resume', 'half', '--quiet', '--steps', 40, ranks=2)
    same_bits(bench, 'resumed', 'half', 'whole')
    bench.good('resume', 'within_goes_on', '--quiet', '--steps', 40, *ONE, *ONE, *share)
    same_bits(bench, 'resumed within one process', 'within_goes_on', 'whole')
    bench.good('resume', 'one_goes_on', '--quiet', '--steps', 40, '--metrics', 'one_goes_on.json')
    compare(bench, 'one goes on', lines(bench, 'one_goes_on.json'), 'one_goes_on', (rows, 'whole'), NEAR)
    code, _, error = bench.run('resume', 'three_go_on', '--quiet', '--steps', 40, '--metrics',
                               'three_go_on.json', ranks=3)
    bench.expect(code == 0 and re.fullmatch('quern: rank 0: warning: the training had shares of 2 devices.*\n',
                                            error), f'three go on: {code}: {error}')
    compare(bench, 'three go on', lines(bench, 'three_go_on.json'), 'three_go_on', (rows, 'whole'), NEAR)


def hidden(folder, *before):
    """Runs what follows where the folder is empty."""
    return ['unshare', '-m', *before, 'sh', '-c', f'mount -t tmpfs none {folder}; exec "$@"', 'sh']


def may_unshare():
    return subprocess.run(['unshare', '-m', 'mount', '-t', 'tmpfs', 'none', '/mnt'], check=False,
                          capture_output=True).returncode == 0


def check_sent_checkpoint(bench):
    """Rank 1 does not see the folder of the checkpoint: it receives the files, and leaves none."""
    if not may_unshare():
        print('skipped: a folder that a rank does not see: no namespaces here')
        return
    recipe = constant(bench)
    (bench.folder / 'disk').mkdir()
    (bench.folder / 'tmp').mkdir(exist_ok=True)
    train_ranks(bench, 'seen', 2, '--steps', 10, recipe=recipe)
    train_ranks(bench, 'disk/unseen', 2, '--steps', 5, recipe=recipe)
    bench.good('resume', 'disk/unseen', '--quiet', '--steps', 10, ranks=[(), hidden(bench.folder / 'disk')],
               TMPDIR=str(bench.folder / 'tmp'))
    same_bits(bench, 'a checkpoint that was sent', 'disk/unseen', 'seen')
    bench.expect(not os.listdir(bench.folder / 'tmp'), 'files that were sent are left')


def check_moved_data(bench):
    """Each rank finds data and tokenizer where it has them, or says what it does not find."""
    if not may_unshare():
        print('skipped: data that a rank does not see: no namespaces here')
        return
    here, there = bench.folder / 'here', bench.folder / 'there'
    (bench.folder / 'tmp').mkdir(exist_ok=True)
    for folder in (here, there):
        shutil.copytree(bench.folder / 'data', folder)
        (folder / 'text').write_text('the owls and the larks sing by night and by day\n' * 400)
    (bench.folder / 't.ini').write_text(TEXT.format(text=here / 'text'))
    mlp = (bench.folder / 'mlp.ini').read_text()
    (bench.folder / 'named.ini').write_text(re.sub(r'(?m)^(shape|classes|batch|budget).*\n', '', mlp).replace(
        '[train]', '[train]\nbatch = 12'))
    where = {'QN_DATA_DIR': str(here), 'TMPDIR': str(bench.folder / 'tmp')}
    away = hidden(here, 'env', f'QN_DATA_DIR={there}')
    for recipe, option in (('named.ini', ()), ('t.ini', ('--data', there / 'text'))):
        out = f'here/{recipe}.out'
        bench.good('train', recipe, *PLAIN, '--out', out, '--steps', 3, ranks=2, **where)
        shutil.copytree(bench.folder / out, bench.folder / f'{recipe}.two', symlinks=True)
        bench.good('resume', out, '--quiet', '--steps', 5, *option, ranks=[(), away], **where)
        bench.good('resume', f'{recipe}.two', '--quiet', '--steps', 5, ranks=2, **where)
        same_bits(bench, f'{recipe}: data elsewhere', out, f'{recipe}.two')
    code, _, error = bench.run('resume', 't.ini.two', '--quiet', '--steps', 6, ranks=[(), away], **where)
    bench.expect(code == 1 and len(said(error)) == 1 and f'rank 1: {here}/text: cannot read: No such file' in error,
                 f'data that are nowhere: {code}: {error}')


def expect_whole(bench, what, out):
    """The last checkpoint can be read, and goes on."""
    code, _, error = bench.run('resume', out, '--quiet', '--steps', 1)
    bench.expect(code == 0 and not error, f'{what}: {code}: {error}')


def check_kill(bench, times):
    """A rank dies at any moment: one line names it, all end, the training goes on to the same end."""
    recipe, random_moments = constant(bench), random.Random(5)
    args = ('--steps', 60, '--set', 'train.save_every=3')
    train_ranks(bench, 'unkilled', 2, *args, recipe=recipe)
    for number in range(times):
        out, victim = f'killed{number}', random_moments.randrange(2)
        moment = random_moments.randrange(4, 50)
        process = bench.start('train', recipe, *PLAIN, '--out', out, '--metrics', f'{out}.json', *args, ranks=2)
        pids = children(bench, process, 2)
        wait_for(bench, process, f'{out}.json', f'"step":{moment},')
        os.kill(pids[victim], signal.SIGKILL)
        began = time.time()
        _, error = process.communicate(timeout=300)
        what = f'kill -9 of rank {victim} near update {moment}'
        bench.expect(process.returncode not in (0, None) and time.time() - began < ENDS,
                     f'{what}: {process.returncode}: {error}')
        bench.expect(re.search(f'rank {victim}', error), f'{what}: is not named: {error}')
        nobody_left(bench, what, pids.values())
        bench.good('resume', out, '--quiet', ranks=2)
        same_bits(bench, what, out, 'unkilled')


def check_stop(bench):
    """A rank that hangs: after the time-out the others name it."""
    for victim in (0, 1):
        out = f'stopped{victim}'
        process = bench.start('train', constant(bench), *PLAIN, '--out', out, '--metrics', f'{out}.json',
                              '--timeout', 2, '--set', 'train.save_every=5', ranks=2)
        pids = children(bench, process, 2)
        wait_for(bench, process, f'{out}.json', '"step":7,')
        os.kill(pids[victim], signal.SIGSTOP)
        _, error = process.communicate(timeout=300)
        line = rf'^quern: rank {1 - victim}: .*nothing from member {victim} \(rank {victim}\) for 2 seconds'
        bench.expect(process.returncode not in (0, None) and re.search(line, error, re.M),
                     f'SIGSTOP of rank {victim}: {process.returncode}: {error}')
        nobody_left(bench, 'SIGSTOP', pids.values())
        expect_whole(bench, 'after SIGSTOP', out)


def check_long_evaluation(bench, slow):
    """A rank evaluates for longer than the time-out, and the others wait for it."""
    for ranks in ([preloaded(slow), (), ()], [(), preloaded(slow), ()]):
        code, _, error = bench.run('train', 'fashion-mlp', *PLAIN, '--steps', 2, '--batch', 48, '--micro-batch', 16,
                                   '--metrics', 'slow.json', '--timeout', 3, ranks=ranks)
        seconds = [row['evaluation']['seconds'] for row in lines(bench, 'slow.json') if 'evaluation' in row]
        bench.expect(code == 0 and not error, f'a long evaluation: {code}: {error}')
        bench.expect(seconds and max(seconds) > 4, f'the evaluation was short: {seconds}')


def check_long_write(bench, slow):
    """They wait for rank 0, too, which writes a file of a checkpoint for longer."""
    began = time.monotonic()
    code, _, error = bench.run('train', 'fashion-mlp', *PLAIN, '--steps', 3, '--out', 'slow', '--timeout', 3,
                               ranks=[preloaded(slow), ()])
    seconds = time.monotonic() - began
    bench.expect(code == 0 and not error, f'a long write: {code}: {error}')
    bench.expect(seconds > 10, f'nothing was written for long: {seconds} s in all')
    train(bench, 'fast', (*ONE, *ONE), '--steps', 3)
    same_bits(bench, 'after a long write', 'slow', 'fast')


def check_signal(bench):
    """SIGTERM that reaches one rank: all save after the same update, and go on to the same end."""
    recipe = constant(bench)
    for victim in (0, 1):
        out = f'ended{victim}'
        process = bench.start('train', recipe, *PLAIN, '--out', out, '--metrics', f'{out}.json', ranks=2)
        pids = children(bench, process, 2)
        wait_for(bench, process, f'{out}.json', '"step":7,')
        os.kill(pids[victim], signal.SIGTERM)
        _, error = process.communicate(timeout=300)
        summary = lines(bench, f'{out}.json')[-1]['summary']
        bench.expect(process.returncode == 128 + signal.SIGTERM and not said(error) and summary['interrupted'],
                     f'SIGTERM to rank {victim}: {process.returncode}: {error} {summary}')
        nobody_left(bench, 'SIGTERM', pids.values())
        steps = summary['updates'] + 5
        bench.good('resume', out, '--quiet', '--steps', steps, ranks=2)
        shutil.rmtree(bench.folder / 'unended', ignore_errors=True)
        train_ranks(bench, 'unended', 2, '--steps', steps, recipe=recipe)
        same_bits(bench, f'SIGTERM to rank {victim}', out, 'unended')


def check_full_disk(bench):
    """Rank 0 cannot save: it says so, and all end."""
    if not may_unshare():
        print('skipped: a full disk: no namespaces here')
        return
    small = bench.folder / 'small'
    small.mkdir()
    rank = ['unshare', '-m', 'sh', '-c', f'mount -t tmpfs -o size=3m none {small}; exec "$@"', 'sh']
    code, _, error = bench.run('train', 'fashion-mlp', *PLAIN, '--steps', 50, '--set', 'train.save_every=2',
                               '--set', 'train.keep=4', '--out', small / 'out', ranks=[rank, ()])
    bench.expect(code not in (0, None) and any(re.search(r'rank 0: .*No space left', line) for line in said(error)),
                 f'a full disk: {code}: {error}')


def check_refused_memory(bench, clcount):
    """A device that refuses memory ends all, and is named."""
    refusing = preloaded(clcount, CLCOUNT_FILE='/dev/null', CLCOUNT_LIMIT=4096)
    code, _, error = bench.run('train', 'fashion-mlp', *PLAIN, '--steps', 5, ranks=[(), refusing])
    bench.expect(code == 1 and len(said(error)) == 1 and
                 re.search(r'rank 1: member 1: .*the device refused memory: \d+ bytes asked .*budget', error),
                 f'refused memory: {code}: {error}')


def check_threads(bench, nothreads):
    """An MPI that takes no calls of several threads."""
    code, _, error = bench.run('train', 'fashion-mlp', *PLAIN, '--steps', 3, ranks=[preloaded(nothreads)] * 2)
    bench.expect(code == 2 and len(said(error)) == 1 and 'without MPI_THREAD_MULTIPLE' in error,
                 f'no threads: {code}: {error}')


# --- what does not go together ---

# What is said of all ranks; or of each. The only line that follows.
BAD = [
    (2, '--share 1:-1', 2, r"rank 0: --share: group\.share: '-1' is below 0"),
    (2, '--share 0:0', 2, r"rank 0: .*'0:0' gives the samples to nobody"),
    (2, '--share 1:1:1', 2, r"rank 0: .*'1:1:1' has another number of shares than there are devices"),
    (2, '--bogus', 2, r'rank 0: train: --bogus: unknown option'),
    (2, '--timeout 0', 2, r"rank 0: --timeout: group\.timeout: '0' is too small"),
    (2, '--batch 1', 2, r'nothing of the batch is left for member 1'),
    (2, '--device nosuch', 4, r'rank 0: member 0: no usable OpenCL device matches "nosuch"'),
    (2, '--budget 1KiB', 3, r'rank 0: .*member 0: no plan fits'),
    ([(), ('--budget', '1KiB')], '', 3, r'rank 1: .*member 1: no plan fits 1\.00 KiB'),
    ([(), ('--device', 'nosuch')], '', 4, r'rank 1: member 1: no usable OpenCL device matches "nosuch"'),
    ([(), ('--set', 'train.lr=0.5')], '', 2, r'rank 1: mlp\.ini: train\.lr: 0\.5 here, 0\.002 on rank 0'),
    ([(), ('--set', 'train.lr_end=0')], '', 2, r'rank 1: mlp\.ini: train\.lr_end: 0 here, nothing on rank 0'),
    ([(), ('--seed', '7')], '', 2, r'rank 1: mlp\.ini: train\.seed: 7 here, nothing on rank 0'),
    ([(), (), ('--set', 'model.hidden1=64')], '', 2, r'rank 2: mlp\.ini: model\.hidden1: 64 here'),
    ([(), ('--data', 'other')], '', 2, r'rank 1: data: other samples .*: \d+-\w+ here, \d+-\w+ on rank 0'),
    ([(), ('--data', 'tested')], '', 2, r'rank 1: data: other samples to evaluate .*: \d+-\w+ here, \d+-\w+ on rank 0'),
    ([(), ('--data', 'nowhere')], '', 1, r'rank 1: .*nowhere'),
    (2, '--set contrastive.mode=whole', 2, r'rank 0: '),
]


def check_bad(bench):
    for split, folder in (('train', 'other'), ('t10k', 'tested')):
        shutil.copytree(bench.folder / 'data', bench.folder / folder)
        pixels = bench.folder / folder / f'{split}-images-idx3-ubyte'
        bytes_of = bytearray(pixels.read_bytes())
        bytes_of[-1] ^= 1
        pixels.write_bytes(bytes_of)
    text = (bench.folder / 'mlp.ini').read_text()
    (bench.folder / 'small.ini').write_text(re.sub(r'(?m)^\[data\]', f'[data]\npath = {bench.folder}/data', text))
    for ranks, args, code, pattern in BAD:
        recipe = 'r.ini' if 'data:' in pattern else 'mlp.ini'
        got, out, error = bench.run('train', recipe, *PLAIN, *args.split(), ranks=ranks)
        name = f'{ranks} {args}: {got}: {error}'
        bench.expect(got == code, f'{name}: not {code}')
        bench.expect(len(said(error)) == 1 and re.search(pattern, said(error)[0]) and not out, f'{name}: not {pattern}')


def check_weights(bench):
    """Weights that a rank has read from another file are found, whatever their type."""
    for kind in ('f32', 'bf16', 'f16'):
        how = ('--quiet', '--steps', 1, '--set', f'memory.parameter_storage={kind}')
        bench.good('train', 'r.ini', *how, '--out', f'{kind}-first')
        whole = (bench.folder / f'{kind}-first/last/weights.safetensors').read_bytes()
        last, = struct.unpack('<f', whole[-4:])
        (bench.folder / f'{kind}.one').write_bytes(whole)
        (bench.folder / f'{kind}.other').write_bytes(whole[:-4] + struct.pack('<f', last + 0.5))
        ranks = [('--set', f'train.weights={bench.folder}/{kind}.{name}') for name in ('one', 'other')]
        code, _, error = bench.run('train', 'r.ini', *how, ranks=ranks)
        bench.expect(code == 2 and len(said(error)) == 1 and
                     re.search(r'rank 1: weights: \w+ here, \w+ on rank 0', error), f'{kind}: {code}: {error}')
        bench.good('train', 'r.ini', *how, ranks=[ranks[0], ranks[0]])
        bench.good('resume', f'{kind}-first', '--quiet', '--steps', 2, *ONE, ranks=2)


def check_devices(bench):
    """Ranks of one machine take one device after another, and share one only where that is said."""
    args = ('train', 'mlp.ini', *PLAIN, '--steps', 2)
    code, _, error = bench.run(*args, ranks=2, POCL_DEVICES='basic')
    bench.expect(code == 4 and len(said(error)) == 1 and
                 re.search(r'member 1: .* is taken already by member 0; group\.same_device', error), f'{code}: {error}')
    bench.good(*args, '--set', 'group.same_device=yes', '--metrics', 'same.json', ranks=2, POCL_DEVICES='basic')
    bench.good(*args, *ONE, *ONE, ranks=2)
    code, _, error = bench.run(*args, *ONE, *ONE, *ONE, ranks=2)
    bench.expect(code == 4 and re.search('member 4: .* is taken already by member 0', error), f'{code}: {error}')


def check_other_launchers(bench):
    """Started together by what the MPI of quern-mpi does not know; and without quern-mpi."""
    for env in ({'PMI_SIZE': '2', 'PMI_RANK': '0'}, {'SLURM_STEP_NUM_TASKS': '2', 'SLURM_PROCID': '0'}):
        code, _, error = bench.run('plan', 'mlp.ini', **SETTINGS, **env)
        bench.expect(code == 1 and error.startswith('quern: several processes were started together, and') and
                     len(error.splitlines()) == 1, f'{env}: {code}: {error}')
    bench.good('plan', 'mlp.ini', SLURM_NTASKS='4', SLURM_PROCID='0')
    library = sorted((bench.build / 'src/mpi').glob('libquern-mpi.so.?.?'))
    if may_unshare() and library:
        script = f'mount --bind /dev/null {library[0].resolve()}; exec "$@"'
        missing = ['unshare', '-m', 'sh', '-c', script, 'sh']
        code, _, error = bench.run('plan', 'mlp.ini', ranks=[missing, missing])
        bench.expect(code == 1 and len(said(error)) == 1 and
                     'processes that are started together need the library quern-mpi: ' in error,
                     f'no quern-mpi: {code}: {error}')


def check_told_late(bench, slow):
    """What one rank alone says is said, however late: mpirun ends all ranks with the first that goes."""
    other = ['sh', '-c', 'exec "$@" --set model.hidden1=64', 'sh']
    code, _, error = bench.run('train', 'mlp.ini', *PLAIN, ranks=[(), (), [*preloaded(slow), *other]])
    bench.expect(code == 2 and len(said(error)) == 1 and re.search(r'rank 2: .*: model\.hidden1: 64 here', said(error)[0]),
                 f'told late: {code}: {error}')


def main():
    if not shutil.which('mpirun'):
        print('skipped: there is no mpirun')
        sys.exit(77)
    os.environ.update(DEVICES)
    with Ranks(sys.argv[1]) as bench:
        shutil.copy(os.path.join(HERE, '../../recipes/fashion-mlp.ini'), bench.folder / 'mlp.ini')
        bench.build = __import__('pathlib').Path(bench.program).parents[2]
        only = [name for name in sys.argv if name.startswith('check_')]
        if 'full' in sys.argv:
            check_kill(bench, 10)
            bench.end()
        for part in (check_teams, check_told, check_profile, check_evaluations, check_averages, check_pairs,
                     check_reading, check_lengths, check_auto, check_tuning, check_resume, check_sent_checkpoint,
                     check_moved_data, check_stop, check_signal, check_full_disk, check_bad, check_weights,
                     check_devices, check_other_launchers):
            if not only or part.__name__ in only:
                began = time.time()
                part(bench)
                print(part.__name__, round(time.time() - began, 1), 's')
        if not only:
            check_kill(bench, 3)
        if len(sys.argv) > 4 and not only:
            check_refused_memory(bench, sys.argv[2])
            check_long_evaluation(bench, sys.argv[3])
            check_threads(bench, sys.argv[4])
            check_long_write(bench, sys.argv[5])
            check_told_late(bench, sys.argv[6])
        bench.end()


if __name__ == '__main__':
    main()
