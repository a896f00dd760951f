#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run.py RANKS PROGRAM [ARGUMENT]...: runs the program in that many processes of this machine. Without
mpirun: 77, which Meson takes for skipped. A program whose last argument is "fails" must fail, after
each process has said how it "ended:"."""
import os
import shutil
import subprocess
import sys

# For Open MPI; others ignore them. Ranks share few cores, and containers forbid to read the memory
# of other processes. It leaks, and so does what a failure leaves, which MPI may still use.
SETTINGS = {'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1',
            'OMPI_MCA_rmaps_base_oversubscribe': '1', 'OMPI_MCA_mpi_yield_when_idle': '1',
            'OMPI_MCA_hwloc_base_binding_policy': 'none',
            'OMPI_MCA_btl_vader_single_copy_mechanism': 'none', 'OMPI_MCA_btl': 'self,vader',
            'OMPI_MCA_plm_rsh_agent': '/bin/false', 'OMPI_MCA_pml': 'ob1',
            'LSAN_OPTIONS': 'detect_leaks=0'}


def main():
    ranks, *command = sys.argv[1:]
    mpirun = shutil.which('mpirun')
    if not mpirun:
        print('skipped: there is no mpirun')
        return 77
    done = subprocess.run([mpirun, '-n', ranks, *command], env={**os.environ, **SETTINGS},
                          text=True, stdout=subprocess.PIPE, check=False)
    print(done.stdout)
    if command[-1] != 'fails':
        return done.returncode
    return 0 if done.returncode and done.stdout.count('ended: ') == int(ranks) else 1


if __name__ == '__main__':
    sys.exit(main())
