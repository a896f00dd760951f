#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""report.py PROGRAM: the page of `quern report` has the figures of the metrics, needs no network,
takes names as text, and is small and soon there for a long training."""
import json
import math
import os
import re
import resource
import sys

from pages import Page
from support import TRAIN, Bench

UPDATES = -(-2 * TRAIN // 24)
EVIL = '<script>alert(1)</script>'
MOST_BYTES, MOST_SECONDS, LONG = 2 << 20, 2, 100000


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def report(bench, *operands):
    out = bench.good('report', *operands, '--out', 'page.html')
    bench.expect(out == 'page.html\n', out)
    return Page(bench.folder / 'page.html')


def near(a, b):
    return (a is None and b is None) or math.isclose(a, b, rel_tol=1e-5)


def same(line, points):
    return len(line['x']) == len(points) and all(
        x == update and near(y, value) for x, y, (update, value)
        in zip(line['x'], line['y'], points))


def update(step, **changes):
    return {'step': step, 'loss': 1 / (step + 1), 'lr': 0.1, 'grad_norm': 1.0, 'samples': 8,
            'seconds': 0.5, **changes}


def write(bench, name, rows, end='\n'):
    (bench.folder / name).write_text('\n'.join(
        row if isinstance(row, str) else json.dumps(row) for row in rows) + end)


def check_figures(bench, page, path, column=0):
    """Every figure of the file is on the page."""
    rows = lines(path)
    updates = [row for row in rows if 'step' in row]
    evaluations = {row['evaluation']['updates']: row['evaluation'] for row in rows
                   if 'evaluation' in row}
    for key, title in (('loss', 'training loss'), ('lr', 'learning rate'),
                       ('grad_norm', 'gradient norm')):
        points = [(row['step'] + 1, row[key]) for row in updates]
        bench.expect(same(page.chart(title)['data']['lines'][column], points), f'{path}: {title}')
    for key, title in (('test_accuracy', 'test accuracy'), ('test_loss', 'test loss')):
        points = [(at, row[key]) for at, row in evaluations.items()]
        bench.expect(same(page.chart(title)['data']['lines'][column], points), f'{path}: {title}')
        bench.expect(near(float(page.fact(f'last {title}')[column]), points[-1][1]), title)
    speeds = [(row['step'] + 1, row['samples'] / row['seconds']) for row in updates]
    bench.expect(same(page.chart('samples per second')['data']['lines'][column], speeds), 'speeds')
    bench.expect(near(float(page.fact('last training loss')[column]), updates[-1]['loss']), 'last')
    bench.expect(page.fact('updates')[column] == str(len(updates)), f'{page.fact("updates")}')
    bench.expect(page.fact('samples')[column] == str(sum(row['samples'] for row in updates)), 'sum')


def check_training(bench):
    """quern train --out and quern report, after a resumption too, and two side by side."""
    bench.good('train', 'r.ini', '--quiet', '--out', 'run', '--profile', 'p.json')
    path = bench.folder / 'run/metrics.jsonl'
    plan, environment = lines(path)[:2]
    page = report(bench, 'run')
    check_figures(bench, page, path)
    bench.expect(page.titles == ['Trainings', 'Curves', 'Memory', 'Time'], f'{page.titles}')
    for name, value in (('state', 'done'), ('recipe', 'r.ini'), ('plan', plan['plan']['hash']),
                        ('device', plan['plan']['device']), ('budget', '4 MiB'),
                        ('quern', environment['environment']['quern']),
                        ('driver', environment['environment']['driver'])):
        bench.expect(page.fact(name) == [value], f'{name}: {page.fact(name)}')
    bench.expect(re.fullmatch(r'20\d\d-\d\d-\d\d \d\d:\d\d UTC', page.fact('begun')[0]), 'begun')
    bench.expect('data:image/svg+xml;base64,' in page.text, 'no picture of the plan')
    kinds = {row[0]: row[1] for table in page.tables if table[0][0] == 'steps of one update'
             for row in table[1:]}
    seconds = next(row['profile']['seconds'] for row in lines(path) if 'profile' in row)
    bench.expect(kinds.keys() == seconds.keys() >= {'forward', 'backward', 'update'}, f'{kinds}')
    bench.expect(all(math.isclose(float(kinds[key]), seconds[key], rel_tol=0.01)
                     for key in kinds), f'{kinds}')
    bench.good('resume', 'run', '--quiet', '--epochs', 3, '--metrics', 'rest.json')
    bench.expect(len(lines(bench.folder / 'rest.json')) < len(lines(path)), 'the same twice')
    page = report(bench, 'run')
    check_figures(bench, page, path)
    bench.expect(page.fact('updates') == [str(3 * TRAIN // 24)] and page.fact('recipe') == ['r.ini'],
                 f'{page.fact("updates")} {page.fact("recipe")}')
    bench.expect('run: resumed with train.epochs = 3.' in page.paragraphs, f'{page.paragraphs}')
    bench.good('train', 'r.ini', '--quiet', '--seed', 5, '--metrics', 'm.json')
    page = report(bench, 'run', 'm.json', 'run/metrics.jsonl')
    for column, name in enumerate(('run/metrics.jsonl', 'm.json', 'run/metrics.jsonl')):
        check_figures(bench, page, bench.folder / name, column)
    bench.expect(page.text.count('data:image/svg+xml') == 2, 'pictures')
    bench.good('train', 'r.ini', '--quiet', '--out', 'both', '--steps', 3, '--metrics',
               'both.json')
    bench.expect(lines(bench.folder / 'both.json') == lines(bench.folder / 'both/metrics.jsonl'),
                 '--metrics and the folder differ')
    os.mkdir(bench.folder / 'one')
    bench.good('train', 'r.ini', '--quiet', '--out', 'one', '--steps', 3, '--metrics',
               'one/../one/metrics.jsonl')
    bench.expect([row['step'] for row in lines(bench.folder / 'one/metrics.jsonl')
                  if 'step' in row] == [0, 1, 2], 'a line twice')


def check_alone(bench):
    """Nothing comes from elsewhere, and nothing from outside is markup."""
    (bench.folder / 'run').rename(bench.folder / '<img src=x onerror=alert(1)>')
    write(bench, 'evil.json', [
        {'plan': {'device': EVIL, 'hash': '"><b>', 'bytes_by_tag': {EVIL: 5},
                  'phases': [{'name': EVIL, 'steps': []}]}},
        {'changed': {EVIL: EVIL}},
        *(update(i, **{EVIL: i, 'grad_norms': {EVIL: 1.0, '\x1b[2J\u202e': i}}) for i in range(3)),
        {'evaluation': {'updates': 3, '</figure>': 1.0}}])
    page = report(bench, 'evil.json', '<img src=x onerror=alert(1)>')
    bench.expect(page.tags.count('script') == len(page.charts) + 1, 'scripts')
    bench.expect('b' not in page.tags or page.text.count('<b>') == 0, 'an element from outside')
    bench.expect(page.tags.count('img') == 1 and 'alert(1)' in page.text, 'a picture from outside')
    bench.expect([page.chart(title) is not None for title in
                  (EVIL, '</figure>', 'grad norms: evil.json')] == [True] * 3, f'{[chart["title"] for chart in page.charts]}')
    names = [line['name'] for line in page.chart('grad norms: evil.json')['data']['lines']]
    bench.expect(names == [EVIL, r'\x1b[2J\xe2\x80\xae'], f'{names}')
    page.check_alone(bench)


def check_curves(bench):
    """Gaps, a training that went back, and spikes that stay."""
    write(bench, 'gap.json', [update(i, **({'loss': None} if i == 2 else {})) for i in range(5)])
    page = report(bench, 'gap.json')
    bench.expect(page.chart('training loss')['data']['lines'][0]['y'][2] is None, 'no gap')
    bench.expect(page.fact('state') == ['under way, or was killed'], f'{page.fact("state")}')
    back = [*map(update, range(10)), {'evaluation': {'updates': 10, 'test_loss': 7.0}},
            *(update(i, loss=5.0) for i in range(6, 9)), '{"step":9,"lo']
    write(bench, 'back.json', back, end='')
    page = report(bench, 'back.json')
    points = [(i + 1, 5.0 if i > 5 else 1 / (i + 1)) for i in range(9)]
    bench.expect(same(page.chart('training loss')['data']['lines'][0], points), 'a training that went back')
    bench.expect(page.chart('test loss') is None, 'an evaluation that is gone over again')
    bench.expect(any(re.match(r'back\.json: line 15 of the metrics is not whole', text)
                     for text in page.paragraphs), f'{page.paragraphs}')
    write(bench, 'whole.json', back[:11])
    page = report(bench, 'back.json', 'whole.json')
    bench.expect([line['x'] for line in page.chart('test loss')['data']['lines']] == [[10]],
                 'a line without points')
    for odd in (1e300, -1e300, 1e-300, 5e-324, 0, 1e15):
        write(bench, 'odd.json', [update(i, loss=odd * (1 + i * 1e-16), grad_norm=odd * (i - 1))
                                  for i in range(3)])
        report(bench, 'odd.json')


def check_drift(bench):
    """The newest drift of each training by age, and none of older ones."""
    ages = {'old': [(age, 0.5) for age in range(9)], 'one': [(0, 1.0), (24, 0.9), (48, 0.7)],
            'two': [(0, 1.0), (16, 0.8)]}
    drift = {name: {'drift': {'update': 2, 'ages': [
        {'age': age, 'entries': 3, 'queries': cosine, 'passages': cosine / 2} for age, cosine in of]}}
             for name, of in ages.items()}
    write(bench, 'one.json', [update(0), drift['old'], update(1), drift['one']])
    write(bench, 'two.json', [update(0), drift['two']])
    page = report(bench, 'one.json', 'gap.json', 'two.json')
    for key, factor in (('queries', 1), ('passages', 0.5)):
        chart = page.chart(f'drift of {key}: mean cosine')
        bench.expect(chart and f'drift of {key}: mean cosine over age in samples 0 to 48' in page.text, f'{key}: {chart}')
        for line, name in zip(chart['data']['lines'], ('one', 'two'), strict=True):
            bench.expect(line['name'] == f'{name}.json' and
                         same(line, [(age, cosine * factor) for age, cosine in ages[name]]), f'{line}')
    bench.expect(page.chart('entries') is None and page.chart('queries') is None, 'more than drift')


def check_long(bench):
    """The gate: 100,000 updates."""
    with (bench.folder / 'long.json').open('w') as file:
        for i in range(LONG):
            file.write(json.dumps(update(i, loss=90.0 if i == 77777 else -80.0 if i == 4321 else
                                         2 + (i * 7919 % 1000) / 1000)) + '\n')
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    page = report(bench, 'long.json')
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    size = (bench.folder / 'page.html').stat().st_size
    print(f'{LONG} updates: {size} bytes in {spent:.2f} s')
    bench.expect(size <= MOST_BYTES and spent <= MOST_SECONDS, f'{size} bytes in {spent:.2f} s')
    line = page.chart('training loss')['data']['lines'][0]
    points = dict(zip(line['x'], line['y']))
    bench.expect(points.get(77778) == 90 and points.get(4322) == -80, 'a spike is lost')
    bench.expect(400 < len(points) <= 800, f'{len(points)} points')
    bench.expect(page.fact('updates') == [str(LONG)] and
                 page.fact('samples per second') == ['16'], f'{page.tables[0]}')
    table = page.tables[1]
    bench.expect(len(table) == 21 and table[1] == ['1', '2'] and table[-1][0] == str(LONG),
                 f'{table}')


BAD = [
    ('', r'bad\.json: is empty'),
    ('{"old": 1}\n', r'bad\.json: no metrics of a training: neither a plan nor an update'),
    ('{"step":0,"lo\n', r'bad\.json:1: not JSON'),
    ('[1]\n', r'bad\.json:1: not one JSON object'),
    ('{GOOD}\n\n', r'bad\.json:2: not JSON'),
    ('{GOOD}\n{GOOD} {GOOD}\n', r'bad\.json:2: not one JSON object'),
    ('{GOOD}\n{"step":-1}\n', r'bad\.json:2: step: not a whole number from 0 on'),
    ('{"step":1e99}\n', r'bad\.json:1: step: not a whole number'),
    ('{"step":1}\n', r'bad\.json:1: loss: is missing'),
    ('{"step":1,"loss":"\\u001b"}\n', r'bad\.json:1: loss: not a number'),
    ('{"evaluation":3}\n', r'bad\.json:1: evaluation: not an object'),
    ('{"evaluation":{}}\n', r'bad\.json:1: updates: is missing'),
    ('{"drift":3}\n', r'bad\.json:1: drift: ages: not a list of objects'),
    ('{"drift":{"ages":[1]}}\n', r'bad\.json:1: drift: ages: not a list of objects'),
    ('{"drift":{"ages":[{"age":-1}]}}\n', r'bad\.json:1: age: not a whole number from 0 on'),
    ('{"drift":{"ages":[{"age":2},{"age":2}]}}\n', r'bad\.json:1: age: not above the one before'),
    ('{"plan":3}\n', r'bad\.json:1: plan: not an object'),
    ('{"evaluation":{"updates":1,"' + 'a' * 128 + '":1}}\n', r'bad\.json:1: a name of more than'),
    ('{"evaluation":{"updates":1,' + ','.join(f'"k{i}":1' for i in range(257)) + '}}\n',
     r'bad\.json:1: k256: more figures than a report has room for'),
]


def check_bad(bench):
    kept = bench.folder / 'kept.html'
    kept.write_text('older')
    cases = [(text.replace('{GOOD}', json.dumps(update(0))), want) for text, want in BAD]
    for text, want in cases:
        (bench.folder / 'bad.json').write_text(text)
        code, out, error = bench.run('report', 'gap.json', 'bad.json', '--out', 'kept.html')
        bench.expect(code == 1 and not out and re.fullmatch(f'quern: {want}.*\n', error),
                     f'{want}: {code} {error}')
    (bench.folder / 'bare').mkdir()
    for args, code, want in (
            (['nowhere'], 1, r'nowhere: No such file or directory'),
            (['bare'], 1, r'bare: holds no metrics\.jsonl; name the folder of a training, or the file'),
            ([], 2, r'report: needs a DIR\|FILE\.\.\.'),
            (['gap.json'] * 33, 2, 'report: more than 32 trainings'),
            (['gap.json', '--out', 'nowhere/r.html'], 1, r'nowhere/r\.html: No such file')):
        got, out, error = bench.run('report', *args)
        bench.expect(got == code and not out and re.fullmatch(f'quern: {want}.*\n', error),
                     f'{args}: {got} {error}')
    bench.expect(kept.read_text() == 'older' and not (bench.folder / 'report.html').exists() and
                 not list(bench.folder.glob('kept.html.*')), 'a page half-written')


def main():
    with Bench(sys.argv[1]) as bench:
        check_training(bench)
        check_alone(bench)
        check_curves(bench)
        check_drift(bench)
        check_long(bench)
        check_bad(bench)
        bench.end()


if __name__ == '__main__':
    main()
