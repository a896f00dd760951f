#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""npy_data.py PROGRAM: arrays of NumPy's teach what the same numbers in CSV and IDX files do, and what is wrong with
such files."""
import json
import struct
import sys

from bad_input import check
from comma_separated import HELD, ROWS, make_rows, sets, write
from support import RECIPE as IMAGES
from support import TEST, TRAIN, Bench, images
from text import digest, train

RECIPE = """[model]
name = mlp
hidden1 = 48
hidden2 = 0
[data]
kind = npy
features = x.npy
targets = y.npy
standardize = yes
held_out = 0.2
[train]
batch = 16
epochs = 12
optimizer = adam
lr = 0.01
schedule = cosine
eval_every = 0
[memory]
budget = 16MiB
tune = off
"""
CODES = {'<f2': 'e', '<f4': 'f', '<f8': 'd', '|u1': 'B', '|b1': '?', '|i1': 'b', '<i4': 'i', '<i8': 'q'}


def array(kind, shape, values, fortran=False, version=1):
    """The bytes of a file as NumPy writes it."""
    head = f"{{'descr': '{kind}', 'fortran_order': {fortran}, 'shape': {tuple(shape)}, }}"
    size = 2 if version == 1 else 4
    head += ' ' * (-(8 + size + len(head) + 1) % 64) + '\n'
    data = values if isinstance(values, bytes) else struct.pack(f'<{len(values)}{CODES[kind]}', *values)
    return b'\x93NUMPY' + bytes([version, 0]) + len(head).to_bytes(size, 'little') + head.encode() + data


def put(bench, name, *args, **more):
    (bench.folder / name).write_bytes(array(*args, **more))
    return name


def flat(rows, *columns):
    return [float(row[c]) for row in rows for c in columns]


def predict(bench, *args):
    return [json.loads(line) for line in bench.good('predict', *args, '--json').splitlines()]


def told(lines):
    return [line['predictions'] for line in lines]


def put_rows(bench, rows):
    put(bench, 'x.npy', '<f8', (ROWS, 2), flat(rows, 0, 1))
    put(bench, 'y.npy', '<f8', (ROWS, 2), flat(rows, 2, 3), version=2)
    put(bench, 'kinds.npy', '<i8', (ROWS, 1), [row[4] != 'near' for row in rows])
    put(bench, 'several.npy', '|b1', (ROWS, 2), [bool(v) for row in rows for v in row[5:]], version=3)
    put(bench, 'x-held.npy', '<f8', (HELD, 2), flat(rows[-HELD:], 0, 1))
    put(bench, 'y-held.npy', '<f8', (HELD, 2), flat(rows[-HELD:], 2, 3))


def check_like_csv(bench, rows):
    """The same weights, bit for bit, and the same figures."""
    write(bench, 'numbers.csv', 'a,b,sum,square,kind,right,up', rows)
    text = RECIPE.replace('kind = npy', 'kind = csv').replace('features = x.npy', 'path = numbers.csv')
    (bench.folder / 'c.ini').write_text(text.replace('targets = y.npy', 'target = sum, square\nfeatures = a, b'))
    _, one = train(bench, '--out', 'csv', recipe='c.ini')
    _, two = train(bench, '--out', 'numbers')
    print(f"numbers: R2 {two['test_r2']:.4f}")
    bench.expect(digest(bench, 'csv') == digest(bench, 'numbers'), 'other weights than of CSV')
    same = ('test_r2', 'test_mse', 'test_mae', 'test_loss', 'test_samples')
    bench.expect([one[key] for key in same] == [two[key] for key in same] and two['test_r2'] > 0.98, f'{one} {two}')
    _, three = train(bench, *sets('data.validation=0.25', 'train.best=r2'))
    _, four = train(bench, *sets('data.validation=0.25', 'train.best=r2'), recipe='c.ini')
    bench.expect(three['validation'] and three['test_samples'] == (ROWS - HELD) // 4 and
                 three['test_mse'] == four['test_mse'], f'{three} {four}')
    _, raw = train(bench, *sets('data.standardize=no'))
    bench.expect(raw['test_r2'] < 0.9, f'{raw}')


def check_kept(bench):
    """Other files are standardised as the training was, also when its own are gone."""
    seen = json.loads(bench.good('eval', 'numbers', '--json'))
    other = sets('data.test_features=x-held.npy', 'data.test_targets=y-held.npy')
    again = json.loads(bench.good('eval', 'numbers', '--json', *other))
    bench.expect(again['test_mse'] == seen['test_mse'], f'{seen} {again}')
    (bench.folder / 'away').mkdir()
    for name in ('x.npy', 'y.npy'):
        (bench.folder / name).rename(bench.folder / 'away' / name)
    lines = predict(bench, 'numbers', 'x-held.npy')
    for name in ('x.npy', 'y.npy'):
        (bench.folder / 'away' / name).rename(bench.folder / name)
    bench.expect(told(predict(bench, 'csv', 'x-held.npy')) ==
                 [[{**p, 'target': name} for p, name in zip(line, ('sum', 'square'))] for line in told(lines)],
                 'a model of CSV files says other things')
    bench.expect(lines[3]['file'] == 'x-held.npy[3]' and [p['target'] for p in lines[3]['predictions']] == ['0', '1'],
                 f'{lines[3]}')
    real = struct.unpack(f'<{2 * HELD}d', (bench.folder / 'y-held.npy').read_bytes()[-16 * HELD:])
    wrong = [p['value'] - value for p, value in zip((p for line in told(lines) for p in line), real)]
    bench.expect(abs(sum(w * w for w in wrong) / len(wrong) / seen['test_mse'] - 1) < 1e-4, f'{seen}')
    rows = predict(bench, 'n.ini', 'x-held.npy', '--weights', 'numbers')
    bench.expect(told(rows) == told(lines), 'with a recipe')
    table = bench.good('predict', 'numbers', 'x-held.npy', '--out', 'n.npy').splitlines()
    values = struct.unpack(f'<{2 * HELD}f', (bench.folder / 'n.npy').read_bytes()[-8 * HELD:])
    bench.expect(table[0].split() == ['value', 'target', 'file'] and
                 all(abs(v - p['value']) <= 1e-6 * abs(v) for v, p in
                     zip(values, (p for line in told(lines) for p in line))), f'{table[:2]}')
    check(bench, 'eval numbers --report r.html', 2, r'--report: the model mlp tells targets, no classes')
    check(bench, 'predict numbers kinds.npy', 1, r'kinds\.npy: shape: rows of 1 numbers, where 2 are wanted')
    check(bench, 'predict numbers x-held.npy x.npy', 2, r'x\.npy: one file too many')
    plan = json.loads(bench.good('plan', 'n.ini', '--json'))
    bench.expect(plan['micro_batch'] >= 1, f'{plan}')


def check_resumed(bench, rows):
    """Half a training and the other half are the whole one."""
    steady = ('--quiet', '--set', 'train.schedule=constant')
    bench.good('train', 'n.ini', *steady, '--steps', 30, '--out', 'one')
    bench.good('train', 'n.ini', *steady, '--steps', 15, '--out', 'two')
    bench.good('resume', 'two', '--quiet', '--steps', 30)
    bench.expect(digest(bench, 'one') == digest(bench, 'two'), 'resumed')
    put(bench, 'x.npy', '<f8', (ROWS, 2), [1.5] + flat(rows, 0, 1)[1:])
    check(bench, 'resume two --steps 40', 1, 'two: data: not the samples this training began with')
    put_rows(bench, rows)


def check_classes(bench, rows):
    _, summary = train(bench, '--out', 'kinds', *sets('data.labels=kinds.npy'))
    bench.expect(summary['test_accuracy'] > 0.9 and 'test_r2' not in summary, f'{summary}')
    seen = json.loads(bench.good('eval', 'kinds', '--json', '--report', 'k.html'))
    bench.expect([c['labels'] for c in seen['test_classes']] ==
                 [sum((row[4] != 'near') == c for row in rows[-HELD:]) for c in range(2)], f'{seen}')
    bench.expect('confusion' in (bench.folder / 'k.html').read_text(), 'report')
    lines = predict(bench, 'kinds', 'x-held.npy')
    right = sum(line['predictions'][0]['label'] == (row[4] != 'near') for line, row in zip(lines, rows[-HELD:]))
    bench.expect(abs(right / HELD - seen['test_accuracy']) < 1e-9, f'{right}')


def check_several(bench):
    _, summary = train(bench, '--out', 'several', *sets('data.targets=several.npy', 'data.task=multi_label',
                                                         'train.best=f1'))
    bench.expect(summary['test_accuracy'] > 0.93 and summary['test_f1'] > 0.9, f'{summary}')
    lines = predict(bench, 'several', 'x-held.npy')
    real = (bench.folder / 'several.npy').read_bytes()[-2 * HELD:]
    right = sum((p['probability'] > 0.5) == bool(value)
                for p, value in zip((p for line in told(lines) for p in line), real))
    bench.expect(abs(right / (2 * HELD) - summary['test_accuracy']) < 1e-9, f'{right}')


def put_images(bench):
    for name, count, seed in (('train', TRAIN, 1), ('test', TEST, 2)):
        pixels = images(count, seed)
        put(bench, f'{name}-u8.npy', '|u1', (count, 8, 8), bytes(pixels))
        put(bench, f'{name}-f32.npy', '<f4', (count, 1, 8, 8), [p / 255 for p in pixels])
        put(bench, f'{name}-labels.npy', '<i4', (count,), [i % 3 for i in range(count)])


def image_recipe(bench, kind):
    data = ''.join(f'{key} = {name}\n' for key, name in (
        ('features', f'train-{kind}.npy'), ('labels', 'train-labels.npy'), ('test_features', f'test-{kind}.npy'),
        ('test_labels', 'test-labels.npy'), ('mean', 0.4), ('deviation', 0.3)))
    (bench.folder / f'{kind}.ini').write_text(IMAGES.replace('path = {data}\n', f'kind = npy\n{data}'))
    return f'{kind}.ini'


def cnn_recipe(bench, kind):
    text = (bench.folder / f'{kind}.ini').read_text()
    (bench.folder / f'cnn-{kind}.ini').write_text(
        text.replace('name = mlp\nhidden1 = 64\nhidden2 = 0', 'name = cnn\nwidth = 4\ngroup = 8'))
    return f'cnn-{kind}.ini'


def check_images(bench):
    """What IDX files teach, in u8 bit for bit, in f32 nearly; and a network of convolutions takes both."""
    _, idx = train(bench, '--out', 'idx', *sets('data.mean=0.4', 'data.deviation=0.3'), recipe='r.ini')
    _, u8 = train(bench, '--out', 'u8', recipe=image_recipe(bench, 'u8'))
    _, f32 = train(bench, '--out', 'f32', recipe=image_recipe(bench, 'f32'))
    bench.expect(digest(bench, 'idx') == digest(bench, 'u8') and idx['test_loss'] == u8['test_loss'], f'{idx} {u8}')
    bench.expect(abs(f32['test_loss'] - u8['test_loss']) < 1e-3, f'{f32} {u8}')
    _, cnn = train(bench, '--out', 'cnn', recipe=cnn_recipe(bench, 'f32'))
    _, same = train(bench, recipe=cnn_recipe(bench, 'u8'))
    print(f"images: loss {cnn['test_loss']:.4f} of f32, {same['test_loss']:.4f} of u8")
    bench.expect(abs(cnn['test_loss'] - same['test_loss']) < 0.01 and cnn['test_accuracy'] > 0.9, f'{cnn} {same}')
    _, half = train(bench, *sets('memory.storage=bf16'), recipe='cnn-f32.ini')
    bench.expect(half['test_accuracy'] > 0.9, f'{half}')
    (bench.folder / 'g.txt').write_text(bench.good('model', 'cnn-f32.ini'))
    text = (bench.folder / 'f32.ini').read_text().replace('mean = 0.4\ndeviation = 0.3\n', '')
    (bench.folder / 'graph.ini').write_text(
        text.replace('name = mlp\nhidden1 = 64\nhidden2 = 0', 'name = graph\npath = g.txt'))
    _, graph = train(bench, recipe='graph.ini')
    bench.expect(graph['test_loss'] == cnn['test_loss'], f'{graph} {cnn}')
    _, mixed = train(bench, *sets('data.mixup=0.2'), recipe='u8.ini')
    bench.expect(mixed['test_accuracy'] > 0.9, f'{mixed}')


def check_pictures(bench):
    """Reports show what is a picture; models tell the classes of arrays when their own are gone."""
    put(bench, 'other-labels.npy', '|u1', (TEST,), [(i + (i < 9)) % 3 for i in range(TEST)])
    for name, shown in (('u8', True), ('f32', False)):
        bench.good('eval', name, '--report', 'e.html', *sets('data.test_labels=other-labels.npy'))
        page = (bench.folder / 'e.html').read_text()
        bench.expect('taken for' in page and ('data:image/png' in page) == shown, f'report of {name}')
    want = {name: json.loads(bench.good('eval', name, '--json'))['test_accuracy'] for name in ('u8', 'f32', 'cnn')}
    for name in ('train-u8.npy', 'train-f32.npy', 'train-labels.npy', 'test-labels.npy'):
        (bench.folder / name).unlink()
    for run, name in (('u8', 'u8'), ('f32', 'f32'), ('cnn', 'f32'), ('idx', 'u8')):
        lines = predict(bench, run, f'test-{name}.npy')
        right = sum(line['predictions'][0]['label'] == i % 3 for i, line in enumerate(lines)) / TEST
        bench.expect(right == want.get(run, want['u8']), f'{run}: {right}')
    bench.expect(told(predict(bench, 'u8', 'data/t10k-images-idx3-ubyte')) ==
                 told(predict(bench, 'u8', 'test-u8.npy')), 'IDX files say other things')
    check(bench, 'predict u8 test-f32.npy', 1, r'test-f32\.npy: images: the data has rows of f32 .*wants u8')
    check(bench, 'predict f32 test-u8.npy', 1, r'test-u8\.npy: images: the data has rows of u8 .*wants f32')
    check(bench, 'predict numbers test-u8.npy', 1, r'test-u8\.npy: shape: \(60, 8, 8\): images, where rows')
    check(bench, 'predict u8 x.npy', 1, r'x\.npy: images: the data has no column for this input')


def lie(shape):
    return array('<f8', shape, bytes(16 * ROWS))


FEATURES = [
    (b'', r'bad\.npy: magic: this is no npy file'),
    (b'PK\3\4' + bytes(200), r'bad\.npy: magic: this is no npy file'),
    (array('<f8', (ROWS, 2), bytes(16 * ROWS))[:-1], r'bad\.npy: data: \d+ bytes behind the header, but shape \(400, 2\)'),
    (array('<f8', (ROWS, 2), bytes(16 * ROWS))[:40], r'bad\.npy: header: the file ends early'),
    (lie((ROWS, 3)), r"bad\.npy: data: 6400 bytes behind the header, but shape \(400, 3\) of '<f8' takes 9600"),
    (lie((1 << 40, 1 << 40)), r'bad\.npy: shape: its numbers cannot be counted'),
    (lie((-ROWS, 2)), r'bad\.npy: shape: is no tuple of sizes'),
    (lie((0, 2)), r'bad\.npy: shape: there is no number in it'),
    (array('<f8', (ROWS, 2), bytes(16 * ROWS), fortran=True), r'bad\.npy: fortran_order: columns come first'),
    (array('|O', (ROWS, 2), bytes(16 * ROWS)), r"bad\.npy: descr: '\|O' are Python's objects"),
    (array('>f8', (ROWS, 2), bytes(16 * ROWS)), r"bad\.npy: descr: '>f8' is big-endian"),
    (array('<c8', (ROWS, 2), bytes(16 * ROWS)), r"bad\.npy: descr: '<c8' is no type that can be read"),
    (array('<f8', (), [1.0]), r'bad\.npy: shape: is one number, not an array'),
    (array('<f8', (ROWS - 1, 2), bytes(16 * ROWS - 16)), r'y\.npy: shape: 400 rows for the 399 samples of \S*bad\.npy'),
    (array('<f8', (ROWS,), [float('inf')] * ROWS), r'bad\.npy: sample 0: number 0: inf is not finite as f32'),
    (array('\x1b[31m', (1,), b''), r"bad\.npy: descr: '[^\x1b]*31m' is no type"),
]
TARGETS = [
    ('targets', array('<f4', (ROWS,), [0.5] * 7 + [float('nan')] * 393), r'bad\.npy: sample 7: number 0: -?nan is not finite'),
    ('targets', array('<f4', (ROWS, 1, 2), [0.5] * 2 * ROWS), r'bad\.npy: shape: \(400, 1, 2\): targets are'),
    ('labels', array('<i4', (ROWS,), [1] * 9 + [-1] * 391), r'bad\.npy: sample 9: number 0: -1 is no class'),
    ('labels', array('<i8', (ROWS,), [1 << 40] * ROWS), r'bad\.npy: sample 0: number 0: 1\.\d*e\+12 is no class'),
    ('labels', array('<f4', (ROWS,), [1.0] * ROWS), r'bad\.npy: descr: labels are whole numbers, not floating point'),
    ('labels', array('|u1', (ROWS, 2), bytes(2 * ROWS)), r'bad\.npy: shape: \(400, 2\): labels are one number'),
]
SETTINGS = [
    ('data.kind=csv', r'data\.targets?: goes with data\.kind = npy'),
    ('data.target=sum', r'data\.target: goes with data\.kind = csv'),
    ('data.path=x.npy', r'data\.path: goes with data\.kind = idx, images, text, tokens, jsonl, csv or lines'),
    ('data.size=8', r'data\.size: goes with data\.kind = images'),
    ('data.test_features=x.npy', r'data\.test_features: goes with data\.test_targets'),
    ('data.test_targets=x.npy', r'data\.test_features: goes with data\.test_targets'),
    ('data.test_features=x.npy --set data.test_labels=y.npy --set data.test_targets=y.npy',
     r'data\.test_labels goes with data\.labels'),
    ('data.labels=kinds.npy --set data.task=regression', r'data\.task: goes with data\.targets'),
    ('data.classes=3', r'data\.classes: needs data\.labels'),
    ('data.mixup=0.2', r'data\.mixup, data\.cutmix: need data\.labels'),
    ('data.labels=kinds.npy --set data.mixup=0.2', r'--set: data\.mixup: is of images of bytes'),
    ('data.mean=0.5', r'data\.mean: is of images; rows of numbers have data\.standardize'),
    ('data.labels=kinds.npy --set data.classes=1', r'data\.classes: 1 classes, but the labels reach 1'),
    ('model.name=cnn', r'model cnn: takes no rows of numbers; mlp does'),
    ('data.features=train-u8.npy --set data.labels=train-labels.npy', r'data\.standardize: is of rows of numbers'),
    ('data.features=train-u8.npy --set data.targets=train-labels.npy --set data.standardize=no',
     r'model mlp: targets go with rows of numbers'),
]


def check_bad(bench):
    for data, pattern in FEATURES:
        (bench.folder / 'bad.npy').write_bytes(data)
        check(bench, 'train n.ini --set data.features=bad.npy', 1, pattern)
    for key, data, pattern in TARGETS:
        (bench.folder / 'bad.npy').write_bytes(data)
        check(bench, f'train n.ini --set data.{key}=bad.npy', 1, pattern)
    for setting, pattern in SETTINGS:
        check(bench, f'train n.ini --set {setting}', 2, pattern)
    check(bench, 'train n.ini --set data.task=multi_label', 1, r'y\.npy: sample 0: number 0: \S+ is neither 0 nor 1')
    other = 'train n.ini --set data.test_features=x-held.npy --set data.test_targets='
    put(bench, 'bad.npy', '<f4', (HELD,), [0.0] * HELD)
    check(bench, other + 'bad.npy', 1, r'n\.ini: data: the test targets are 1, those of training 2')
    check(bench, 'train n.ini --set data.features=nowhere.npy', 1, r'nowhere\.npy: cannot read: No such file')
    check(bench, 'train n.ini --set data.features=data', 1, r'data: not a regular file')
    for line, pattern in (('features = x.npy\n', 'data.features: missing'), ('targets = y.npy\n', 'data.labels: missing')):
        (bench.folder / 'o.ini').write_text(RECIPE.replace(line, ''))
        check(bench, 'train o.ini', 2, pattern)


def main():
    with Bench(sys.argv[1]) as bench:
        rows = list(make_rows())
        put_rows(bench, rows)
        put_images(bench)
        (bench.folder / 'n.ini').write_text(RECIPE)
        (bench.folder / 't.ini').write_text(RECIPE)
        check_like_csv(bench, rows)
        check_kept(bench)
        check_resumed(bench, rows)
        check_classes(bench, rows)
        check_several(bench)
        check_bad(bench)
        check_images(bench)
        check_pictures(bench)
        bench.end()


if __name__ == '__main__':
    main()
