#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""terminal.py PROGRAM: a training on a terminal writes one line over and over, which fits; elsewhere
plain lines."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

from support import TRAIN, Bench

UPDATES = -(-2 * TRAIN // 24)


def on_terminal(bench, columns, *args):
    """What a training writes on a terminal of so many columns."""
    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))
    process = subprocess.Popen([bench.program, 'train', 'r.ini', *args], stdout=end,
                               stderr=subprocess.PIPE, cwd=bench.folder)
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
    bench.expect(process.returncode == 0 and not error, f'{columns}: {error}')
    return out.decode()


def check_widths(bench):
    for columns in (200, 80, 40, 12):
        out = on_terminal(bench, columns)
        written = re.findall(r'\r\x1b\[K([^\r\n\x1b]*loss[^\r\n\x1b]*)', out)
        status = [line for line in written if not line.startswith('epoch')]
        bench.expect(len(status) >= 2 and all(len(line) < columns for line in status),
                     f'{columns}: {status}')
        last = status[-1]
        if columns == 200:
            bench.expect(re.fullmatch(
                rf'\[=+\]  {UPDATES}/{UPDATES}  loss \d\.\d{{4}}  accuracy \d+\.\d\d %  '
                r'\d+ samples/s  0m00s left  \S+ KiB of 4 MiB  epoch 2\.04', last), last)
            bench.expect(re.match(r'\[=?> ', status[0]) and 'accuracy' not in status[0], status[0])
        bench.expect('loss' in last and (columns < 80 or last.startswith('[')), f'{columns}: {last}')
        bench.expect(out.count('test accuracy') == 2, 'evaluations have lines of their own')


def check_plain(bench):
    out = bench.good('train', 'r.ini')
    bench.expect('\r' not in out and '\x1b' not in out, 'codes of a terminal in a file')
    bench.expect(re.search(rf'(?m)^epoch 2\.04  update {UPDATES}/{UPDATES}  loss .* of 4 MiB$', out),
                 out)
    bench.expect(on_terminal(bench, 80, '--quiet') == '', '--quiet writes on a terminal')


def main():
    with Bench(sys.argv[1]) as bench:
        check_widths(bench)
        check_plain(bench)
        bench.end()


if __name__ == '__main__':
    main()
