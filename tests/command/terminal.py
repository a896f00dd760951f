#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""terminal.py PROGRAM: a training on a terminal writes one line over and over, which fits; elsewhere
plain lines."""
import re
import sys

from support import TRAIN, Bench

UPDATES = -(-2 * TRAIN // 24)


def check_widths(bench):
    for columns in (200, 80, 40, 12):
        out = bench.on_terminal(columns, 'train', 'r.ini')
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
    bench.expect(bench.on_terminal(80, 'train', 'r.ini', '--quiet') == '', '--quiet writes on a terminal')


def main():
    with Bench(sys.argv[1]) as bench:
        check_widths(bench)
        check_plain(bench)
        bench.end()


if __name__ == '__main__':
    main()
