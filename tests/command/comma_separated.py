#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""comma_separated.py PROGRAM: a small perceptron learns numbers, classes, and zeros and ones from CSV
files, and what is wrong with such files."""
import json
import random
import struct
import sys

from bad_input import check
from support import Bench
from text import digest, train

ROWS, HELD = 400, 80
RECIPE = """[model]
name = mlp
hidden1 = 48
hidden2 = 0
[data]
kind = csv
path = numbers.csv
target = sum, square
standardize = yes
held_out = 0.2
[train]
batch = 16
epochs = 30
optimizer = adam
lr = 0.01
schedule = cosine
eval_every = 0
[memory]
budget = 16MiB
tune = off
"""
GOOD = 'a,b,sum,square,kind\n' + '1,2,3,1,"x, y"\n' * 9


def sets(*pairs):
    return [part for pair in pairs for part in ('--set', pair)]


def write(bench, name, header, rows):
    (bench.folder / name).write_text(header + '\n' + ''.join(','.join(map(str, row)) + '\n' for row in rows))


def make_rows():
    """a, b far from 0, and what follows from both: two numbers, a class, whether each of two classes is there."""
    draw = random.Random(4)
    for _ in range(ROWS):
        a, b = draw.uniform(-2, 2), draw.uniform(300, 500)
        c = (b - 400) / 50
        kind = '"far, out"' if a * a + c * c > 2.6 else 'near'
        yield [f'{a:.6f}', f'{b:.4f}', f'{2 * a + c:.6f}', f'{a * a - c:.6f}', kind, int(a > 0), int(c > 0.5)]


def check_regression(bench):
    """R2 above 0.99, and only as the features are standardised; figures are those of both targets together."""
    losses, summary = train(bench, '--out', 'numbers')
    print(f"numbers: loss {losses[0]:.3f} -> {losses[-1]:.4f}, R2 {summary['test_r2']:.4f}")
    bench.expect(summary['test_r2'] > 0.99 and summary['test_samples'] == HELD, f'{summary}')
    bench.expect(abs(summary['test_mse'] - summary['test_loss']) < 1e-6 and 'test_accuracy' not in summary and
                 summary['test_mse'] ** 0.5 >= summary['test_mae'] > 0, f'{summary}')
    _, raw = train(bench, *sets('data.standardize=no'))
    bench.expect(raw['test_r2'] < 0.9, f'{raw}')
    _, other = train(bench, *sets('model.loss=absolute_error', 'train.best=mae'))
    bench.expect(other['test_r2'] > 0.98 and abs(other['test_mae'] - other['test_loss']) < 1e-6, f'{other}')
    _, parted = train(bench, *sets('data.validation=0.25', 'train.best=r2'))
    bench.expect(parted['validation'] and parted['test_samples'] == (ROWS - HELD) // 4 and
                 parted['test_r2'] > 0.97, f'{parted}')


def check_kept(bench, rows):
    """What a checkpoint keeps standardises other files, whose columns may stand elsewhere."""
    told = json.loads(bench.good('eval', 'numbers', '--json'))
    turned = [['no number', row[3], row[2], row[1], row[0]] for row in rows[-HELD:]]
    write(bench, 'turned.csv', 'note,square,sum,b,a', turned)
    other = json.loads(bench.good('eval', 'numbers', '--json', *sets('data.test_path=turned.csv')))
    bench.expect(other['test_mse'] == told['test_mse'] and other['test_r2'] == told['test_r2'], f'{told} {other}')


def check_resumed(bench, rows):
    """Half a training and the other half are the whole one."""
    steady = ('--quiet', '--set', 'train.schedule=constant')
    bench.good('train', 't.ini', *steady, '--steps', 30, '--out', 'one')
    bench.good('train', 't.ini', *steady, '--steps', 15, '--out', 'two')
    bench.good('resume', 'two', '--quiet', '--steps', 30)
    bench.expect(digest(bench, 'one') == digest(bench, 'two'), 'resumed')
    path = bench.folder / 'numbers.csv'
    text = path.read_text()
    path.write_text(text.replace(rows[0][0], '1.5'))
    check(bench, 'resume two --steps 40', 1, 'two: data: not the samples this training began with')
    path.write_text(text)


def check_classes(bench, rows):
    kinds = [row[4].strip('"') for row in rows[-HELD:]]
    few = sets('data.label=kind', 'data.features=a, "b"')
    _, summary = train(bench, '--out', 'kinds', *few)
    print(f"kinds: accuracy {summary['test_accuracy']:.3f}")
    bench.expect(summary['test_accuracy'] > 0.9 and 'test_r2' not in summary, f'{summary}')
    seen = json.loads(bench.good('eval', 'kinds', '--json'))
    bench.expect([(c['name'], c['labels']) for c in seen['test_classes']] ==
                 [(name, kinds.count(name)) for name in ('far, out', 'near')], f'{seen}')
    write(bench, 'new.csv', 'b,id,a', [[row[1], f'"{i}"', row[0]] for i, row in enumerate(rows[-HELD:])])
    (bench.folder / 'numbers.csv').rename(bench.folder / 'away.csv')
    told = [json.loads(line) for line in bench.good('predict', 'kinds', 'new.csv', '--json').splitlines()]
    (bench.folder / 'away.csv').rename(bench.folder / 'numbers.csv')
    right = sum(line['predictions'][0]['class'] == kind for line, kind in zip(told, kinds)) / HELD
    bench.expect(len(told) == HELD and abs(right - seen['test_accuracy']) < 1e-9, f'{right} {told[:2]}')
    again = bench.good('predict', 't.ini', 'new.csv', '--weights', 'kinds', '--json', *few)
    bench.expect([json.loads(line) for line in again.splitlines()] == told, 'predicted with a recipe')
    check(bench, 'predict kinds turned.csv new.csv', 2, r'new\.csv: one file too many')
    check(bench, 'predict kinds numbers.csv --top 0', 2, r"--top: '0'")
    check(bench, 'eval numbers --report r.html', 2, r'--report: the model mlp tells targets, no classes')


def check_told(bench, held):
    """The numbers of every row, in all forms; their errors are those of the evaluation."""
    seen = json.loads(bench.good('eval', 'numbers', '--json'))
    told = [json.loads(line) for line in bench.good('predict', 'numbers', 'held.csv', '--json').splitlines()]
    errors = [abs(p['value'] - float(real[2 + i])) for line, real in zip(told, held)
              for i, p in enumerate(line['predictions'])]
    bench.expect([p['target'] for p in told[0]['predictions']] == ['sum', 'square'] and
                 told[3]['file'] == 'held.csv[3]', f'{told[0]} {told[3]}')
    bench.expect(abs(sum(errors) / len(errors) / seen['test_mae'] - 1) < 1e-4, f'{seen}')
    table = bench.good('predict', 'numbers', 'held.csv', '--out', 'n.npy').splitlines()
    bench.expect(table[0].split() == ['value', 'target', 'file'] and table[1].split() ==
                 [f'{told[0]["predictions"][0]["value"]:.6g}', 'sum', 'held.csv[0]'], f'{table[:2]}')
    data = (bench.folder / 'n.npy').read_bytes()[-8 * HELD:]
    values = struct.unpack(f'<{2 * HELD}f', data)
    bench.expect(all(abs(v - p['value']) <= 1e-6 * abs(v) for v, p in
                     zip(values, (p for line in told for p in line['predictions']))), 'npy')
    check(bench, 'predict numbers held.csv --top 1', 2, r'--top: goes with classes')


def check_several(bench, held):
    _, summary = train(bench, '--out', 'several', *sets('data.target=right, up', 'data.task=multi_label',
                                                         'data.features=a,b', 'train.best=f1'))
    print(f"several: accuracy {summary['test_accuracy']:.3f}, F1 {summary['test_f1']:.3f}")
    bench.expect(summary['test_accuracy'] > 0.95 and summary['test_f1'] > 0.93 and 'test_mse' not in summary,
                 f'{summary}')
    seen = json.loads(bench.good('eval', 'several', '--json'))
    bench.expect(seen['test_f1'] == summary['test_f1'] and 'test_classes' not in seen, f'{seen}')
    rows = bench.good('predict', 'several', 'held.csv', '--csv').splitlines()
    bench.expect(rows[0] == 'file,class,probability' and len(rows) == 1 + 2 * HELD, f'{rows[:3]}')
    right = sum((float(row.split(',')[2]) > 0.5) == bool(real[5 + i % 2])
                for i, (row, real) in enumerate(zip(rows[1:], [r for r in held for _ in range(2)])))
    bench.expect(abs(right / (2 * HELD) - seen['test_accuracy']) < 1e-9, f'{right}')


FILES = [
    ('', r'bad\.csv: is empty'),
    ('a,b,sum,square,kind\n', r'bad\.csv: no row behind the first line'),
    (GOOD + '1,2,3\n', r'bad\.csv: line 11: square: is missing: the row has 3 cells, the first line 5'),
    (GOOD + '1,2,3,4,5,6\n', r'bad\.csv: line 11: cell 6: has no column'),
    (GOOD + '1,two,3,4,x\n', r"bad\.csv: line 11: b: 'two' is no number"),
    (GOOD + '1,2,,4,x\n', r'bad\.csv: line 11: sum: is empty'),
    (GOOD + '1,2,"3,4,x\n', r'bad\.csv: line 11: cell 3: a quote that nothing ends'),
    (GOOD + '1,\x1b[2J,3,4,x\n', r"bad\.csv: line 11: b: '[^\x1b]*' is no number"),
    (GOOD.replace('sum', 'summ', 1), r'bad\.csv: line 1: sum: no such column; did you mean summ\?'),
    (GOOD.replace('kind', 'sum', 1), r'bad\.csv: line 1: sum: two columns have this name'),
]
SETTINGS = [
    ('data.kind=jsonl', r'data\.(target|standardize): goes with data\.kind = csv'),
    ('data.target=sum,,square', r"data\.target: has an empty name"),
    ('data.target="sum', r"data\.target: has a quote that does not end"),
    ('data.features="a"b', r"data\.features: has no comma behind a closing quote"),
    ('data.task=many', r'data\.task: .many. is not one of them: regression, multi_label'),
    ('data.classes=3', r'data\.classes: needs data\.label'),
    ('data.size=8', r'data\.size: goes with data\.kind = images'),
    ('model.loss=mse', r"model\.loss: 'mse' is not squared_error, absolute_error"),
    ('model.name=cnn', r'model cnn: takes no rows of numbers; mlp does'),
    ('model.label_smoothing=0.1', r'model\.label_smoothing: is one of classes'),
    ('train.best=accuracy', r'train\.best: is not measured of this data and model'),
    ('data.task=multi_label --set model.loss=squared_error --data zeros.csv', r'model\.loss: is one of targets that'),
]


def check_bad(bench):
    for text, pattern in FILES:
        (bench.folder / 'bad.csv').write_text(text)
        check(bench, 'train t.ini --data bad.csv --set data.features=a,b', 1, pattern)
    (bench.folder / 'zeros.csv').write_text('a,b,sum,square\n' + '1,5,0,1\n2,6,1,1\n' * 8)
    for setting, pattern in SETTINGS:
        check(bench, f'train t.ini --set {setting}', 2, pattern)
    check(bench, 'train t.ini --set data.task=multi_label', 1, r'numbers\.csv: line 2: sum: .* is neither 0 nor 1')
    bench.recipe('o.ini', RECIPE, **{'target = sum, square\n': ''})
    check(bench, 'train o.ini', 2, r'o\.ini: data\.target: missing')
    check(bench, 'train o.ini --set data.label=kind --set data.task=regression', 2, 'data.task: goes with data.target')
    check(bench, 'train t.ini --data nowhere.csv', 1, r'nowhere\.csv: cannot read: No such file')


def main():
    with Bench(sys.argv[1]) as bench:
        rows = list(make_rows())
        write(bench, 'numbers.csv', 'a, b,sum,square,kind,right,up', rows)
        bench.recipe('t.ini', RECIPE, **{'standardize': 'features = a, b\nstandardize'})
        check_regression(bench)
        check_kept(bench, rows)
        check_resumed(bench, rows)
        check_classes(bench, rows)
        write(bench, 'held.csv', 'a,b', [row[:2] for row in rows[-HELD:]])
        check_told(bench, rows[-HELD:])
        check_several(bench, rows[-HELD:])
        check_bad(bench)
        bench.end()


if __name__ == '__main__':
    main()
