#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tensorboard.py PROGRAM [package]: event files of --tensorboard have the figures of --metrics, read by
a few lines here, or by the package tensorboard from PyPI in an environment of its own. Status 77: it
cannot be had."""
import json
import struct
import subprocess
import sys

from support import TRAIN, Bench

UPDATES = -(-2 * TRAIN // 24)
LONG = 20  # epochs: steps of two bytes
PACKAGE = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
board = EventAccumulator(sys.argv[1], size_guidance={'scalars': 0})
board.Reload()
print(json.dumps({tag: [(e.step, e.value) for e in board.Scalars(tag)]
                  for tag in board.Tags()['scalars']}))
"""


def masked_sum(data):
    """CRC-32C as TFRecord has it."""
    value = 0xffffffff
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82f63b78 if value & 1 else 0)
    value ^= 0xffffffff
    return ((value >> 15 | value << 17) + 0xa282ead8) & 0xffffffff


def records(path):
    data = path.read_bytes()
    while data:
        length, = struct.unpack('<Q', data[:8])
        event = data[12:12 + length]
        assert struct.unpack('<I', data[8:12])[0] == masked_sum(data[:8]), 'the sum of a length'
        assert struct.unpack('<I', data[12 + length:16 + length])[0] == masked_sum(event), 'a sum'
        yield event
        data = data[16 + length:]


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if not data[at - 1] & 0x80:
            return value, at


def fields(data):
    """{number of a field: its values} of a message."""
    found, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
        else:
            size = {1: 8, 5: 4}[key & 7]
            value, at = struct.unpack({8: '<d', 4: '<f'}[size], data[at:at + size])[0], at + size
        found.setdefault(key >> 3, []).append(value)
    return found


def scalars(bench, folder):
    """{tag: [(step, value), ...]} of all files, as if the reader began anew where they say so."""
    found, wall = {}, 0
    for path in sorted((bench.folder / folder).iterdir()):
        bench.expect(path.name.startswith('events.out.tfevents.'), path.name)
        first, start, *events = map(fields, records(path))
        bench.expect(first[3] == [b'brain.Event:2'] and fields(start[7][0]) == {1: [1]}, f'{first}')
        for points in found.values():
            points[:] = [point for point in points if point[0] < start[2][0]]
        for event in events:
            bench.expect(event[1][0] >= wall > 0 or not wall, 'time goes back')
            wall = event[1][0]
            for value in map(fields, fields(event[5][0])[1]):
                found.setdefault(value[1][0].decode(), []).append((event[2][0], value[2][0]))
    return found


def wanted(bench, *names):
    """The same from the metrics."""
    out = {}
    for name in names:
        for row in map(json.loads, (bench.folder / name).read_text().splitlines()):
            if 'step' in row:
                row['samples_per_second'] = row['samples'] / row['seconds']
                for key in ('loss', 'lr', 'grad_norm', 'samples_per_second'):
                    out.setdefault(f'train/{key}', {})[row['step'] + 1] = row[key]
            for key, value in row.get('evaluation', {}).items():
                if key.startswith('test_') and key != 'test_samples':
                    out.setdefault(f'test/{key[5:]}', {})[row['evaluation']['updates']] = value
    return {key: sorted(points.items()) for key, points in out.items()}


def single(number):
    return struct.unpack('<f', struct.pack('<f', number))[0]


def same(found, want):
    return found.keys() == want.keys() and all(
        [(at, single(value)) for at, value in want[tag]] == [tuple(point) for point in found[tag]]
        for tag in want)


def check_own(bench):
    bench.good('train', 'r.ini', '--quiet', '--tensorboard', 'logs/a', '--metrics', 'a.json',
               '--epochs', LONG)
    found, want = scalars(bench, 'logs/a'), wanted(bench, 'a.json')
    bench.expect(same(found, want), f'{found}\n{want}')
    bench.expect(len(found['train/loss']) == -(-LONG * TRAIN // 24) and
                 len(found['test/accuracy']) == LONG, f'{found}')
    bench.good('train', 'r.ini', '--quiet', '--out', 'b', '--steps', 12, '--tensorboard', 'logs/b',
               '--metrics', 'b1.json')
    bench.good('resume', 'b/update-00000009', '--quiet', '--out', 'c', '--steps', UPDATES,
               '--tensorboard', 'logs/b', '--metrics', 'b2.json')
    found, want = scalars(bench, 'logs/b'), wanted(bench, 'b1.json', 'b2.json')
    want['test/accuracy'] = [point for point in want['test/accuracy'] if point[0] != 12]
    want['test/loss'] = [point for point in want['test/loss'] if point[0] != 12]
    bench.expect(len(list((bench.folder / 'logs/b').iterdir())) == 2 and same(found, want),
                 f'after a resumption: {found}\n{want}')


def check_bad(bench):
    (bench.folder / 'file').write_text('')
    for folder, code, want in (('file/logs', 1, 'file/logs: Not a directory'),
                               ('file', 1, 'file/events.out.tfevents.'),
                               ('', 2, '--tensorboard: needs the name of a folder'),
                               ('x' * 4000, 2, '--tensorboard: the path is too long')):
        got, _, error = bench.run('train', 'r.ini', '--quiet', '--tensorboard', folder)
        bench.expect(got == code and error.startswith(f'quern: {want}') and error.count('\n') == 1,
                     f'{folder[:20]}: {got} {error}')


def check_package(bench):
    venv = bench.folder / 'venv'
    made = subprocess.run([sys.executable, '-m', 'venv', venv]).returncode == 0 and subprocess.run(
        [venv / 'bin/pip', 'install', '--quiet', 'tensorboard', 'setuptools<81']).returncode == 0
    if not made:
        print('skipped: the package tensorboard cannot be installed here')
        return 77
    for folder in ('a', 'b'):
        out = subprocess.run([venv / 'bin/python', '-c', PACKAGE, bench.folder / 'logs' / folder],
                             text=True, check=True, stdout=subprocess.PIPE).stdout
        found, want = json.loads(out), scalars(bench, f'logs/{folder}')
        bench.expect(found == {tag: [list(point) for point in points]
                               for tag, points in want.items()}, f'{found}\n{want}')
    return 0


def main():
    with Bench(sys.argv[1]) as bench:
        check_own(bench)
        check_bad(bench)
        status = check_package(bench) if sys.argv[2:] == ['package'] else 0
        if status and not bench.failed:
            sys.exit(status)
        bench.end()


if __name__ == '__main__':
    main()
