#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""network.py PROGRAM: two ranks with a slow network between them, 100 Mbit/s and 20 ms to get across, train
the same weights as two devices of one process. Each has a network namespace and a host name of its own,
and is started there as on another machine. Status 77: namespaces are not allowed here, or there is no
mpirun."""
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, folder) for folder in ('../mpi', '../support')]

from members import DEVICES, ONE
from ranks import PLAIN
from run import SETTINGS
from runs import digest, lines
from slow_line import Network
from support import Bench

UPDATES = 12
BITS_PER_SECOND, DELAY = 100e6, 0.02
KEPT = ('OCL_ICD_VENDORS', 'POCL_DEVICES', 'QN_KERNELS', 'HOME')


def check_line(bench, network):
    """What plain sockets make of the line: it is that slow."""
    carried, latency = network.carried(), network.latency()
    bench.expect(0.5 < carried / network.bandwidth < 1.02, f'{carried} bytes/s, not {network.bandwidth}')
    bench.expect(DELAY < latency < 1.5 * DELAY, f'{latency} s to get across')


def check_network(bench, network):
    args = (*PLAIN, '--steps', UPDATES)
    env = {name: value for name, value in SETTINGS.items() if name not in ('OMPI_MCA_plm_rsh_agent', 'OMPI_MCA_btl')}
    forwarded = [word for name in KEPT if name in os.environ for word in ('-x', name)]
    command = network.mpirun(*forwarded, '-n', '2', bench.program, 'train', 'fashion-mlp', *args, '--out', 'across',
                             '--metrics', 'across.json')
    done = subprocess.run(command, cwd=bench.folder, env={**os.environ, **env}, text=True, capture_output=True,
                          timeout=300, check=False)
    # Open MPI warns where its agent runs before it has given that a group of processes.
    errors = [line for line in done.stderr.splitlines() if line and 'setpgid' not in line]
    bench.expect(done.returncode == 0 and not errors, f'{done.returncode}: {done.stderr}')
    bench.good('train', 'fashion-mlp', *args, '--out', 'within', *ONE, *ONE)
    bench.expect(digest(bench, 'across') == digest(bench, 'within'), 'other bits across the network')
    members = lines(bench, 'across.json')[-1]['summary']['members']
    sent = sum(m['bytes_sent'] for m in members)
    bench.expect(min(m['waited_seconds'] for m in members) > UPDATES * DELAY, f'nobody waited: {members}')
    bench.expect(network.line.bytes > sent, f'{sent} bytes sent, {network.line.bytes} of them on the line')


def main():
    if not shutil.which('mpirun'):
        print('skipped: there is no mpirun')
        return 77
    os.environ.update(DEVICES)
    try:
        with Bench(sys.argv[1]) as bench, Network(BITS_PER_SECOND, DELAY, bench.folder) as network:
            check_network(bench, network)
            check_line(bench, network)
            bench.end()
    except (subprocess.CalledProcessError, OSError) as error:
        print(f'skipped: no namespaces with a network here: {error} {getattr(error, "stderr", "")}')
        return 77
    return 0


if __name__ == '__main__':
    sys.exit(main())
