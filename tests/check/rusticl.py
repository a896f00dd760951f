#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""rusticl.py CHECK_OPS: the harness on a second OpenCL implementation (rusticl on llvmpipe, from the
package mesa-opencl-icd), as a report: what fails there is printed and is no failure of the tests,
because that driver has faults (kernel_limits.c) and its compiler takes up to a minute for a kernel."""
import os
import re
import subprocess
import sys

ICD = '/etc/OpenCL/vendors/rusticl.icd'


def main():
    if not os.path.exists(ICD):
        print('rusticl is not installed (package mesa-opencl-icd)')
        return 1
    env = {**os.environ, 'OCL_ICD_VENDORS': ICD, 'RUSTICL_ENABLE': 'llvmpipe'}
    try:
        done = subprocess.run([sys.argv[1], '--small', '--quick'], env=env, text=True, timeout=1500,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired as late:
        print(f'report: not done after {late.timeout} s')
        return 0
    print('\n'.join(line[:300] for line in done.stdout.splitlines() if line.startswith('FAILED')))
    last = re.findall(r'^(\d+) passed, (\d+) failed$', done.stdout, re.MULTILINE)
    print(f'report: {last[-1][0]} good, {last[-1][1]} bad on rusticl' if last
          else f'report: it ended with {done.returncode}\n{done.stdout[-1000:]}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
