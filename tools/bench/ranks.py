# SPDX-License-Identifier: MIT
"""Trainings of two processes for members.py: mpirun on this machine, each rank on a core of its own, or
across two network namespaces whose link is slow."""
import os
import pathlib
import shutil
import subprocess
import sys

from cores import CORES

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'tests/support'))

from slow_line import Network

# For Open MPI: root may run it, and it binds nobody, since we do. Ranks sleep when they wait: to yield
# besides would give the core to whoever is busy on it, for a whole slice.
SETTINGS = {'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1',
            'OMPI_MCA_rmaps_base_oversubscribe': '1', 'OMPI_MCA_mpi_yield_when_idle': '0',
            'OMPI_MCA_hwloc_base_binding_policy': 'none', 'OMPI_MCA_pml': 'ob1'}
HERE = {'OMPI_MCA_btl': 'self,vader', 'OMPI_MCA_btl_vader_single_copy_mechanism': 'none',
        'OMPI_MCA_plm_rsh_agent': '/bin/false'}

# Each rank puts itself on the core of its number.
PINNED = f'exec taskset -c $((OMPI_COMM_WORLD_RANK ? {CORES[-1]} : {CORES[0]})) "$@"'


def on_cores(command):
    """Two ranks, a core each."""
    return ['mpirun', '-n', '2', 'sh', '-c', PINNED, 'sh', *map(str, command)]


def rank_pids(program, metrics):
    """The processes of the ranks, which have this file of figures among their arguments."""
    found = []
    for place in pathlib.Path('/proc').glob('[0-9]*'):
        try:
            arguments = (place / 'cmdline').read_bytes().split(b'\0')
        except OSError:
            continue  # it has ended
        if arguments[0] == os.fsencode(program) and os.fsencode(metrics) in arguments:
            found.append(int(place.name))
    return found


# --- a slow link ---


def sh(command):
    done = subprocess.run(command, shell=True, check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    return done.returncode == 0, done.stdout.strip()


class Link(Network):
    """As the line of the tests: `rate` bits per second each way, and `delay` milliseconds to get across."""

    def __init__(self, rate, delay, folder):
        super().__init__(rate, delay / 1e3, folder)
        self.told = ''

    def look(self):
        """What plain sockets make of it."""
        self.told = f'{8e-6 * self.carried():.1f} Mbit/s of a stream, {1e3 * self.latency():.2f} ms to get across'

    def command(self, command):
        """A rank at each end, on a core of its own."""
        return self.mpirun('-n', '2', 'sh', '-c', PINNED, 'sh', *command)


def why_no_link():
    """Why there can be none; None: there can."""
    for program in ('ip', 'mpirun'):
        if not shutil.which(program):
            return f'there is no {program}'
    if not os.path.exists('/dev/net/tun'):
        return 'there is no /dev/net/tun'
    good, out = sh('ip netns add quern-try && ip netns del quern-try')
    return None if good else f'no network namespaces: {out}'
