# SPDX-License-Identifier: MIT
"""For the tests of the command: a folder with small data and recipes, and running the program."""
import fcntl
import os
import pathlib
import pty
import struct
import subprocess
import sys
import tempfile
import termios

RECIPE = """[model]
name = mlp
hidden1 = 64
hidden2 = 0
[data]
path = {data}
[train]
batch = 24
epochs = 2
optimizer = sgd
momentum = 0.9
lr = 0.1
schedule = cosine
save_every = 5
[memory]
budget = 4MiB
tune = off
"""
TRAIN, TEST = 200, 60


def idx(code, dims, data):
    return struct.pack(f'>BBBB{len(dims)}I', 0, 0, code, len(dims), *dims) + bytes(data)


def images(count, seed):
    """Images of 8 x 8 whose brightest rows tell the label, with some noise."""
    out = bytearray()
    for i in range(count):
        for pixel in range(64):
            noise = (i * 2654435761 + pixel * 40503 + seed * 97) >> 7 & 63
            out.append(noise + (160 if pixel // 22 == i % 3 else 0))
    return out


def write_data(folder):
    folder.mkdir()
    for name, count, seed in (('train', TRAIN, 1), ('t10k', TEST, 2)):
        (folder / f'{name}-images-idx3-ubyte').write_bytes(
            idx(8, (count, 8, 8), images(count, seed)))
        (folder / f'{name}-labels-idx1-ubyte').write_bytes(
            idx(8, (count,), [i % 3 for i in range(count)]))


class Bench:
    """A temporary folder; `with` removes it."""

    def __init__(self, program):
        self.program = str(pathlib.Path(program).resolve())
        self.keeper = tempfile.TemporaryDirectory(prefix='quern-test-')
        self.folder = pathlib.Path(self.keeper.name).resolve()
        self.passed = self.failed = 0

    def __enter__(self):
        write_data(self.folder / 'data')
        self.recipe()
        return self

    def __exit__(self, *_):
        self.keeper.cleanup()

    def recipe(self, name='r.ini', text=RECIPE, **changes):
        for old, new in changes.items():
            assert old in text
            text = text.replace(old, new)
        (self.folder / name).write_text(text.format(data=self.folder / 'data'))
        return name

    def start(self, *args, **env):
        return subprocess.Popen([self.program, *map(str, args)], cwd=self.folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env={**os.environ, **env})

    def run(self, *args, **env):
        """(exit code, standard output, standard error)"""
        process = self.start(*args, **env)
        out, error = process.communicate(timeout=300)
        return process.returncode, out, error

    def good(self, *args, **env):
        code, out, error = self.run(*args, **env)
        self.expect(code == 0 and not error, f'{args}: {code}: {error.strip()}')
        return out

    def on_terminal(self, columns, *args):
        """What the program writes on a terminal of so many columns."""
        terminal, end = pty.openpty()
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))
        process = subprocess.Popen([self.program, *args], stdout=end, stderr=subprocess.PIPE,
                                   cwd=self.folder)
        os.close(end)
        out = b''
        while True:
            try:
                part = os.read(terminal, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            out += part
        os.close(terminal)
        error = process.communicate()[1]
        self.expect(process.returncode == 0 and not error, f'{args} on {columns}: {error}')
        return out.decode()

    def expect(self, condition, text):
        if condition:
            self.passed += 1
        else:
            self.failed += 1
            print('FAILED', text)

    def end(self):
        print(f'{self.passed} passed, {self.failed} failed')
        sys.exit(1 if self.failed else 0)
