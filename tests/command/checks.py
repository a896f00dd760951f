#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""checks.py PROGRAM: what `quern check` says while it runs. On a terminal one line is written over and
over, which fits and goes when a line of the report comes; elsewhere there are plain lines, and with
--json nothing but JSON."""
import json
import re
import sys

from support import Bench

SHORT = ('check', '--small', '--op', 'gelu,bias')
REPORT = re.compile(r'(\w+) +(\d+) passed +(\d+) failed +\d+ not applicable')
STATUS = re.compile(r'(\d+)/(\d+)(?:  (\d+m\d\ds) left)?  (?:gelu|bias)/[\w ,]+ (?:b?f16\+?|f32) \w+(?: as \w+)?')


def shown(out):
    """The lines that were written over, and what is left in the end."""
    return re.findall(r'\r\x1b\[K([^\r\n\x1b]+)(?=\r\x1b)', out), \
        re.sub(r'\r\x1b\[K[^\r\n\x1b]*(?=\r\x1b)', '', out).replace('\r\x1b[K', '').replace('\r\n', '\n')


def check_terminal(bench, plain):
    lines, left = shown(bench.on_terminal(100, *SHORT))
    bench.expect(left == plain, f'the report on a terminal: {left!r}, in a file: {plain!r}')
    found = [STATUS.fullmatch(line) for line in lines]
    bench.expect(len(lines) >= 2 and all(found), lines)
    numbers = [int(match[1]) for match in found if match]
    bench.expect(numbers == sorted(set(numbers)), numbers)
    bench.expect(len({match[2] for match in found if match}) == 1, lines)
    bench.expect(all(int(match[1]) <= int(match[2]) and (match[3] or match[1] == '1')
                     for match in found if match), lines)
    lines, _ = shown(bench.on_terminal(20, *SHORT))
    bench.expect(lines and all(len(line) < 20 for line in lines), lines)


def check_plain(bench):
    out = bench.good(*SHORT)
    bench.expect('\r' not in out and '\x1b' not in out, 'codes of a terminal in a file')
    found = {match[1]: match for match in REPORT.finditer(out)}
    bench.expect(list(found) == ['gelu', 'bias'], out)
    bench.expect(all(int(match[2]) > 0 and match[3] == '0' for match in found.values()), out)
    return re.sub(r'(?m)^\d+/\d+ .*\n', '', out)


def check_json(bench):
    result = json.loads(bench.good(*SHORT, '--json'))
    bench.expect([op['op'] for op in result['operators']] == ['gelu', 'bias'], result)
    bench.expect(result['passed'] > 0 and result['failed'] == 0, result)


def main():
    with Bench(sys.argv[1]) as bench:
        check_terminal(bench, check_plain(bench))
        check_json(bench)
        bench.end()


if __name__ == '__main__':
    main()
