#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""oclgrind.py CHECK_OPS OPERATOR... [--quick]: small shapes of each operator under oclgrind, which sees
races between work-items, accesses out of bounds and reads of memory that nobody wrote; with --quick
kernels that do not suit a CPU once each in f32 and not in each type. Its exit status
says nothing: the log must be empty. Kernels are compiled without optimisation, because its check of
uninitialised memory crashes on vector shuffles that the optimiser makes; no binary is cached, so that
none with them is found."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile


def run(program, operator, log, options):
    env = {key: value for key, value in os.environ.items() if key != 'OCL_ICD_VENDORS'}
    env['QN_CACHE_DIR'] = ''
    command = ['oclgrind', '--log', log, '--data-races', '--uninitialized', '--check-api',
               '--max-errors', '20', '--global-mem-size', '536870912', '--build-options',
               '-cl-opt-disable', program, operator, '--small', *options]
    done = subprocess.run(command, text=True, env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    counts = re.findall(r'^(\d+) passed, (\d+) failed$', done.stdout, re.MULTILINE)
    return done, [int(n) for n in counts[-1]] if counts else [0, 1]


def main():
    options = [word for word in sys.argv[2:] if word.startswith('--')]
    program, operators = sys.argv[1], [word for word in sys.argv[2:] if word not in options]
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for operator in operators:
            log = pathlib.Path(folder) / f'{operator}.log'
            done, (good, bad) = run(program, operator, log, options)
            said = log.read_text() if log.exists() else ''
            if 'oclgrind' not in done.stdout.lower():
                said += f'{operator}: it did not run on oclgrind\n'
            if said or bad or done.returncode:
                print(f'{operator}: {bad} failed, log:\n{said[:3000]}\n{done.stdout[-2000:]}')
            passed, failed = passed + good, failed + max(bad, bool(said), done.returncode != 0)
    print(f'{passed} passed, {failed} failed')
    return 1 if failed or not passed else 0


if __name__ == '__main__':
    sys.exit(main())
