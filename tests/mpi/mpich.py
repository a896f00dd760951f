#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mpich.py ROOT LIBQUERN: the sources of quern-mpi compile with MPICH without a warning, and its processes
talk with one another. Without MPICH: 77, which Meson takes for skipped."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

JOBS = [('1', '0'), ('2', '1'), ('2', '2')]  # ranks, members of each


def main():
    root, library = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    compiler, mpirun = shutil.which('mpicc.mpich'), shutil.which('mpirun.mpich')
    if not compiler or not mpirun:
        print('skipped: there is no MPICH')
        return 77
    sources = [*sorted((root / 'src/mpi').glob('*.c')), root / 'tests/mpi/transport.c']
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, 'transport')
        subprocess.run([compiler, '-std=c11', '-Wall', '-Wextra', '-Werror', '-Wno-missing-field-initializers',
                        '-D_DEFAULT_SOURCE', '-I', root / 'src', '-I', root / 'include', *sources, '-o', program,
                        library, f'-Wl,-rpath,{library.parent}', '-lpthread'], check=True)
        for ranks, members in JOBS:
            subprocess.run([mpirun, '-n', ranks, program, members], check=True, timeout=120)
    return 0


if __name__ == '__main__':
    sys.exit(main())
