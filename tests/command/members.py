#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""members.py PROGRAM [CLCOUNT] [cnn]: several devices train one model: the same losses and weights as
those of one, each inside its budget; the devices are PoCL's, of one compute unit each. `cnn`: the
convolutional network alone, which takes longer."""
import gzip
import json
import os
import pathlib
import random
import shutil
import signal
import struct
import sys
import time

from array import array
from math import sqrt

import lengths

from bad_input import check
from report import report
from runs import digest, lines
from support import TEST, Bench, idx

FASHION = pathlib.Path('/usr/share/datasets/fashion-mnist')
RECIPES = pathlib.Path(__file__).resolve().parents[2] / 'recipes'
# Each with one compute unit.
COUNT = 4
DEVICES = {'POCL_DEVICES': ' '.join(['basic'] * COUNT), 'OCL_ICD_VENDORS': '/etc/OpenCL/vendors/pocl.icd'}
NEAR, NEAR_CNN = 1e-5, 1e-4
UPDATES = 50
MIB = 1 << 20
ONE = ('--device', 'basic')
TWO = (*ONE, '--budget', '8MiB', '--micro-batch', 48, *ONE, '--budget', '9MiB', '--recompute', 'all')
TEAMS = [
    (TWO, None),
    (TWO, '3:1'),
    ((*ONE, *ONE, '--micro-batch', 7, *ONE, '--budget', '5MiB'), '7:2:1'),
    ((*ONE, '--micro-batch', 32, *ONE, *ONE, '--recompute', 'all', *ONE), '2:0:1:1'),
    ((*ONE, *ONE), '0:1'),
]


def train(bench, out, members, *args, recipe='fashion-mlp', share=None):
    """Trains into a new folder; the rows of the figures."""
    shares = ('--share', share) if share else ()
    metrics = f'{out}.json'
    bench.good('train', recipe, '--quiet', '--out', out, '--metrics', metrics, '--set', 'memory.tune=off',
               '--set', 'train.eval_every=0', *members, *shares, *args)
    return lines(bench, metrics)


def losses(rows):
    return [row['loss'] for row in rows if 'step' in row and 'loss' in row]


def weights(bench, out):
    """The tensors of the last checkpoint: name -> numbers."""
    data = (bench.folder / out / 'last/weights.safetensors').read_bytes()
    length, = struct.unpack('<Q', data[:8])
    tensors = json.loads(data[8:8 + length])
    tensors.pop('__metadata__', None)
    return {name: array('f', data[8 + length + t['data_offsets'][0]:8 + length + t['data_offsets'][1]])
            for name, t in tensors.items()}


def distance(a, b):
    """Of two arrays, beside the length of the first."""
    return sqrt(sum((x - y) ** 2 for x, y in zip(a, b)) / max(sum(x * x for x in a), 1e-30))


def joined(tensors):
    return [number for name in sorted(tensors) for number in tensors[name]]


def compare(bench, what, rows, out, to, near, together=False):
    """Figures and weights of a training beside those of one device, `to`: (rows, folder). Weights each
    by itself, or `together`: where sums of a hundred thousand numbers that cancel are a tensor's all."""
    mine, other = losses(rows), losses(to[0])
    worst = max((abs(a - b) / abs(b) for a, b in zip(mine, other)), default=1)
    bench.expect(len(mine) == len(other) > 0 and worst < near, f'{what}: losses differ by {worst}')
    have, want = weights(bench, out), weights(bench, to[1])
    far = ({'all': distance(joined(want), joined(have))} if together else
           {name: distance(want[name], have[name]) for name in want})
    bench.expect(have.keys() == want.keys() and max(far.values()) < near, f'{what}: weights: {far}')


# --- the same model ---


def check_teams(bench):
    to = train(bench, 'one', ONE, '--steps', UPDATES), 'one'
    for number, (members, share) in enumerate(TEAMS):
        rows = train(bench, f'team{number}', members, '--steps', UPDATES, share=share)
        compare(bench, f'{members} {share}', rows, f'team{number}', to, NEAR)


def check_same_device(bench):
    same = ('--set', 'group.same_device=yes')
    rows = train(bench, 'same', (*ONE, *ONE), '--steps', UPDATES, *same)
    compare(bench, 'one device twice', rows, 'same', (lines(bench, 'one.json'), 'one'), NEAR)


def check_recipe(bench):
    """The keys of a recipe say what the options say."""
    key = 'basic budget=8MiB micro_batch=48 | basic budget=9MiB recompute=all'
    train(bench, 'keys', (), '--steps', 5, '--set', f'group.devices={key}', '--set', 'group.share=3:1')
    train(bench, 'options', TWO, '--steps', 5, share='3:1')
    bench.expect(digest(bench, 'keys') == digest(bench, 'options'), 'a recipe says otherwise')


def check_again(bench):
    """The order of all sums is fixed: the same members give the same bits, whenever they stop."""
    for share in (None, '3:1'):
        for out in ('first', 'second'):
            shutil.rmtree(bench.folder / out, ignore_errors=True)
            train(bench, out, TWO, '--steps', 40, share=share)
        bench.expect(digest(bench, 'first') == digest(bench, 'second'), f'{share}: twice, other bits')
        shutil.rmtree(bench.folder / 'half', ignore_errors=True)
        train(bench, 'half', TWO, '--steps', 20, share=share, recipe=constant(bench))
        shutil.rmtree(bench.folder / 'whole', ignore_errors=True)
        train(bench, 'whole', TWO, '--steps', 40, share=share, recipe=constant(bench))
        bench.good('resume', 'half', '--quiet', '--steps', 40)
        bench.expect(digest(bench, 'half') == digest(bench, 'whole'), f'{share}: resumed, other bits')


def constant(bench):
    """A recipe whose learning rate does not look at the end of the training."""
    text = (bench.folder / 'mlp.ini').read_text()
    (bench.folder / 'constant.ini').write_text(text.replace('schedule = cosine', 'schedule = constant'))
    return 'constant.ini'


def hashes(bench, name):
    """Those of the members' plans, by the first row that has them."""
    return [m['hash'] for m in next(row['members'] for row in lines(bench, name) if 'members' in row)]


def check_plans(bench):
    """The plans of members are those of the checkpoint, whatever tuning has found since."""
    cache = {'QN_CACHE_DIR': str(bench.folder / 'cache')}
    began = ('--quiet', '--out', 'planned', '--metrics', 'planned.json', '--tune', 'quick')
    bench.good('train', 'fashion-mlp', *began, '--steps', 2, *TWO, **cache)
    for tuning in (bench.folder / 'cache').glob('tuning-*.json'):
        tuning.write_text(tuning.read_text().replace('"variant": "cpu", "setting": "large", "seconds"',
                                                     '"variant": "gpu", "setting": "large", "seconds"'))
    had = hashes(bench, 'planned.json')
    for steps, option, same in ((3, '--quiet', True), (4, '--replan', False)):
        bench.good('resume', 'planned', '--quiet', '--steps', steps, option, '--metrics', f'{steps}.json', **cache)
        have = hashes(bench, f'{steps}.json')
        bench.expect(len(had) == 2 and (have == had) == same, f'resume {option}: plans {have} after {had}')


def check_crossing(bench):
    """What two members saved one device goes on with, and the other way round."""
    to = train(bench, 'straight', ONE, '--steps', 30, recipe=constant(bench)), 'straight'
    for out, began, goes_on in (('to_one', TWO, ONE), ('to_two', ONE, TWO)):
        train(bench, out, began, '--steps', 15, recipe=constant(bench))
        bench.good('resume', out, '--quiet', '--steps', 30, *goes_on, '--metrics', f'{out}.json')
        compare(bench, out, lines(bench, f'{out}.json'), out, to, NEAR)


def pairs(bench):
    """The recipe of pairs, with the first of those that are looked for: among 10,000 a sanitizer looks for
    half a minute."""
    folder = bench.folder / 'pairs'
    folder.mkdir(exist_ok=True)
    for name in ('images-idx3-ubyte', 'labels-idx1-ubyte'):
        data = gzip.decompress((FASHION / f't10k-{name}.gz').read_bytes())
        header = 4 + 4 * data[3]
        count, *dims = struct.unpack(f'>{data[3]}I', data[4:header])
        (folder / f't10k-{name}').write_bytes(
            idx(8, (TEST, *dims), data[header:header + (len(data) - header) // count * TEST]))
        shutil.copy(FASHION / f'train-{name}.gz', folder)
    text = (RECIPES / 'retrieve-fashion.ini').read_text()
    return bench.recipe('pairs.ini', text, **{'name = fashion-mnist': f'path = {folder}'})


def check_pairs(bench):
    """Pairs of the whole batch, whose loss each member computes; and those of micro-batches."""
    recipe = pairs(bench)
    for mode, share in (('gradcache', '3:1'), ('accumulate', '5:3')):
        how = ('--steps', 8, '--set', f'contrastive.mode={mode}', '--set', 'train.batch=128', '--set',
               'memory.micro_batch=16')
        to = train(bench, f'{mode}-one', ONE, *how, recipe=recipe), f'{mode}-one'
        rows = train(bench, mode, (*ONE, *ONE), *how, recipe=recipe, share=share)
        compare(bench, mode, rows, mode, to, NEAR)
        if mode == 'gradcache':
            check_predicted(bench, rows[-1]['summary']['members'], recipe, *how)
    bench.good('resume', 'gradcache', '--quiet', '--steps', 10, *ONE)


TEAM_FILE = """[device large]
facts = devices.json
match = basic
share = 3
[device small]
facts = devices.json
match = basic
[link inside]
bandwidth = 1 GB/s
"""


def check_predicted(bench, members, recipe, _, updates, *how):
    """Members that are not here have the bytes of these, and send as many: rows of pairs, too."""
    (bench.folder / 'devices.json').write_text(bench.good('devices', '--json'))
    (bench.folder / 'team.ini').write_text(TEAM_FILE)
    row, = json.loads(bench.good('plan', recipe, '--members', 'team.ini', '--json', *how))['teams']
    sent, predicted = members[0]['bytes_sent'] / updates, row['exchanges']['direct']['bytes_sent']
    bench.expect(abs(predicted / sent - 1) < 0.001, f'sent {sent}, predicted {predicted}')
    for device, member in zip(row['devices'], members):
        bench.expect(device['peak_bytes_planned'] == member['peak_bytes_planned'], f'{device} {member}')


def check_cnn(bench):
    """Batch norm: members have whole groups of samples, so all statistics are the same. By sgd: adamw
    makes steps of one size of gradients that are nothing but rounding."""
    sgd = ('--steps', UPDATES, '--set', 'train.optimizer=sgd')
    to = train(bench, 'cnn', ONE, *sgd, recipe='fashion-mnist'), 'cnn'
    two = (*ONE, '--micro-batch', 32, *ONE, '--recompute', 'all')
    for number, (members, share) in enumerate(((two, None), ((*two, *ONE), '3:2:1'))):
        rows = train(bench, f'cnn{number}', members, *sgd, recipe='fashion-mnist', share=share)
        compare(bench, f'cnn {share}', rows, f'cnn{number}', to, NEAR_CNN, together=True)


# --- evaluation ---

STILL = ('--steps', 1, '--set', 'train.lr=1e-30')  # leaves the weights as they are
PAIRS = ('--set', 'contrastive.mode=gradcache', '--set', 'train.batch=128')


def figures(rows):
    """Of all evaluations, without the seconds that they took."""
    return [{key: value for key, value in row['evaluation'].items() if key != 'seconds'} for row in rows
            if 'evaluation' in row]


def check_evaluation(bench):
    """Each member evaluates its share. With the same weights, in the same micro-batches, every figure has
    the bits of one device: of classes, of documents of different length, of pairs."""
    lengths.write_text(bench)
    for recipe, micro, how in (('fashion-mlp', 64, ()), (lengths.recipe(bench, 'gpt'), 4, ()),
                               (pairs(bench), 16, PAIRS)):
        how = (*how, *STILL, '--set', f'memory.micro_batch={micro}')
        want = figures(train(bench, f'still-{recipe}', ONE, *how, recipe=recipe))
        bench.expect(len(want) == 1 and want[0]['test_samples'] > 20, f'{recipe}: {want}')
        for share in ('3:1', '2:0:1'):
            out, members = f'still-{recipe}-{share}', ONE * len(share.split(':'))
            have = figures(train(bench, out, members, *how, recipe=recipe, share=share))
            bench.expect(have == want, f'{recipe} {share}: evaluated {have}, one device {want}')


def check_average_figures(bench):
    """Members evaluate averages of the parameters, each in micro-batches of its own."""
    how = ('--steps', 10, '--set', 'train.ema=0.9')
    raw, one, two = [figures(train(bench, f'averages{number}', members, *args))[0]['test_loss']
                     for number, (members, args) in enumerate(((ONE, how[:2]), (ONE, how), (TWO, how)))]
    bench.expect(abs(two - one) < NEAR * one and abs(raw - one) > 0.01 * one, f'{raw} {one} {two}')


# --- bytes ---


def check_plan(bench):
    out = bench.good('plan', 'fashion-mlp', *TWO, '--share', '3:1')
    for row in (r'member 0 1', r'samples of an update 192 64', r'micro-batch 48 64',
                r'budget 8 MiB 9 MiB'):
        bench.expect(any(' '.join(line.split()) == row for line in out.splitlines()), f'no {row}: {out}')
    plans = json.loads(bench.good('plan', 'fashion-mlp', *TWO, '--share', '3:1', '--json'))['members']
    bench.expect([p['batch'] for p in plans] == [192, 64], f'{[p["batch"] for p in plans]}')
    bench.expect([p['budget_bytes'] for p in plans] == [8 * MIB, 9 * MIB], 'budgets of the plans')
    told = lines(bench, 'team1.json')[0]
    bench.expect([p['budget_bytes'] for p in told['members']] == [8 * MIB, 9 * MIB], 'plans in figures')


def check_shard(bench):
    """Each member has the optimizer's state of its own part of the parameters: the same bits as if each
    had all of it, in fewer bytes."""
    for mode in ('optimizer', 'none'):
        train(bench, mode, TWO, '--steps', 20, '--set', 'train.optimizer=adamw8', '--shard', mode, share='3:1')
    bench.expect(digest(bench, 'optimizer') == digest(bench, 'none'), '--shard none: other bits')
    bytes_of = {}
    for count in (1, COUNT):
        plan = json.loads(bench.good('plan', 'fashion-mnist', '--json', *ONE * count))
        bytes_of[count] = [one['bytes_by_tag']['optimizer'] for one in plan.get('members', [plan])]
    ratio = max(bytes_of[COUNT]) / bytes_of[1][0]
    bench.expect(ratio < 0.30, f'optimizer of {COUNT} members: {ratio:.3f} of one')


def check_averages(bench):
    """So it is with averages, which evaluations in the middle and at the end see whole."""
    args = ('--epochs', 2, '--set', 'train.ema=0.99', '--set', 'train.eval_every=1')
    rows = {mode: train(bench, f'average-{mode}', (*ONE, *ONE), *args, '--shard', mode, recipe='r.ini', share='3:1')
            for mode in ('optimizer', 'none')}
    one, other = (figures(rows[mode]) for mode in ('optimizer', 'none'))
    bench.expect(len(one) == 2 and one == other, f'evaluations of averages: {one}, --shard none: {other}')
    bench.expect(digest(bench, 'average-optimizer') == digest(bench, 'average-none'), 'averages: other bits')
    averages = [[p['bytes_by_tag']['averages'] for p in r[0]['members']] for r in rows.values()]
    bench.expect(sum(averages[0]) == averages[1][0] == averages[1][1], f'bytes of averages: {averages}')


def check_summary(bench):
    """All bytes together, and those of each."""
    summary = lines(bench, 'team1.json')[-1]['summary']
    members = summary['members']
    bench.expect([m['share'] for m in members] == [3, 1], f'{members}')
    bench.expect([m['budget_bytes'] for m in members] == [8 * MIB, 9 * MIB], f'{members}')
    for m in members:
        bench.expect(m['peak_bytes_planned'] == m['peak_bytes_allocated'] <= m['budget_bytes'], f'{m}')
    for key in ('peak_bytes_planned', 'peak_bytes_allocated', 'budget_bytes'):
        bench.expect(summary[key] == sum(m[key] for m in members), f'{key}: {summary}')
    numbers = sum(len(tensor) for tensor in weights(bench, 'team1').values())
    bench.expect([m['samples'] for m in members] == [192 * UPDATES, 64 * UPDATES], f'{members}')
    for m in members:
        bench.expect(m['computed_seconds'] > 0 and m['waited_seconds'] >= 0, f'{m}')
        bench.expect(abs(m['bytes_sent'] / UPDATES / (4 * numbers) - 1) < 0.01, f'{m} {numbers}')
    whole = lines(bench, 'one.json')[-1]['summary']
    bench.expect('members' not in whole, 'one device has members')


def check_shown(bench):
    """Report, profile, figures and pictures of the plans tell of each member."""
    rows = train(bench, 'shown', TWO, '--steps', 5, '--profile', 'trace.json', share='3:1')
    plans, summary = rows[0]['members'], rows[-1]['summary']['members']
    table = next(t for t in report(bench, 'shown').tables if t[0][0] == 'member')
    bench.expect([row[0] for row in table[1:]] == ['0', '1'], f'{table}')
    bench.expect([row[2:4] for row in table[1:]] == [['192', '48'], ['64', '64']], f'{table}')
    rates = [round(m['samples'] / m['computed_seconds']) for m in summary]
    bench.expect([row[6] for row in table[1:]] == [str(rate) for rate in rates], f'{table} {rates}')
    bench.expect(all(row[8] for row in table[1:]) and plans[0]['hash'] != plans[1]['hash'], f'{table}')
    profile = next(row['profile'] for row in rows if 'profile' in row)
    bench.expect(len(profile['members']) == 2 and profile['members'][0] == profile['seconds'] and
                 all(one.keys() >= {'forward', 'backward', 'update'} for one in profile['members']), f'{profile}')
    events = json.loads((bench.folder / 'trace.json').read_text())['traceEvents']
    names = {e['pid']: e['args']['name'] for e in events if e['name'] == 'process_name'}
    bench.expect(names == {1: 'member 0', 2: 'member 1'} and {e['pid'] for e in events} == {1, 2}, f'{names}')
    bench.expect(min(e['ts'] for e in events if 'ts' in e) == 0, 'the trace begins late')
    pictures = [(bench.folder / 'shown' / name).read_text() for name in ('plan.svg', 'plan-1.svg')]
    bench.expect(pictures[0] != pictures[1] and all('</svg>' in one for one in pictures), 'pictures of the plans')


def check_auto(bench):
    """Measured shares are settled once: the training that goes on has those of the checkpoint."""
    train(bench, 'auto', TWO, '--steps', 5, share='auto')
    before = [m['share'] for m in lines(bench, 'auto.json')[-1]['summary']['members']]
    bench.expect(sum(before) == 256 and min(before) > 0, f'auto: {before}')
    bench.good('resume', 'auto', '--quiet', '--steps', 6, '--metrics', 'auto.json')
    after = [m['share'] for m in lines(bench, 'auto.json')[-1]['summary']['members']]
    bench.expect(after == before, f'auto: {before}, then {after}')


def check_counted(bench, clcount):
    """Ten pairs of budgets: what is counted from outside is what both plans say."""
    folder, name = os.path.split(os.path.abspath(clcount))
    plans = json.loads(bench.good('plan', 'fashion-mlp', *ONE, *ONE, '--json'))['members']
    least = plans[0]['smallest_budget_bytes']
    for number in range(10):
        budgets = [least + random.randrange(2 * MIB) for _ in range(2)]
        rows = train(bench, f'count{number}', (*ONE, '--budget', budgets[0], *ONE, '--budget', budgets[1]),
                     '--steps', 2)
        members = rows[-1]['summary']['members']
        for budget, m in zip(budgets, members):
            bench.expect(m['peak_bytes_planned'] == m['peak_bytes_allocated'] <= m['budget_bytes'] == budget,
                         f'{budgets}: {m}')
        counted = bench.folder / 'counts.json'
        bench.good('train', 'fashion-mlp', '--quiet', '--steps', 2, '--set', 'memory.tune=off', *ONE,
                   '--budget', budgets[0], *ONE, '--budget', budgets[1], LD_PRELOAD=name,
                   LD_LIBRARY_PATH=folder, CLCOUNT_FILE=str(counted))
        counts = json.loads(counted.read_text())
        bench.expect(counts['peak_bytes'] == sum(m['peak_bytes_planned'] for m in members) and
                     not any(counts[key] for key in ('alive', 'queues', 'programs', 'kernels', 'events')),
                     f'{budgets}: {counts}')


def check_budget_file(bench):
    """A member's budget may change while all train."""
    file, metrics = bench.folder / 'budget', bench.folder / 'follow.json'
    file.write_text('8MiB')
    process = bench.start('train', 'fashion-mlp', '--quiet', '--steps', UPDATES, '--set', 'memory.tune=off',
                          '--set', 'train.eval_every=0', '--out', 'follow', '--metrics', metrics, *ONE,
                          '--budget', '8MiB', *ONE, '--budget-file', file)
    while process.poll() is None and not (metrics.exists() and '"step":4,' in metrics.read_text()):
        time.sleep(0.005)
    file.write_text('4MiB')
    _, error = process.communicate(timeout=300)
    rows = lines(bench, 'follow.json')
    budgets = [[p['budget_bytes'] for p in row['members']] for row in rows if 'plan' in row]
    bench.expect(process.returncode == 0 and not error, f'{process.returncode}: {error}')
    bench.expect(budgets == [[8 * MIB, 8 * MIB], [8 * MIB, 4 * MIB]], f'{budgets}')
    compare(bench, 'another budget', rows, 'follow', (lines(bench, 'one.json'), 'one'), NEAR)


# --- what ends ---


def check_signal(bench):
    """SIGTERM: all is saved, and the training goes on to the same end."""
    recipe = constant(bench)
    args = ('--set', 'memory.tune=off', '--set', 'train.eval_every=0', *TWO)
    process = bench.start('train', recipe, '--quiet', '--out', 'ended', '--metrics', 'ended.json', *args)
    path = bench.folder / 'ended.json'
    while process.poll() is None and not (path.exists() and '"step":7,' in path.read_text()):
        time.sleep(0.005)
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=300)
    summary = lines(bench, 'ended.json')[-1]['summary']
    bench.expect(process.returncode == 128 + signal.SIGTERM and not error and summary['interrupted'],
                 f'SIGTERM: {process.returncode}: {error} {summary}')
    steps = summary['updates'] + 5
    bench.good('resume', 'ended', '--quiet', '--steps', steps)
    train(bench, 'unended', TWO, '--steps', steps, recipe=recipe)
    bench.expect(digest(bench, 'ended') == digest(bench, 'unended'), 'other bits after SIGTERM')


TEAM = '--device basic --device basic'
BAD = [
    (f'{TEAM} --share 1:-1', 2, r"--share: group\.share: '-1' is below 0"),
    (f'{TEAM} --share 0:0', 2, r"group\.share: '0:0' gives the samples to nobody"),
    (f'{TEAM} --share 1:1:1', 2, r"'1:1:1' has another number of shares than there are devices"),
    (f'{TEAM} --share 1', 2, r"'1' has another number of shares"),
    (f'{TEAM} --share a:b', 2, r"group\.share: 'a' is not a number"),
    (f'{TEAM} --share 1:', 2, r"group\.share: '' is not a number"),
    (f'{TEAM} --share nan:1', 2, r"group\.share: 'nan' is not a number"),
    (f'{TEAM} --share 10000:1', 2, r'group\.share: nothing of the batch is left for member 1; give it 0'),
    ('--share 1:1', 2, r"group\.share: '1:1' is of several devices"),
    ('--device basic --share 1:1', 2, r"group\.share: '1:1' is of several devices"),
    (f'{TEAM} --batch adaptive --set train.batch_min=8 --set train.batch_max=64 --steps 5', 2,
     r'train\.batch: adaptive is measured on one device'),
    (f'{TEAM} --set memory.early_updates=yes', 2, r'memory\.early_updates: does not wait for other devices'),
    (' '.join(['--device basic'] * 17), 2, r'--device: more than 16 are named'),
    (f'--set group.devices={"|".join("a" * 17)}', 2, r'group\.devices: more than 16 are named'),
    (f'{TEAM} --budget 0', 2, r"memory\.budget: '0' "),
    (f'{TEAM} --budget 2KB', 2, r"memory\.budget: '2KB' is not a size"),
    (f'{TEAM} --micro-batch 0', 2, r"memory\.micro_batch: '0' is too small"),
    (f'{TEAM} --recompute some', 2, r'member 1: .*no node is called some'),
    ('--budget 8MiB --device basic --budget 7MiB --device basic --budget 7MiB', 2,
     r'--budget: every device has one of its own'),
    (f'--budget-file mlp.ini.budget {TEAM}', 2, r'--budget-file: of several devices it stands behind the'),
    (f'{TEAM} --budget-file nowhere', 2, r'nowhere: No such file'),
    ('--set group.devices=basic|colour=red', 2, r"'colour' is said of no device"),
    ('--device a|b --device basic', 2, r"--device: 'a\|b'"),
    (f'{TEAM} --budget 1KiB', 3, r'member 1: no plan fits 1\.00 KiB .*the smallest budget is \d+ bytes'),
    ('--device basic --device nosuch', 4, r'member 1: no usable OpenCL device matches "nosuch"'),
]


def check_bad(bench):
    (bench.folder / 'mlp.ini.budget').write_text('8MiB')
    for args, code, pattern in BAD:
        check(bench, f'train mlp.ini --quiet --set memory.tune=off {args}', code, pattern)
    for mode, reason in (('contaccum', "the order of one device"), ('whole', 'gradcache has the same gradient')):
        check(bench, f'train retrieve-fashion {TEAM} --set contrastive.mode={mode}', 2,
              rf'contrastive\.mode: .*{reason}')
    check(bench, f'train retrieve-fashion --set contrastive.mode=accumulate {TEAM} --micro-batch 4', 2,
          r'memory\.micro_batch: .*the same on all devices')
    check(bench, f'train mlp.ini {TEAM}', 4, r'member 1: .* is taken already.*group\.same_device',
          POCL_DEVICES='basic')
    bench.good('train', 'mlp.ini', '--quiet', '--steps', 1, *TEAM.split(), '--set', 'memory.tune=off', '--set',
               'group.same_device=yes', POCL_DEVICES='basic')
    check(bench, f'train mlp.ini {TEAM} --shard all', 2, r"group\.shard: 'all'")
    for option in ('--frontier', '--svg x.svg', '--html x.html', '--explain x', '--facts x.json'):
        check(bench, f'plan mlp.ini {TEAM} {option}', 2, rf'plan: {option.split()[0]}: is of one device')
    check(bench, f'eval mlp.ini {TEAM}', 2, r'eval: --device: takes one')
    check(bench, 'resume team1 --steps 60 --budget 1KiB', 2, r'--budget: every device has one of its own')
    for option in ('--micro-batch 8', '--recompute all'):
        check(bench, f'resume one --steps 60 {option}', 2, rf'{option.split()[0]} memory.* is settled when a')
    code, out, _ = bench.run('plan', 'mlp.ini', *ONE, *ONE, '--budget', '1KiB', '--json')
    told = json.loads(out)
    bench.expect(code == 3 and told['budget_bytes'] == 1024 < told['smallest_budget_bytes'], f'{out}')


def main():
    os.environ.update(DEVICES)
    with Bench(sys.argv[1]) as bench:
        shutil.copy(RECIPES / 'fashion-mlp.ini', bench.folder / 'mlp.ini')
        if 'cnn' in sys.argv:
            check_cnn(bench)
            bench.end()
        for part in (check_teams, check_bad, check_same_device, check_plan, check_shard, check_averages, check_shown,
                     check_pairs, check_summary, check_auto, check_recipe, check_again, check_plans, check_evaluation,
                     check_average_figures, check_crossing, check_budget_file, check_signal):
            began = time.time()
            part(bench)
            print(part.__name__, round(time.time() - began, 1), 's')
        if len(sys.argv) > 2:
            check_counted(bench, sys.argv[2])
        bench.end()


if __name__ == '__main__':
    main()
