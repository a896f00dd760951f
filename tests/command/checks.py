#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""checks.py PROGRAM [LIBCRASHES]: what `quern check` says while it runs. On a terminal one line is
written over and over, which fits and goes when a line of the report comes; elsewhere there are plain
lines, and with --json nothing but JSON. LIBCRASHES is a driver that crashes where it is told to."""
import json
import os
import re
import sys

from support import Bench

SHORT = ('check', '--small', '--op', 'gelu,bias')
ACTIVATIONS = ['sigmoid', 'tanh', 'gelu', 'silu', 'hardswish']
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


def crashing(bench, library, names, *args):
    """(exit code, standard output, standard error) where these kernels cannot be made."""
    folder, name = os.path.split(os.path.abspath(library))
    return bench.run(*args, LD_PRELOAD=name, LD_LIBRARY_PATH=folder, CRASHES_AT=names)


def check_crashes(bench, library, ops):
    """These operators end their process, the others are checked; nothing is left out."""
    kernels = ','.join(f'{op}_forward' for op in ops)
    code, out, error = crashing(bench, library, kernels, 'check', '--small', '--op', ','.join(ACTIVATIONS))
    found = {match[1]: match for match in REPORT.finditer(out)}
    bench.expect(list(found) == ACTIVATIONS, out)
    bench.expect(all((match[3] == '1') == (op in ops) for op, match in found.items()), out)
    crashes = re.findall(r'FAILED (\w+)/.*: the driver ended the process by signal 9 \(Killed\)\n', out)
    bench.expect(sorted(crashes) == sorted(ops), out)
    bench.expect(code == 1 and re.fullmatch(rf'quern: check: {len(ops)} of \d+ checks failed\n', error),
                 (code, error))


def check_crash_of_all(bench, library):
    """A driver that crashes while the device is opened is told of once."""
    code, out, error = crashing(bench, library, 'context', *SHORT)
    bench.expect(code == 1 and not out, (code, out))
    bench.expect(error == 'quern: check: the driver ended the process by signal 9 (Killed) before an '
                          'operator was checked\n', error)


def main():
    with Bench(sys.argv[1]) as bench:
        check_terminal(bench, check_plain(bench))
        check_json(bench)
        for library in sys.argv[2:]:
            check_crashes(bench, library, ['sigmoid'])
            check_crashes(bench, library, ACTIVATIONS)
            check_crash_of_all(bench, library)
        bench.end()


if __name__ == '__main__':
    main()
