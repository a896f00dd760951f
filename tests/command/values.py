#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""values.py PROGRAM: sizes, paths, numbers, weights and texts from outside, as the command takes them
or refuses them."""
import json
import os
import random
import re
import shutil
import signal
import struct
import sys
import time

from images import RECIPE as IMAGES, stripes, write_png
from support import Bench, idx

# What would begin a line of its own, erase the one before it, or end the command of a terminal.
EVIL = '\x1b[2K\rquern: done\n\x9b'
CONTROL = re.compile(r'[\x00-\x09\x0b-\x1f\x7f-\x9f]')

SIZES = ['4MiB', '4 MiB', '4mib', '4MIB', '4M', '4m', '4 m', '4096K', '4096 kib', '0.00390625GiB',
         '0.00390625G', '4194304', ' 4 MiB ']
NO_SIZES = ['4MB', '4 MiBs', '4 MiB 5', '4MiB4', 'MiB', 'much']
# What is said of a budget of 9999 GiB.
LARGE = re.compile(r'quern: warning: the budget of 9\.76 TiB is more than the memory of \S.*, [\d.]+ '
                   r'[MGT]iB')
# (key of the recipe and its value, what the line matches)
NUMBERS = [
    ('train.eps=1e-300', r"train\.eps: '1e-300' is outside the range of f32, 1\.2e-38 to 3\.4e38"),
    ('train.lr=1e-46', r"train\.lr: '1e-46' is outside the range of f32"),
    ('train.weight_decay=1e-300', r"train\.weight_decay: '1e-300' is outside the range of f32"),
    ('train.clip=1e-39', r"train\.clip: '1e-39' is outside the range of f32"),
    ('train.lr_end=1e-300', r"train\.lr_end: '1e-300' is outside the range of f32"),
    ('train.beta2=0.99999999999', r"train\.beta2: '0\.99999999999' is too large"),
    ('train.momentum=0.99999999999', r"train\.momentum: '0\.99999999999' is too large"),
    ('data.mean=1e300', r"data\.mean: '1e300' has a number outside the range of f32"),
    ('data.deviation=1e-300', r"data\.deviation: '1e-300' has a number outside the range of f32"),
]


def refused(bench, args, code, pattern):
    """One line that matches; gives it."""
    got, _, error = bench.run(*args)
    bench.expect(got == code and len(error.splitlines()) == 1 and re.search(pattern, error),
                 f'quern {args}: {got}, not {code}: {error!r}, not {pattern}')
    return error


# --- sizes ---

def check_sizes(bench):
    """One reader for options, recipes and files."""
    file = bench.folder / 'size.txt'
    for text in SIZES:
        file.write_text(text + '\n')
        bench.recipe('size.ini', **{'4MiB': text})
        for args in (['r.ini', '--budget', text], ['size.ini'],
                     ['r.ini', '--budget-file', 'size.txt', '--quiet', '--steps', 1]):
            out = bench.good('train' if '--quiet' in args else 'plan', *args)
            bench.expect('--quiet' in args or 'budget: 4 MiB (' in out, f'{args}: {out}')
    for text in NO_SIZES:
        file.write_text(text + '\n')
        bench.recipe('size.ini', **{'4MiB': text})
        for args in (['plan', 'r.ini', '--budget', text], ['plan', 'size.ini'],
                     ['train', 'r.ini', '--budget-file', 'size.txt']):
            refused(bench, args, 2, rf"'{text}' is not a size: bytes, or a number with KiB, MiB, "
                    'GiB, K, M or G')
    file.write_text('4 MiB\n')
    bench.good('train', 'r.ini', '--quiet', '--budget-file', 'size.txt', '--steps', 1, '--metrics',
               'size.json')
    summary = json.loads((bench.folder / 'size.json').read_text().splitlines()[-1])['summary']
    bench.expect(summary['budget_bytes'] == 4 << 20, f'{summary}')


def wait_for(process, condition):
    end = time.monotonic() + 60
    while process.poll() is None and not condition() and time.monotonic() < end:
        time.sleep(0.005)
    return condition()


def check_budget_file(bench):
    """Between truncation and writing it says nothing; a FIFO is named and blocks nobody."""
    file, metrics = bench.folder / 'b.txt', bench.folder / 'b.json'
    file.write_text('4MiB\n')
    os.mkfifo(bench.folder / 'fifo')
    refused(bench, ['train', 'r.ini', '--budget-file', 'fifo'], 2, 'fifo: is not a regular file')
    process = bench.start('train', 'r.ini', '--quiet', '--epochs', 1000000, '--budget-file', 'b.txt',
                          '--metrics', 'b.json')

    def goes_on():
        """Some updates more."""
        size = metrics.stat().st_size if metrics.exists() else 0
        bench.expect(wait_for(process, lambda: metrics.exists() and
                              metrics.stat().st_size > size + 2000), 'the training stands still')
    goes_on()
    for text in ('', '\n'):
        file.write_text(text)
        goes_on()
    file.unlink()
    os.mkfifo(file)
    goes_on()
    file.unlink()
    file.write_text('3 MiB')
    bench.expect(wait_for(process, lambda: metrics.read_text().count('"plan"') >= 2),
                 'the budget is not followed')
    file.write_text('9999GiB')
    bench.expect(wait_for(process, lambda: metrics.read_text().count('"plan"') >= 3),
                 'a large budget is not followed')
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=60)
    fifo, large, *rest = error.splitlines()
    bench.expect(fifo == 'quern: warning: b.txt: is not a regular file; the old plan goes on' and
                 LARGE.fullmatch(large) and not rest, f'{error!r}')


def check_large_budget(bench):
    """More than the device has is a warning, once, that names both."""
    for args in (['plan', 'r.ini'], ['train', 'r.ini', '--quiet', '--steps', '1']):
        code, _, error = bench.run(*args, '--budget', '9999GiB')
        bench.expect(code == 0 and LARGE.fullmatch(error.strip()), f'{args}: {code}: {error!r}')


# --- numbers ---

def check_numbers(bench):
    for change, pattern in NUMBERS:
        refused(bench, ['train', 'r.ini', '--set', change], 2, pattern)


def check_labels(bench):
    shutil.copytree(bench.folder / 'data', bench.folder / 'labels')
    labels = [i % 3 for i in range(199)] + [2 ** 31 - 1]
    (bench.folder / 'labels/train-labels-idx1-ubyte').write_bytes(
        idx(12, (200,), struct.pack('>200i', *labels)))
    refused(bench, ['train', 'r.ini', '--set', 'data.path=labels'], 1,
            r'train-labels-idx1-ubyte: data: label 199 is 2147483647, the largest is 2147483646')


# --- files ---

def check_tables(bench):
    table = bench.folder / 't.csv'
    want = 'id,lower,upper,size,offset\nb,1,2,4,3\na,0,2,3,0\n'
    rows = 'id,lower,upper,size\nb,1,2,4\na,0,2,3\n'
    for text in (rows.replace('\n', '\r\n'), '\ufeff' + rows, rows[:-1],
                 '\ufeff' + rows.replace('\n', '\r\n')[:-2]):
        table.write_bytes(text.encode())
        got = bench.good('place', 't.csv')
        bench.expect(got == want, f'place: {text!r}: {got!r}')


def check_facts(bench):
    devices = bench.good('devices', '--json')
    facts = bench.folder / 'facts.json'
    facts.write_text(devices + ' \n\t\n')
    bench.good('plan', 'r.ini', '--facts', 'facts.json')
    for behind in ('x', '{}', '\n]'):
        facts.write_text(devices + behind)
        refused(bench, ['plan', 'r.ini', '--facts', 'facts.json'], 1,
                r'facts\.json: facts: something stands behind the JSON')


def check_weights(bench):
    """A checkpoint's weights are checked wherever its list of checksums lies beside them."""
    folder = bench.folder / 'flipped'
    shutil.copytree(bench.folder / 'run/last', folder)
    weights, sums = folder / 'weights.safetensors', folder / 'checksums.txt'
    args = ['eval', 'r.ini', '--weights', 'flipped/weights.safetensors']
    bench.good(*args)
    whole, lines = weights.read_bytes(), sums.read_text()
    weights.write_bytes(whole[:-9] + bytes([whole[-9] ^ 4]) + whole[-8:])
    refused(bench, args, 1, r'flipped/weights\.safetensors: is corrupt \(checksum')
    (bench.folder / 'link').symlink_to(weights)
    refused(bench, [*args[:-1], 'link'], 1, r'link: is corrupt \(checksum')
    for other in ('', 'a list of something else\n', lines.replace('weights', 'others'),
                  f'{"ab" * 32}  weights.safetensors\n', 'x' * 9000):
        sums.write_text(other)
        bench.good(*args)
    sums.unlink()
    bench.good(*args)


def check_out(bench):
    """The reason why a folder cannot be made, where even root can make none."""
    if not os.path.ismount('/sys'):
        return
    for out in ('/sys/quern', '/sys/quern/a/b'):
        line = refused(bench, ['train', 'r.ini', '--quiet', '--out', out], 1, rf'{out}: cannot make')
        bench.expect('No such file' not in line and
                     re.search('not permitted|Permission denied|Read-only', line), line)


def check_paths(bench):
    """In a recipe's file they begin in its folder, elsewhere in the current one."""
    away = bench.folder / 'away'
    away.mkdir()
    shutil.copytree(bench.folder / 'data', away / 'near')
    for name, split in (('images', 'train'), ('labels', 'train'), ('test_images', 't10k'),
                        ('test_labels', 't10k')):
        kind = 'images-idx3' if 'images' in name else 'labels-idx1'
        shutil.copy(bench.folder / f'data/{split}-{kind}-ubyte', away / name)
    text = (bench.folder / 'r.ini').read_text()
    path = f'path = {bench.folder}/data'
    (away / 'path.ini').write_text(text.replace(path, 'path = near'))
    (away / 'files.ini').write_text(text.replace(path, '\n'.join(
        f'{name} = {name}' for name in ('images', 'labels', 'test_images', 'test_labels'))))
    for name, keys in (('path', ['path']), ('files', ['images', 'labels', 'test_images',
                                                      'test_labels'])):
        bench.good('train', f'away/{name}.ini', '--quiet', '--steps', 1, '--out', name)
        note = json.loads(json.loads((bench.folder / name / 'last/train.json').read_text())['note'])
        for key in keys:
            bench.expect(note['data'][key] == str(away / ('near' if key == 'path' else key)),
                         f'{note}')
    bench.good('eval', 'files')
    bench.good('train', 'away/path.ini', '--quiet', '--steps', 1, '--set', 'data.path=data')
    bench.good('train', 'fashion-mlp', '--quiet', '--steps', 1, '--set', 'data.path=data',
               '--set', 'data.shape=1,8,8', '--tune', 'off')
    refused(bench, ['train', 'away/path.ini', '--set', 'data.path=near'], 1,
            r'^quern: near/train-images')
    (away / 'path.ini').write_text(text.replace(path, 'path = far'))
    refused(bench, ['train', 'away/path.ini'], 1, r'^quern: away/far/train-images')


# --- texts ---

def shown(bench, *args, code=None, **files):
    """What stands in the arguments and files is shown, escaped, and no line is faked."""
    got, out, error = bench.run(*args)
    name = f'quern {args}: {got}: {out!r} {error!r}'
    bench.expect(code is None or got == code, f'{name}: not {code}')
    bench.expect(not CONTROL.search(out + error), f'{name}: a control character')
    bench.expect(not got or len(error.splitlines()) == 1, f'{name}: not one line')
    bench.expect(not re.search('^quern: done', error, re.MULTILINE), f'{name}: a line is faked')
    bench.expect(r'\x1b[2K\rquern: done\n\xc2\x9b' in out + error, f'{name}: not shown escaped')


def check_arguments(bench):
    for args in ([EVIL], ['train', EVIL], ['train', './' + EVIL], ['train', 'r.ini', '--x' + EVIL],
                 ['train', 'r.ini', '--set', EVIL], ['train', 'r.ini', '--set', f'train.{EVIL}=1'],
                 ['train', 'r.ini', '--set', 'train.lr=' + EVIL], ['place', EVIL],
                 ['train', 'r.ini', '--set', 'model.name=' + EVIL],
                 ['train', 'r.ini', '--set', 'data.path=' + EVIL], ['plan', 'r.ini', '--facts', EVIL],
                 ['train', 'r.ini', '--recompute', EVIL], ['train', 'r.ini', '--budget-file', EVIL],
                 ['eval', 'r.ini', '--weights', EVIL], ['check', '--op', EVIL],
                 ['plan', 'r.ini', '--explain', EVIL], ['resume', EVIL]):
        shown(bench, *args)
    shown(bench, 'train', 'r.ini', '--device', EVIL, code=4)


def check_recipes(bench):
    text = (bench.folder / 'r.ini').read_text()
    named = 'evil' + EVIL + '.ini'
    (bench.folder / named).write_text(text)
    shown(bench, 'plan', named, code=0)
    shown(bench, 'train', named, '--steps', 1, code=0)
    (bench.folder / named).write_text(text + 'steps = 0')
    shown(bench, 'train', named, code=2)
    inner = EVIL.replace('\n', ' ')
    for extra in (f'[train]\n{inner}x = 1\n', f'[train]\nclip = 1{inner}x\n', f'[a{inner}b]\nx = 1\n'):
        bench.recipe('inner.ini', text + extra)
        got, out, error = bench.run('train', 'inner.ini')
        bench.expect(got == 2 and not CONTROL.search(error) and r'\x1b[2K\rquern' in error,
                     f'{extra!r}: {got}: {error!r}')


def check_files(bench):
    facts = json.loads(bench.good('devices', '--json'))['devices'][0]['facts']
    (bench.folder / 'facts.json').write_text(json.dumps({**facts, 'name': 'evil' + EVIL}))
    shown(bench, 'plan', 'r.ini', '--facts', 'facts.json', code=0)
    shown(bench, 'plan', 'r.ini', '--facts', 'facts.json', '--budget', '9999GiB', code=0)
    (bench.folder / 'size.txt').write_text(EVIL.strip())
    code, _, error = bench.run('train', 'r.ini', '--budget-file', 'size.txt')
    bench.expect(code == 2 and not CONTROL.search(error), f'{error!r}')
    sums = bench.folder / 'flipped/checksums.txt'
    sums.write_text('00000000 1 ' + EVIL.split()[0] + '\n')
    code, _, error = bench.run('eval', 'flipped')
    bench.expect(code == 1 and not CONTROL.search(error) and r'\x1b[2K' in error, f'{error!r}')
    header = json.dumps({'evil' + EVIL: {'dtype': 'F32', 'shape': [1], 'data_offsets': [0, 8]}})
    (bench.folder / 'evil.safetensors').write_bytes(
        struct.pack('<Q', len(header)) + header.encode() + bytes(4))
    shown(bench, 'eval', 'r.ini', '--weights', 'evil.safetensors', code=1)


def check_classes(bench):
    draw = random.Random(1)
    for split, names in (('train', ['a', 'evil' + EVIL]), ('test', ['a', 'other'])):
        for name in names:
            write_png(bench.folder / 'pictures' / split / name / '0.png', 16, 16, 3,
                      stripes(draw, False))
    bench.recipe('i.ini', IMAGES.replace('crop = 12\nrandom_crop = yes\n', ''))
    shown(bench, 'train', 'i.ini', code=1)
    (bench.folder / 'pictures/train' / ('evil' + EVIL) / '1.png').write_text('a text')
    shown(bench, 'train', 'i.ini', code=1)


def main():
    with Bench(sys.argv[1]) as bench:
        bench.good('train', 'r.ini', '--quiet', '--steps', 2, '--out', 'run')
        check_sizes(bench)
        check_budget_file(bench)
        check_large_budget(bench)
        check_numbers(bench)
        check_labels(bench)
        check_tables(bench)
        check_facts(bench)
        check_weights(bench)
        check_out(bench)
        check_paths(bench)
        check_arguments(bench)
        check_recipes(bench)
        check_files(bench)
        check_classes(bench)
        bench.end()


if __name__ == '__main__':
    main()
