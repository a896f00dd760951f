# SPDX-License-Identifier: MIT
"""For the end-to-end tests: a folder with a part of Fashion-MNIST, the program run in it, its
buffers counted from outside, and its files read with nothing but Python."""
import gzip
import hashlib
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

FASHION = pathlib.Path('/usr/share/datasets/fashion-mnist')
MIB = 1 << 20


def shorten(name, dims, count, folder):
    """The first `count` entries of an IDX file."""
    with gzip.open(FASHION / f'{name}.gz') as file:
        head = file.read(4 + 4 * dims)
        sizes = struct.unpack(f'>{dims}I', head[4:])
        size = count
        for dim in sizes[1:]:
            size *= dim
        data = file.read(size)
    (folder / name).write_bytes(head[:4] + struct.pack(f'>{dims}I', count, *sizes[1:]) + data)


def write_data(folder, train, test):
    folder.mkdir()
    for name, count in (('train', train), ('t10k', test)):
        shorten(f'{name}-images-idx3-ubyte', 3, count, folder)
        shorten(f'{name}-labels-idx1-ubyte', 1, count, folder)


def tensors(path):
    """The tensors of a safetensors file: name -> (type, shape, bytes)."""
    data = pathlib.Path(path).read_bytes()
    length, = struct.unpack('<Q', data[:8])
    header = json.loads(data[8:8 + length])
    header.pop('__metadata__', None)
    start, found, used = 8 + length, {}, 0
    for name, info in header.items():
        begin, end = info['data_offsets']
        found[name] = (info['dtype'], info['shape'], data[start + begin:start + end])
        used += end - begin
    assert start + used == len(data), f'{path}: {start + used} bytes, not {len(data)}'
    return found


def digest(path):
    """SHA-256 over names, shapes and data of all tensors."""
    sha = hashlib.sha256()
    for name, (dtype, shape, data) in sorted(tensors(path).items()):
        sha.update(f'{name} {dtype} {shape}\n'.encode())
        sha.update(data)
    return sha.hexdigest()


class Run:
    """What one run of the program left."""

    def __init__(self, process, out, error, metrics, counts):
        self.code, self.out, self.error = process.returncode, out, error
        self.plan = self.summary = self.counts = None
        self.updates = []
        if metrics.exists():
            rows = [json.loads(line) for line in metrics.read_text().splitlines()]
            self.plan = next((row['plan'] for row in rows if 'plan' in row), None)
            self.summary = next((row['summary'] for row in rows if 'summary' in row), None)
            self.updates = [row for row in rows if 'step' in row]
        if counts.exists():
            self.counts = json.loads(counts.read_text())


class Bench:
    """A temporary folder with data; counts what holds and what does not."""

    def __init__(self, program, clcount=None, train=1536, test=128):
        self.program = str(pathlib.Path(program).resolve())
        self.clcount = str(pathlib.Path(clcount).resolve()) if clcount else None
        self.keeper = tempfile.TemporaryDirectory(prefix='quern-e2e-')
        self.folder = pathlib.Path(self.keeper.name).resolve()
        self.passed = self.failed = self.number = 0
        write_data(self.folder / 'data', train, test)

    def environment(self, **more):
        env = {**os.environ, **{key: str(value) for key, value in more.items()}}
        if self.clcount:  # by its name alone: the loader would split a path at blanks
            folder, env['LD_PRELOAD'] = os.path.split(self.clcount)
            env['LD_LIBRARY_PATH'] = f"{folder}:{env.get('LD_LIBRARY_PATH', '')}"
            env['CLCOUNT_FILE'] = str(self.folder / 'counts.json')
        return env

    def start(self, *args, **env):
        return subprocess.Popen([self.program, *map(str, args)], cwd=self.folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=self.environment(**env))

    def run(self, *args, **env):
        process = self.start(*args, **env)
        out, error = process.communicate(timeout=900)
        return process, out, error

    def train(self, *args, recipe='fashion-mnist', **env):
        """`quern train` on the short data, with default kernels unless told otherwise."""
        metrics, counts = self.folder / 'metrics.json', self.folder / 'counts.json'
        metrics.unlink(missing_ok=True)
        counts.unlink(missing_ok=True)
        done = self.run('train', recipe, '--set', f'data.path={self.folder / "data"}', '--tune',
                        'off', '--metrics', metrics, *args, **env)
        return Run(*done, metrics, counts)

    def weights(self, *args, **more):
        """Trains into a new folder; the digest of the last weights and the run."""
        self.number += 1
        out = self.folder / f'out{self.number}'
        run = self.train('--out', out, *args, **more)
        self.expect(run.code == 0, f'train {args}: {run.code}: {run.error.strip()}')
        return digest(out / 'last' / 'weights.safetensors') if run.code == 0 else None, run

    def expect(self, condition, text):
        self.passed += bool(condition)
        self.failed += not condition
        if not condition:
            print('FAILED', text, flush=True)
        return condition

    def end(self):
        self.keeper.cleanup()
        print(f'{self.passed} passed, {self.failed} failed')
        sys.exit(1 if self.failed or not self.passed else 0)
