#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""compare.py PROGRAM: `quern compare` trains each variant once, goes on with what is missing, and its
page and table have the figures of the metrics."""
import hashlib
import json
import math
import os
import re
import shutil
import signal
import statistics
import sys
import time

from pages import Page
from support import TRAIN, Bench

UPDATES = -(-2 * TRAIN // 24)
NAMES = ['micro_batch=24,recompute=none', 'micro_batch=24,recompute=all',
         'micro_batch=8,recompute=none', 'micro_batch=8,recompute=all']
# An even number of updates: their median is between two.
FOUR = ('compare', 'r.ini', '--vary', 'memory.micro_batch=24,8', '--vary',
        'memory.recompute=none, all', '--steps', 16, '--set', 'train.norm_groups=fc1.*, *')


def read(path):
    """(plan, updates, evaluations) of a file of metrics."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return ([row['plan'] for row in rows if 'plan' in row],
            list({row['step']: row for row in rows if 'step' in row}.values()),
            [row['evaluation'] for row in rows if 'evaluation' in row])


def figures(path):
    """What stands in a row of the table, but for bytes."""
    plans, updates, evaluations = read(path)
    seconds = [row['seconds'] for row in updates]
    samples = sum(row['samples'] for row in updates)
    return {'last training loss': updates[-1]['loss'],
            'last test accuracy': evaluations[-1]['test_accuracy'],
            'last test loss': evaluations[-1]['test_loss'],
            'median ms an update': 1000 * statistics.median(seconds),
            'fastest ms an update': 1000 * min(seconds),
            'samples per second': samples / sum(seconds), 'seconds of updates': sum(seconds),
            'updates': len(updates), 'micro-batch': plans[-1]['micro_batch'],
            'recomputed steps': plans[-1]['recomputed_steps']}


def table(page, number=0):
    """{row: {column: cell}}"""
    head, *rows = page.tables[number]
    return {row[0]: dict(zip(head[1:], row[1:])) for row in rows}


def charts(page, title):
    return [chart for chart in page.charts if re.sub(r' \(log.*', '', chart['title']) == title]


def near(text, value, digits=1e-5):
    return text != '' and math.isclose(float(text), value, rel_tol=digits, abs_tol=1e-12)


def summed(updates, key):
    sums, total = [], 0
    for row in updates:
        total += row[key]
        sums.append(total)
    return sums


def same(line, xs, ys):
    return len(line['x']) == len(xs) and all(
        math.isclose(a, b, rel_tol=1e-5) for a, b in zip(line['x'] + line['y'], [*xs, *ys]))


def check_curves(bench, page, name, path, index):
    _, updates, evaluations = read(path)
    for number, key in enumerate(('samples', 'seconds')):
        xs = summed(updates, key)
        line = charts(page, 'training loss')[number]['data']['lines'][index]
        bench.expect(line['name'] == name and same(line, xs, [row['loss'] for row in updates]),
                     f'{name}: loss over {key}')
        line = charts(page, 'test accuracy')[number]['data']['lines'][index]
        bench.expect(same(line, [xs[row['updates'] - 1] for row in evaluations],
                          [row['test_accuracy'] for row in evaluations]), f'{name}: over {key}')
    xs = summed(updates, 'samples')
    for title, values in (('gradient norm', [row['grad_norm'] for row in updates]),
                          ('ratio of gradient norms', [row['grad_norm_ratio'] for row in updates]),
                          ('grad norms: fc1.*', [row['grad_norms']['fc1.*'] for row in updates]),
                          ('grad norms: *', [row['grad_norms']['*'] for row in updates])):
        bench.expect(same(page.chart(title)['data']['lines'][index], xs, values), f'{name}: {title}')


def check_variants(bench):
    """All combinations; every figure of the metrics in the table, on the page and in the lines."""
    out = bench.good(*FOUR, '--out', 'four/', '--html', 'four page.html')
    lines = out.splitlines()
    bench.expect(lines[-1] == 'four page.html' and len(lines) == 4 + 5 + 1, out)
    bench.expect(sorted(path.name for path in (bench.folder / 'four').iterdir()) == sorted(NAMES),
                 'folders')
    page = Page(bench.folder / 'four page.html')
    page.check_alone(bench)
    rows = table(page)
    bench.expect(list(rows) == NAMES, f'{list(rows)}')
    for index, name in enumerate(NAMES):
        path = bench.folder / 'four' / name / 'metrics.jsonl'
        for key, value in figures(path).items():
            bench.expect(near(rows[name][key], value), f'{name}: {key}: {rows[name][key]} {value}')
            shown = re.search(rf'(?m)^{re.escape(name)}: done, .*{key} ([\d.e+-]+)', out)
            if key in lines[4]:
                bench.expect(shown and near(shown[1].rstrip('.'), value, 1e-3), f'{key}: {out}')
        bench.expect(rows[name]['state'] == 'done' and lines[5 + index].startswith(name), f'{lines}')
        check_curves(bench, page, name, path, index)
        recomputed = float(rows[name]['recomputed steps'])
        bench.expect((recomputed > 0) == name.endswith('all') and
                     rows[name]['micro-batch'] == re.search(r'\d+', name)[0], f'{rows[name]}')
    losses = {row['last training loss'] for row in rows.values()}
    bench.expect(len(losses) <= 2, f'recomputing changes the training: {losses}')
    bench.expect('All with train.norm_groups = fc1.*, *' in page.paragraphs, f'{page.paragraphs}')
    check_memory(bench, page)


def check_memory(bench, page):
    """The same bytes by tag as a report of the same trainings, which can be made of the folder."""
    bench.good('report', *(f'four/{name}' for name in NAMES), '--out', 'report.html')
    report = Page(bench.folder / 'report.html')
    told = [{row[0]: row[1] for row in rows[1:]} for rows in report.tables
            if rows[0][0] == 'bytes at the peak']
    found = [rows for rows in page.tables if rows[0][0] == 'bytes at the peak'][0]
    bench.expect(found[0][1:] == NAMES and len(told) == 4 and len(found) > 4, f'{found}')
    for index in range(4):
        for tag, *sizes in found[1:]:
            bench.expect(sizes[index] == told[index].get(tag, '0 bytes'), f'{tag}: {sizes} {told}')
        bench.expect(table(page)[NAMES[index]]['planned peak'] == told[index]['planned peak'], 'peak')


def spread(text):
    mean, _, deviation = text.partition(' ± ')
    return float(mean), float(deviation or 0)


def check_seeds(bench):
    """Mean and standard deviation of the seeds that came to their end, and each of them."""
    out = bench.good('compare', 'r.ini', '--vary', 'train.lr=0.1,0.02', '--seeds', '1,2,3', '--out',
                     'seeds')
    page = Page(bench.folder / 'seeds.html')
    means, runs = table(page, 0), table(page, 1)
    bench.expect(list(means) == ['lr=0.1', 'lr=0.02'] and
                 list(runs) == [f'{name},seed={seed}' for name in means for seed in (1, 2, 3)],
                 f'{list(means)} {list(runs)}')
    for index, (name, row) in enumerate(means.items()):
        files = [bench.folder / 'seeds' / f'{name},seed={seed}' / 'metrics.jsonl'
                 for seed in (1, 2, 3)]
        told = [figures(path) for path in files]
        for key in told[0]:
            values = [figure[key] for figure in told]
            mean, deviation = spread(row[key])
            bench.expect(math.isclose(mean, statistics.mean(values), rel_tol=1e-5) and
                         math.isclose(deviation, statistics.stdev(values), rel_tol=2e-3),
                         f'{name}: {key}: {row[key]}: {values}')
            for seed, value in zip((1, 2, 3), values):
                bench.expect(near(runs[f'{name},seed={seed}'][key], value), f'{name}: {key}')
        losses = [[update['loss'] for update in read(path)[1]] for path in files]
        lines = charts(page, 'training loss')[0]['data']['lines'][4 * index:4 * index + 4]
        bench.expect([line.get('pale', False) for line in lines] == [True] * 3 + [False] and
                     lines[3]['name'] == name and row['state'] == '3 of 3 done', f'{name}: lines')
        bench.expect(same(lines[3], range(24, 24 * UPDATES + 1, 24),
                          list(map(statistics.mean, zip(*losses)))), f'{name}: mean of the losses')
        bench.expect(len(set(map(tuple, losses))) == 3, 'all seeds are the same')
    accuracy = re.search(r'(?m)^lr=0\.02 .*', out)
    bench.expect(accuracy and ' ± ' in accuracy[0], out)
    bench.good('compare', 'r.ini', '--seeds', '1,2', '--steps', 3, '--out', 'alone', '--quiet')
    page = Page(bench.folder / 'alone.html')
    bench.expect(list(table(page)) == ['r.ini'] and list(table(page, 1)) == ['seed=1', 'seed=2'],
                 f'{page.tables[:2]}')


def state(bench, folder):
    return {path: (path.stat().st_mtime_ns, path.stat().st_ino)
            for path in (bench.folder / folder).rglob('*') if path.is_file()}


def digest(folder):
    return hashlib.sha256((folder / 'last/weights.safetensors').read_bytes()).hexdigest()


def check_again(bench):
    """What is done is not trained again; one more seed is."""
    before = state(bench, 'seeds')
    args = ('compare', 'r.ini', '--vary', 'train.lr=0.1,0.02', '--out', 'seeds', '--html', 'a.html')
    out = bench.good(*args, '--seeds', '1,2,3')
    bench.expect(state(bench, 'seeds') == before and out.count(': done, ') == 6, 'trained again')
    bench.expect(Page(bench.folder / 'a.html').tables == Page(bench.folder / 'seeds.html').tables,
                 'another page')
    bench.good(*args, '--seeds', '3,4')
    after = state(bench, 'seeds')
    bench.expect(all(after[path] == before[path] for path in before) and
                 (bench.folder / 'seeds/lr=0.1,seed=4/last').exists(), 'one more seed')
    bench.expect(list(table(Page(bench.folder / 'a.html'), 1)) ==
                 [f'lr={lr},seed={seed}' for lr in (0.1, 0.02) for seed in (3, 4)], 'other runs')


EPOCHS = 24
LONG = ('compare', 'r.ini', '--seeds', '1,2,3', '--epochs', EPOCHS, '--out', 'long')


def wait_for(bench, process, path):
    """Until a training has saved."""
    while process.poll() is None and not (bench.folder / path / 'last').exists():
        time.sleep(0.002)
    time.sleep(0.05)


def check_stopped(bench, states, done):
    """The page of a comparison that was ended; means are of those that came to their end."""
    page = Page(bench.folder / 'long.html')
    told = [row['state'] for row in table(page, 1).values()]
    bench.expect(told == states, f'{told}, not {states}')
    row = table(page)['r.ini']
    losses = [figures(bench.folder / f'long/seed={seed}/metrics.jsonl')['last training loss']
              for seed in range(1, done + 1)]
    bench.expect(row['state'] == f'{done} of 3 done' and math.isclose(
        spread(row['last training loss'])[0], statistics.mean(losses), rel_tol=1e-5), f'{row}')


def check_kill(bench):
    """After a kill: the first stays, the second goes on with the same bits, the third is trained."""
    process = bench.start(*LONG, '--quiet')
    wait_for(bench, process, 'long/seed=2')
    process.kill()
    process.communicate()
    before = state(bench, 'long/seed=1')
    bench.expect(process.returncode == -signal.SIGKILL and before and
                 not (bench.folder / 'long/seed=3').exists(), 'killed too early or too late')
    check_stopped(bench, ['done', 'not trained yet', 'not trained yet'], 1)
    process = bench.start(*LONG)
    wait_for(bench, process, 'long/seed=3')
    process.send_signal(signal.SIGINT)
    out, error = process.communicate()
    bench.expect(process.returncode == 130 and not error and 'the same command goes on' in out,
                 f'{process.returncode} {out} {error}')
    bench.expect(state(bench, 'long/seed=1') == before, 'the first was touched')
    check_stopped(bench, ['done', 'done', 'stopped by a signal'], 2)
    out = bench.good(*LONG)
    bench.expect(out.count(': done, ') == 3, out)
    for seed in (2, 3):
        folder = bench.folder / f'long/seed={seed}'
        plans, updates, _ = read(folder / 'metrics.jsonl')
        bench.expect(len(plans) == 2 and len(updates) == -(-EPOCHS * TRAIN // 24), 'begun anew')
        bench.good('train', 'r.ini', '--seed', seed, '--epochs', EPOCHS, '--out', f'whole{seed}',
                   '--quiet')
        bench.expect(digest(folder) == digest(bench.folder / f'whole{seed}'), 'other weights')


def check_plans(bench):
    """A variant for which no plan fits is told, the others go on; status 3: none fits."""
    args = ('compare', 'r.ini', '--vary', 'memory.budget=1KiB,4MiB', '--seeds', '1,2', '--steps', 5,
            '--out', 'plans')
    for _ in range(2):
        out = bench.good(*args)
        bench.expect(re.search(r'(?m)^budget=1KiB +no plan fits; the smallest budget is \S+ KiB$',
                               out), out)
        page = Page(bench.folder / 'plans.html')
        bench.expect([row['state'] for row in table(page).values()] ==
                     ['0 of 2 done', '2 of 2 done'], f'{page.tables[0]}')
        row = table(page, 1)['budget=1KiB,seed=1']
        bench.expect(row.pop('state') == 'no plan fits' and not any(row.values()), f'{row}')
        bench.expect(any(re.match('budget=1KiB: no plan fits; the smallest', text)
                         for text in page.paragraphs), f'{page.paragraphs}')
    code, out, error = bench.run('compare', 'r.ini', '--seeds', '1,2', '--budget', '1KiB', '--out',
                                 'none')
    bench.expect(code == 3 and error.count('\n') == 1 and 'no plan fits' in error, f'{code} {error}')
    bench.good('compare', 'r.ini', '--seeds', '1,2', '--budget', '4MiB', '--out', 'none', '--steps',
               3, '--quiet')


PAIRS = """[contrastive]
dim = 16
bank = 24
[model]
name = mlp
hidden1 = 32
[data]
path = {data}
pairs = halves
[train]
batch = 24
steps = 8
optimizer = sgd
lr = 0.1
[memory]
micro_batch = 8
budget = 4MiB
tune = off
"""


def check_modes(bench):
    """The ways of training a dual encoder, with the ratio of both towers and what only one has."""
    bench.recipe('pairs.ini', PAIRS)
    modes = ['whole', 'gradcache', 'accumulate', 'contaccum']
    bench.good('compare', 'pairs.ini', '--modes', ','.join(modes), '--out', 'modes', '--quiet')
    page = Page(bench.folder / 'modes.html')
    names = [f'mode={mode}' for mode in modes]
    rows = table(page)
    bench.expect(list(rows) == names, f'{list(rows)}')
    for name in names:
        last = read(bench.folder / 'modes' / name / 'metrics.jsonl')[2][-1]
        bench.expect(near(rows[name]['last test mrr'], last['test_mrr']) and
                     near(rows[name]['last test recall 10'], last['test_recall_10']), f'{rows[name]}')
    for title, lines in (('ratio of gradient norms', names), ('grad norms: query.*', names),
                         ('local loss', names[3:])):
        chart = page.chart(title)
        bench.expect(chart and len(chart['data']['lines']) == len(lines), f'{title}: {chart}')
    bench.expect(len(charts(page, 'test mrr')) == 2, 'MRR over samples and seconds')


def check_names(bench):
    """Values are text on the page; the folders of long and odd ones differ."""
    evil = [f'<script>alert({i})</script>, {"x" * 120}' for i in range(2)]
    for name in evil:
        (bench.folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(bench.folder / 'data', bench.folder / name)
    bench.good('compare', 'r.ini', '--vary', 'data.path=' + '|'.join(evil), '--vary',
               'data.name=a,b', '--vary', 'model.name=mlp', '--steps', 2, '--out', 'odd', '--quiet')
    folders = [path.name for path in (bench.folder / 'odd').iterdir()]
    bench.expect(len(folders) == 4 and all(re.fullmatch(r'path=_script_alert[\w,=-]+', name)
                                           for name in folders), f'{folders}')
    page = Page(bench.folder / 'odd.html')
    bench.expect(page.tags.count('script') == len(page.charts) + 1, 'scripts')
    bench.expect(list(table(page)) == [f'path={name},data.name={second},model.name=mlp' for name in evil
                                       for second in 'ab'], f'{list(table(page))}')


def check_drift(bench):
    """The newest drift by age, and none of older ones."""
    path = bench.folder / 'four' / NAMES[1] / 'metrics.jsonl'
    old = [{'age': age, 'queries': 0.5, 'passages': 0.5} for age in range(9)]
    new = [{'age': age, 'queries': 1 - age / 50, 'passages': 1 - age / 25, 'entries': 8}
           for age in (0, 1, 4)]
    with path.open('a') as file:
        for update, ages in ((3, old), (9, new)):
            file.write(json.dumps({'drift': {'update': update, 'ages': ages}}) + '\n')
    bench.good(*FOUR, '--out', 'four', '--quiet')
    page = Page(bench.folder / 'four.html')
    for key in ('queries', 'passages'):
        chart = page.chart(f'drift of {key}: mean cosine')
        bench.expect(chart and len(chart['data']['lines']) == 1 and
                     same(chart['data']['lines'][0], [0, 1, 4], [row[key] for row in new]), f'{key}')
    bench.expect(len(page.tables[0]) == 5 and not charts(page, 'entries'), 'more than drift')


BAD = [
    ('r.ini', 2, r'compare: one training alone: --vary, --modes or --seeds with two values'),
    ('r.ini --seeds 1', 2, r'compare: one training alone'),
    ('r.ini --vary train.lr=1', 2, r'compare: one training alone'),
    ('--seeds 1,2', 2, r'compare: needs a RECIPE'),
    ('r.ini --vary train.lr', 2, r'--vary: .train\.lr. is not section\.key=value,value'),
    ('r.ini --vary =1,2', 2, r'--vary: .=1,2. is not section\.key=value,value'),
    ('r.ini --vary lr=1,2', 2, r'--vary: .lr. is not section\.key'),
    ('r.ini --vary train.lr=1,2,1', 2, r'--vary: train\.lr: is given twice: 1'),
    ('r.ini --vary train.lr=1,,2', 2, r'--vary: train\.lr: a value is empty'),
    ('r.ini --vary train.lr=1|', 2, r'--vary: train\.lr: a value is empty'),
    ('r.ini --vary train.lr=0.1,0', 2, r'--vary: train\.lr: .0. is too small'),
    ('r.ini --vary train.rate=1,2', 2, r'--vary: train\.rate: unknown key'),
    ('r.ini --vary train.lr=1,2 --vary train.lr=3,4', 2, r'--vary: train\.lr: is varied twice'),
    ('r.ini --vary train.seed=1,2 --seeds 3,4', 2, r'--seeds: train\.seed: is varied twice'),
    ('r.ini --vary train.batch=8,16 --batch 4', 2, r'--vary: train\.batch: --batch sets it, too'),
    ('r.ini --seeds 1,2 --seed 3', 2, r'--seeds: train\.seed: --seed sets it, too'),
    ('r.ini --seeds 1,two', 2, r'--seeds: train\.seed: .two. is not a whole number'),
    ('r.ini --vary model.hidden1=8,-1', 2, r'--vary: model\.hidden1: .-1. is not'),
    ('r.ini --vary model.depth=8,9', 2, r'--vary: model\.depth: no such key'),
    ('r.ini --vary model.hidden1=1,2,3,4,5,6 --seeds 1,2,3,4,5,6', 2,
     r'compare: all combinations are more than 32 trainings'),
    ('r.ini --seeds 1,2 --metrics m.json', 2, r'compare: --metrics: unknown option'),
    ('r.ini --seeds 1,2 --out=', 2, r'--out: needs the name of a folder'),
    ('r.ini --seeds 1,2 --html=', 2, r'--html: needs the name of a file'),
    ('r.ini --seeds 1,2 --out nowhere/x', 1, r'nowhere/x: No such file or directory'),
    ('r.ini --seeds 1,2 --out r.ini', 1, r'r\.ini: '),
    ('r.ini --seeds 1,2 --device nonesuch', 4, r'--device: .*nonesuch'),
    ('r.ini --vary memory.recompute=none,some', 2, r'recompute=some: .*no node is called some'),
    ('pairs.ini --modes whole,some', 2, r'--modes: contrastive\.mode: .some. is not one of them'),
    ('pairs.ini --modes whole,contaccum --set contrastive.bank=4', 2, r'.*contrastive\.bank: is smaller'),
    ('nonesuch --seeds 1,2', 2, r'nonesuch: recipe: no file of that name'),
]


def check_bad(bench):
    """One line before any training, and nothing is left."""
    for args, code, pattern in BAD:
        before = sorted(bench.folder.rglob('*'))
        got, out, error = bench.run('compare', *args.split())
        name = f'{args}: {got}: {error.strip()}'
        bench.expect(got == code and not out and re.fullmatch(f'quern: {pattern}.*\n', error), name)
        bench.expect(sorted(bench.folder.rglob('*')) == before, f'{name}: leaves something')
    for count in (9, 40):
        args = [f'--vary=train.k{i}=1' for i in range(9)] if count == 9 else \
            ['--vary', 'train.lr=' + ','.join(map(str, range(1, 40)))]
        code, _, error = bench.run('compare', 'r.ini', *args)
        bench.expect(code == 2 and error.count('\n') == 1 and 'more than' in error, error)
    check_others(bench)


def check_others(bench):
    """Folders that hold something else."""
    changed = ('compare', 'r.ini', '--vary', 'train.lr=0.1,0.02', '--seeds', '1,2', '--out', 'seeds')
    before = state(bench, 'seeds')
    for args, pattern in (
            (('--clip', 1), r'compare: --clip: unknown option'),
            (('--set', 'train.clip=1'), r'was trained without train\.clip; name another folder'),
            (('--batch', 12), r'was trained with train\.batch = 24, not 12; name another'),
            (('--steps', 3), r'was trained without train\.steps')):
        code, out, error = bench.run(*changed, *args)
        bench.expect(code == 2 and not out and re.fullmatch(f'quern: .*{pattern}.*\n', error), error)
    bench.good('train', 'r.ini', '--steps', 2, '--out', 'foreign', '--quiet')
    (bench.folder / 'mixed').mkdir()
    (bench.folder / 'foreign').rename(bench.folder / 'mixed/seed=1')
    code, out, error = bench.run('compare', 'r.ini', '--seeds', '0,1', '--out', 'mixed')
    bench.expect(code == 2 and not out and
                 re.fullmatch(r'quern: mixed/seed=1: holds a training that no comparison.*\n', error),
                 error)
    bench.expect(not (bench.folder / 'mixed/seed=0').exists() and state(bench, 'seeds') == before,
                 'something was trained')
    shutil.rmtree(bench.folder / 'mixed/seed=1')
    args = ('compare', 'r.ini', '--seeds', '0,1', '--steps', 2, '--out', 'mixed', '--html', 'm.html')
    os.rename(bench.folder / 'data', bench.folder / 'gone')
    code, out, error = bench.run(*args, '--set', 'data.shape=1,8,8', '--set', 'data.classes=3')
    bench.expect(code == 1 and not out and re.fullmatch('quern: seed=0: .*missing.*\n', error),
                 f'{code} {error}')
    os.rename(bench.folder / 'gone', bench.folder / 'data')
    bench.good(*args, '--quiet')


def main():
    with Bench(sys.argv[1]) as bench:
        check_variants(bench)
        check_seeds(bench)
        check_again(bench)
        check_kill(bench)
        check_plans(bench)
        check_modes(bench)
        check_names(bench)
        check_drift(bench)
        check_bad(bench)
        bench.end()


if __name__ == '__main__':
    main()
