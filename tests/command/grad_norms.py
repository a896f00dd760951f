#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""grad_norms.py PROGRAM: --log-grad-norms and train.norm_groups: the norms of groups of parameters
are in the metrics, the events and the report, and change no number of the training."""
import hashlib
import json
import math
import sys

from pages import Page
from support import TRAIN, Bench
from tensorboard import scalars, single

UPDATES = -(-2 * TRAIN // 24)
LAYERS = ['fc1', 'fc']
TOWERS = 'fc1.*, *'


def updates(bench, name):
    rows = map(json.loads, (bench.folder / name).read_text().splitlines())
    return [row for row in rows if 'step' in row]


def digest(bench, out):
    return hashlib.sha256((bench.folder / out / 'last/weights.safetensors').read_bytes()).digest()


def expect_whole(bench, rows, names, what):
    """Each update has these groups, which together are all parameters."""
    for row in rows:
        norms = row.get('grad_norms', {})
        bench.expect(list(norms) == names, f'{what}: {row}')
        bench.expect(math.isclose(math.hypot(*norms.values()), row['grad_norm'], rel_tol=1e-5),
                     f'{what}: {row}')


def check_layers(bench):
    bench.good('train', 'r.ini', '--quiet', '--out', 'plain')
    bench.good('train', 'r.ini', '--quiet', '--out', 'layers', '--log-grad-norms')
    with_norms, without = updates(bench, 'layers/metrics.jsonl'), updates(bench, 'plain/metrics.jsonl')
    bench.expect(len(with_norms) == UPDATES, f'{len(with_norms)} updates')
    expect_whole(bench, with_norms, LAYERS, 'layers')
    bench.expect(not any('grad_norms' in row for row in without), 'nobody asked')
    bench.expect(not any('grad_norm_ratio' in row for row in with_norms), 'layers are no pair')
    bench.expect([row['loss'] for row in with_norms] == [row['loss'] for row in without] and
                 digest(bench, 'layers') == digest(bench, 'plain'), 'another training')


def check_towers(bench):
    """Two groups of the recipe have a ratio; the option leaves them as they are."""
    bench.recipe('towers.ini', (bench.folder / 'r.ini').read_text().replace(
        '[memory]', f'norm_groups = {TOWERS}\n[memory]').replace('{', '{{').replace('}', '}}'))
    bench.good('train', 'towers.ini', '--quiet', '--out', 'towers', '--tensorboard', 'logs',
               '--log-grad-norms')
    rows = updates(bench, 'towers/metrics.jsonl')
    expect_whole(bench, rows, ['fc1.*', '*'], 'towers')
    found = scalars(bench, 'logs')
    for row in rows:
        first, second = row['grad_norms'].values()
        bench.expect(math.isclose(row['grad_norm_ratio'], second / first, rel_tol=1e-9), f'{row}')
        for tag, value in (('grad_norms/fc1.*', first), ('grad_norms/*', second),
                           ('train/grad_norm_ratio', row['grad_norm_ratio'])):
            bench.expect((row['step'] + 1, single(value)) in found.get(tag, []), f'{tag}: {row}')
    bench.expect(sum(map(len, found.values())) == 7 * UPDATES + 2 * 2, f'{found.keys()}')
    plan = json.loads((bench.folder / 'towers/metrics.jsonl').read_text().splitlines()[0])['plan']
    bench.expect(plan['norm_groups'] == ['fc1.*', '*'], f'{plan}')
    bench.good('eval', 'towers')
    bench.good('eval', 'towers.ini', '--weights', 'towers/last')
    bench.good('plan', 'towers.ini')


def check_report(bench):
    """Of check_towers: its curves."""
    bench.good('report', 'towers', '--out', 'page.html')
    page = Page(bench.folder / 'page.html')
    rows = updates(bench, 'towers/metrics.jsonl')
    chart = page.chart('grad norms')
    bench.expect(chart, f'{[c["title"] for c in page.charts]}')
    drawn = chart['data']['lines'] if chart else []
    bench.expect([line['name'] for line in drawn] == ['fc1.*', '*'], f'{drawn}')
    for line in drawn:
        bench.expect(line['x'] == [row['step'] + 1 for row in rows] and
                     all(math.isclose(y, row['grad_norms'][line['name']], rel_tol=1e-5)
                         for y, row in zip(line['y'], rows)), f'{line}')
    ratio = page.chart('ratio of gradient norms')
    bench.expect(ratio and all(math.isclose(y, row['grad_norm_ratio'], rel_tol=1e-5) for y, row in
                               zip(ratio['data']['lines'][0]['y'], rows)), f'{ratio}')


def check_resume(bench):
    """They go on with the training, or begin where it goes on, by a plan of the same numbers."""
    bench.good('train', 'r.ini', '--quiet', '--out', 'part', '--steps', 8, '--log-grad-norms')
    bench.good('resume', 'part', '--quiet', '--steps', UPDATES)
    expect_whole(bench, updates(bench, 'part/metrics.jsonl'), LAYERS, 'gone on')
    for options in ((), ('--log-grad-norms',)):
        bench.good('resume', 'layers/update-00000009', '--quiet', '--out', f'again{len(options)}',
                   *options)
        expect_whole(bench, updates(bench, f'again{len(options)}/metrics.jsonl'), LAYERS, 'again')
        bench.expect(digest(bench, f'again{len(options)}') == digest(bench, 'plain'), 'again')
    bench.good('resume', 'plain/update-00000009', '--quiet', '--out', 'late', '--log-grad-norms')
    rows = updates(bench, 'late/metrics.jsonl')
    bench.expect([row['step'] for row in rows] == list(range(9, UPDATES)), f'{rows}')
    expect_whole(bench, rows, LAYERS, 'late')
    bench.expect(digest(bench, 'late') == digest(bench, 'plain'), 'late: another training')
    bench.good('resume', 'late', '--quiet', '--epochs', 3)
    expect_whole(bench, updates(bench, 'late/metrics.jsonl'), LAYERS, 'later')


def check_wrong(bench):
    for groups, why in (('fc1.*, fc9.*', "'fc9.*' matches no trained parameter"),
                        ('*, fc1.*', "'fc1.*' matches no trained parameter that no pattern before")):
        code, out, error = bench.run('train', 'r.ini', '--quiet', '--set',
                                     f'train.norm_groups={groups}', '--out', 'wrong')
        bench.expect(code == 2 and not out and error.count('\n') == 1 and 'norm_groups' in error
                     and why in error, f'{code}: {error}')
    bench.expect(not (bench.folder / 'wrong').exists(), 'a folder of nothing')


def main():
    with Bench(sys.argv[1]) as bench:
        check_layers(bench)
        check_towers(bench)
        check_report(bench)
        check_resume(bench)
        check_wrong(bench)
        bench.end()


if __name__ == '__main__':
    main()
