#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""far.py CHECK_OPS LAZY [OPERATORS]: every operator with operands beyond 2^31 elements of their buffers,
under oclgrind, which has the room: what lies before them is never touched, and LAZY, a library to
preload, keeps the simulator from touching it. An offset that a kernel counted in 32 bits would read or
write elsewhere. Kernels of matrix units, which are emulated there, run where OPERATORS, with commas, are named."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

FAR, MEMORY = 4 * 2**31 + 2**12, 40 * 2**30


def run(options):
    """How many checks passed and failed; what is wrong is printed."""
    env = {key: value for key, value in os.environ.items() if key != 'OCL_ICD_VENDORS'}
    env['QN_CACHE_DIR'] = ''
    env['LD_PRELOAD'] = sys.argv[2]
    env['MALLOC_PERTURB_'] = '0'  # else malloc writes to all that it gives
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / 'log'
        done = subprocess.run(
            ['oclgrind', '--log', log, '--max-errors', '20', '--global-mem-size', str(MEMORY),
             '--build-options', '-cl-opt-disable', sys.argv[1], '--far', str(FAR),
             *options],
            text=True, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        said = log.read_text() if log.exists() else ''
    counts = re.findall(r'^(\d+) passed, (\d+) failed$', done.stdout, re.MULTILINE)
    passed, failed = map(int, counts[-1]) if counts else (0, 1)
    if 'oclgrind' not in done.stdout.lower():
        said += 'it did not run on oclgrind\n'
    if said or failed or done.returncode:
        print(f'{said[:3000]}\n{done.stdout[-3000:]}')
        failed = max(failed, 1)
    return passed, failed


def main():
    passed, failed = run(sys.argv[3:])
    print(f'{passed} passed, {failed} failed')
    return 1 if failed or not passed else 0


if __name__ == '__main__':
    sys.exit(main())
