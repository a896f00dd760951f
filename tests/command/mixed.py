#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mixed.py PROGRAM DRIVER: devices of PoCL and of another driver train one model, as members of one process
and of two, beside PoCL alone. The driver is one of drivers.py. Status 77: it is not here."""
import os
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '../mpi'))

from drivers import DRIVERS
from members import compare
from ranks import PLAIN, Ranks
from runs import digest, lines

POCL = '/etc/OpenCL/vendors/pocl.icd'
NAMES = {'rusticl': 'rusticl', 'intel': 'Intel(R) OpenCL'}
NEAR = 1e-5  # their kernels differ, their sums do not
UPDATES = 20


def train(bench, out, args, ranks=None):
    """There may be warnings of what the driver cannot do."""
    code, _, error = bench.run('train', 'fashion-mlp', *PLAIN, '--steps', UPDATES, '--set', 'train.optimizer=sgd',
                               '--out', out, '--metrics', f'{out}.json', *args, ranks=ranks)
    others = [line for line in error.splitlines()
              if 'cannot be launched on this device' not in line and 'ends long loops' not in line]
    bench.expect(code == 0 and not others, f'{out}: {code}: {error}')


def main():
    driver = sys.argv[2]
    icd, env = DRIVERS[driver]
    icd = os.environ.get(f'QN_{driver.upper()}_ICD', icd)
    if not os.path.exists(icd) or not os.path.exists(POCL):
        print(f'skipped: {driver} is not installed: no {icd}')
        return 77
    with Ranks(sys.argv[1]) as bench:
        vendors = bench.folder / 'vendors'
        vendors.mkdir()
        for path in (icd, POCL):
            shutil.copy(path, vendors)
        os.environ.update(env, OCL_ICD_VENDORS=str(vendors), POCL_DEVICES='basic')
        pocl, other = ('--device', 'Portable'), ('--device', NAMES[driver])
        code, out, error = bench.run('devices')
        if NAMES[driver] not in out:
            print(f'skipped: {driver} has no device here: {code}: {error}')
            return 77
        train(bench, 'one', pocl)
        train(bench, 'within', (*pocl, *other))
        one = lines(bench, 'one.json'), 'one'
        compare(bench, f'PoCL beside {driver}', lines(bench, 'within.json'), 'within', one, NEAR)
        if shutil.which('mpirun'):
            train(bench, 'across', (), [pocl, other])
            compare(bench, f'ranks of PoCL and {driver}', lines(bench, 'across.json'), 'across', one, NEAR)
            bench.expect(digest(bench, 'across') == digest(bench, 'within'), 'other bits in two processes')
        bench.end()
    return 0


if __name__ == '__main__':
    sys.exit(main())
