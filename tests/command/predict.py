#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""predict.py PROGRAM GOLDEN: classes and masks as PyTorch tells them, those of a training by their
names when its data is gone, all forms of output, and what cannot be predicted."""
import csv
import io
import json
import pathlib
import shutil
import struct
import sys
import zlib

from bad_input import check
from images import RECIPE, write_pictures, write_png
from support import TEST, Bench, idx, images

GOLDEN = """[model]
name = {model}
[data]
kind = images
path = nowhere
shape = 3,16,20
classes = 5
mean = 0.5, 0.45, 0.4
deviation = 0.25, 0.3, 0.2
{more}
[train]
batch = 4
epochs = 1
[memory]
tune = off
"""
NEAR = 1e-4


def predict(bench, *args, **env):
    """The lines of JSON."""
    out = bench.good('predict', *args, '--json', **env)
    return [json.loads(line) for line in out.splitlines()]


def read_npy(path):
    """(type, shape, bytes)"""
    whole = path.read_bytes()
    size = struct.unpack('<H', whole[8:10])[0]
    header = eval(whole[10:10 + size], {})  # pylint: disable=eval-used
    assert whole[:8] == b'\x93NUMPY\x01\x00' and (10 + size) % 64 == 0 and whole[9 + size] == 10
    assert not header['fortran_order']
    return header['descr'], header['shape'], whole[10 + size:]


def read_png(path):
    """(width, height, palette, indices) of an 8-bit PNG without filters that it needs."""
    whole, at, parts = path.read_bytes(), 8, {}
    while at < len(whole):
        size, kind = struct.unpack('>I4s', whole[at:at + 8])
        parts[kind] = parts.get(kind, b'') + whole[at + 8:at + 8 + size]
        at += 12 + size
    width, height, depth, colour = struct.unpack('>IIBB', parts[b'IHDR'][:10])
    data = zlib.decompress(parts[b'IDAT'])
    assert (depth, colour) == (8, 3)
    rows = [data[y * (width + 1):(y + 1) * (width + 1)] for y in range(height)]
    assert all(row[0] == 0 for row in rows), 'filtered'
    return width, height, parts[b'PLTE'], b''.join(row[1:] for row in rows)


def check_classes(bench, golden, want):
    (bench.folder / 'cnn.ini').write_text(GOLDEN.format(model='cnn\nwidth = 8', more=''))
    told = predict(bench, 'cnn.ini', golden, '--weights', golden / 'cnn.safetensors', '--top', 9)
    bench.expect([pathlib.Path(t['file']).name for t in told] == sorted(want), 'classes: files')
    for one in told:
        real = want[pathlib.Path(one['file']).name]['probabilities']
        got = {p['label']: p['probability'] for p in one['predictions']}
        order = [p['label'] for p in one['predictions']]
        bench.expect(order == sorted(range(5), key=lambda c, r=real: -r[c]), f'classes: {order}')
        gap = max(abs(got[c] - real[c]) for c in range(5))
        bench.expect(gap < NEAR, f'classes: {one["file"]}: {gap}')
    return told


def check_sizes(bench, golden):
    """A mask has the size of its picture, however large the model's is: pixels are the nearest ones, and class 0
    where the picture was cut off."""
    args = ['unet.ini', '--weights', golden / 'unet.safetensors']
    write_png(bench.folder / 'sizes/wide.png', 37, 50, 3, lambda y, x: (5 * y, 5 * x, 3 * x + 2 * y))
    for more in ([], ['--set', 'data.size=18,24', '--set', 'data.crop=16,20']):
        full, at = ((18, 24), (1, 2)) if more else ((16, 20), (0, 0))
        bench.good('predict', args[0], 'sizes', *args[1:], '--out', 'restored', *more)
        bench.good('predict', args[0], 'sizes', *args[1:], '--out', 'small.npy', *more)
        _, shape, mask = read_npy(bench.folder / 'small.npy')
        width, height, _, pixels = read_png(bench.folder / 'restored/wide_mask.png')
        bench.expect(shape == (1, 16, 20) and (width, height) == (50, 37) and len(set(mask)) > 1, f'{shape}')
        for i, pixel in enumerate(pixels):
            y, x = ((2 * place + 1) * to // (2 * of) - start for place, to, of, start in
                    zip(divmod(i, 50), full, (37, 50), at))
            if pixel != (mask[20 * y + x] if 0 <= y < 16 and 0 <= x < 20 else 0):
                bench.expect(False, f'sizes: {more}: pixel {i}')
                break


def check_masks(bench, golden, want):
    (bench.folder / 'unet.ini').write_text(
        GOLDEN.format(model='unet\ndepth = 2\nwidth = 4\nnorm = batch', more='mask = _mask'))
    args = ['unet.ini', golden, '--weights', golden / 'unet.safetensors']
    told = predict(bench, *args, '--top', 5, '--out', 'masks')
    bench.good('predict', *args, '--out', 'masks.npy')
    kind, shape, data = read_npy(bench.folder / 'masks.npy')
    bench.expect((kind, shape) == ('|u1', (6, 16, 20)), f'masks: {kind} {shape}')
    for i, name in enumerate(sorted(want)):
        mask = data[320 * i:320 * (i + 1)]
        wrong = sum(c != '.' and ord(c) - ord('a') != m for c, m in zip(want[name]['mask'], mask))
        bench.expect(wrong == 0, f'masks: {name}: {wrong} pixels')
        width, height, palette, pixels = read_png(bench.folder / 'masks' / f'{name[0]}_mask.png')
        bench.expect((width, height) == (20, 16) and pixels == mask, f'masks: {name}: other pixels')
        bench.expect(palette[:9] == bytes([0, 0, 0, 128, 0, 0, 0, 128, 0]), f'masks: {palette[:9]}')
        for p in told[i]['predictions']:
            bench.expect(abs(p['share'] - mask.count(p['label']) / 320) < 1e-6, f'masks: {p}')
    check_sizes(bench, golden)
    (bench.folder / 'twins/a').mkdir(parents=True)
    shutil.copy(golden / '0.png', bench.folder / 'twins/a')
    check(bench, f'predict unet.ini {golden} twins --weights {golden}/unet.safetensors --out other',
          1, r'--out: two pictures are called 0: predict their folders one by one')


def check_forms(bench, golden, told):
    """Table, CSV and array say what the lines of JSON do."""
    args = ['cnn.ini', golden, '--weights', golden / 'cnn.safetensors', '--top', 2]
    rows = list(csv.DictReader(io.StringIO(bench.good('predict', *args, '--csv'))))
    table = [line.split() for line in bench.good('predict', *args).splitlines()]
    best = [(t['file'], p) for t in told for p in t['predictions'][:2]]
    bench.expect(table[0] == ['probability', 'class', 'file'] and len(table) == 13, f'{table[0]}')
    for i, (file, p) in enumerate(best):
        bench.expect((rows[i]['file'], rows[i]['rank'], rows[i]['class']) ==
                     (file, str(i % 2 + 1), p['class']), f'csv: {rows[i]}')
        bench.expect(abs(float(rows[i]['probability']) - p['probability']) < 1e-8, f'{rows[i]}')
        bench.expect(table[i + 1] == [f'{100 * p["probability"]:.2f}', '%', p['class'], file],
                     f'table: {table[i + 1]}')
    bench.good('predict', *args, '--out', 'p.npy')
    kind, shape, data = read_npy(bench.folder / 'p.npy')
    bench.expect((kind, shape) == ('<f4', (6, 5)), f'npy: {kind} {shape}')
    values = struct.unpack('<30f', data)
    bench.expect(all(abs(values[5 * i + p['label']] - p['probability']) < 1e-7
                     for i, t in enumerate(told) for p in t['predictions']), 'npy: other numbers')
    for few in (1, 4):
        same = predict(bench, *args[:-1], 9, '--micro-batch', few)
        gap = max(abs(a['probability'] - b['probability']) for t, s in zip(told, same)
                  for a, b in zip(t['predictions'], s['predictions']))
        bench.expect(gap < 1e-6, f'micro-batch {few}: {gap}')
    before = (bench.folder / 'p.npy').read_bytes()
    check(bench, f'predict cnn.ini {golden} --weights {golden}/cnn.safetensors --budget 1KiB '
          '--out p.npy', 3, r'no plan fits .*the smallest budget is \d+')
    bench.expect((bench.folder / 'p.npy').read_bytes() == before, 'npy: half-written')


def check_training(bench):
    """The names stay when the data is gone; the best classes are right as often as eval says."""
    write_pictures(bench.folder / 'pictures')
    odd = '<b>"along"\x1b[31m'
    for split in ('train', 'test'):
        (bench.folder / 'pictures' / split / 'along').rename(
            bench.folder / 'pictures' / split / odd)
    (bench.folder / 'p.ini').write_text(RECIPE)
    bench.good('train', 'p.ini', '--quiet', '--epochs', 4, '--out', 'run')
    measured = json.loads(bench.good('eval', 'run', '--json'))['test_accuracy']
    shutil.rmtree(bench.folder / 'pictures/train')
    told = predict(bench, 'run', 'pictures/test')
    right = sum(t['file'].split('/')[-2] == t['predictions'][0]['class'] for t in told) / len(told)
    bench.expect(right == measured and len(told) == 24, f'{right} of {len(told)}, not {measured}')
    bench.expect({t['predictions'][0]['class'] for t in told} == {odd, 'across'}, 'other names')
    plain = bench.good('predict', 'run', 'pictures/test')
    bench.expect('\x1b' not in plain and '<b>"along"\\x1b[31m' in plain, 'table: not escaped')
    rows = list(csv.reader(io.StringIO(bench.good('predict', 'run', 'pictures/test', '--csv'))))
    bench.expect(all(len(row) == 4 for row in rows) and
                 {row[2] for row in rows[1:]} == {'across', odd.replace('\x1b', '\\x1b')}, 'csv')
    bench.good('predict', 'run', told[0]['file'], told[1]['file'])
    write_png(bench.folder / 'small.png', 3, 3, 3, lambda y, x: (9, 9, 9))
    bench.expect(len(predict(bench, 'run', 'small.png')) == 1, 'small pictures are enlarged')
    check(bench, 'predict run data/t10k-images-idx3-ubyte', 1,
          r't10k-images-idx3-ubyte: images: \S+ .*')


def check_idx(bench):
    """A file of images, and a picture that is brought to their size."""
    bench.good('train', 'r.ini', '--quiet', '--out', 'idx')
    measured = json.loads(bench.good('eval', 'idx', '--json'))['test_accuracy']
    shutil.rmtree(bench.folder / 'data')
    (bench.folder / 'ten').write_bytes(idx(8, (TEST, 8, 8), images(TEST, 2)))
    told = predict(bench, 'idx', 'ten')
    right = sum(t['predictions'][0]['label'] == i % 3 for i, t in enumerate(told)) / TEST
    bench.expect(right == measured, f'idx: {right}, not {measured}')
    bench.expect(told[59]['file'] == 'ten[59]', told[59]['file'])
    write_png(bench.folder / 'large.png', 16, 16, 3, lambda y, x: 3 * [220 if y < 5 else 20])
    bench.expect(predict(bench, 'idx', 'large.png')[0]['predictions'][0]['label'] == 0, 'large.png')
    for args, code, pattern in [
            ('ten large.png', 1, r'ten: neither a PNG nor a JPEG file'),
            ('ten ten', 2, r'ten: one file too many'),
            ('none.png', 1, r'none\.png: '),
            ('empty', 1, r'empty: holds no image'),
            ('ten --top 0', 2, r"--top: '0' "),
            ('ten --csv --json', 2, r'--json and --csv exclude each other'),
            ('ten --out folder', 2, r'--out: folder: needs a name that ends with \.npy'),
            ('ten --out no/such/p.npy', 1, r'no/such/p\.npy: ')]:
        (bench.folder / 'empty').mkdir(exist_ok=True)
        check(bench, f'predict idx {args}', code, pattern)
    check(bench, 'predict idx', 2, r'predict: needs a DIR FILE\.\.\.')
    check(bench, 'predict r.ini ten', 2, r'predict: --weights: missing; a recipe needs it')
    check(bench, 'predict idx ten --weights w', 2, r'--weights: idx has its own')
    check(bench, 'predict empty ten', 1, r'empty')


def check_texts(bench):
    """Lines of text and of JSON, by the classes' names."""
    rows = [(f'{word} {i}', kind) for i in range(30)
            for kind, word in (('grain', 'wheat rye'), ('<river>', 'weir ford'))]
    (bench.folder / 'l.jsonl').write_text(
        ''.join(json.dumps({'text': text, 'kind': kind}) + '\n' for text, kind in rows))
    (bench.folder / 'b.ini').write_text(
        '[model]\nname = bert\nlayers = 1\nheads = 2\nwidth = 16\ndropout = 0\n[data]\n'
        'kind = jsonl\npath = l.jsonl\nlabel = kind\nlength = 16\nheld_out = 0.2\n[train]\n'
        'batch = 8\nsteps = 40\noptimizer = adamw\nlr = 0.01\n[memory]\ntune = off\n')
    bench.good('train', 'b.ini', '--quiet', '--out', 'text')
    (bench.folder / 'l.jsonl').unlink()
    texts = ['rye wheat 77', 'ford weir 7']
    (bench.folder / 't.txt').write_text('\r\n'.join(texts))
    (bench.folder / 't.jsonl').write_text(''.join(json.dumps({'text': t}) + '\n' for t in texts))
    told, same = predict(bench, 'text', 't.txt'), predict(bench, 'text', 't.jsonl')
    bench.expect([t['predictions'] for t in told] == [t['predictions'] for t in same], 'texts')
    bench.expect([(t['file'], t['predictions'][0]['class']) for t in told] ==
                 [('t.txt:1', 'grain'), ('t.txt:2', '<river>')], f'{told}')
    (bench.folder / 't.txt').write_text('a\n\nb\n')
    check(bench, 'predict text t.txt', 1, r't\.txt: line 2: text: is empty')


def main():
    golden = pathlib.Path(sys.argv[2]).resolve()
    want = json.loads((golden / 'predictions.json').read_text())
    with Bench(sys.argv[1]) as bench:
        told = check_classes(bench, golden, want)
        check_masks(bench, golden, want)
        check_forms(bench, golden, told)
        check_training(bench)
        check_idx(bench)
        check_texts(bench)
        bench.end()


if __name__ == '__main__':
    main()
