# SPDX-License-Identifier: MIT
"""Trainings of two processes for members.py: mpirun on this machine, each rank on a core of its own, or
across two network namespaces whose link is slow."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

from cores import CORES

# For Open MPI: root may run it, waiting ranks give way, and it binds nobody, since we do.
SETTINGS = {'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1',
            'OMPI_MCA_rmaps_base_oversubscribe': '1', 'OMPI_MCA_mpi_yield_when_idle': '1',
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

NET, MTU, HEADERS = '10.98.76', 1500, 52  # IP, TCP with time stamps
FRAME = 14
AGENT = """#!/bin/sh
# HOST COMMAND...: runs it there, for mpirun.
shift
exec ip netns exec {namespace} sh -c "$*"
"""


# Programs of Python's that send packets to and fro.
ECHO = """import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('{host}', 4711)); print(flush=True)
while True: s.sendto(*s.recvfrom(64))
"""
ASK = """import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5); least = 9
for _ in range(20):
    began = time.perf_counter(); s.sendto(b'x', ('{host}', 4711)); s.recv(64)
    least = min(least, time.perf_counter() - began)
print(least)
"""


def sh(command):
    done = subprocess.run(command, shell=True, check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    return done.returncode == 0, done.stdout.strip()


class Link:
    """Two namespaces, and a link that carries `rate` bits per second each way. Without netem nothing
    delays it: the kernel here may not have it."""

    def __init__(self, rate, delay, folder):
        self.names = [f'quern{os.getpid()}-{end}' for end in (0, 1)]
        self.rate, self.delay, self.folder, self.missing = rate, delay, folder, None

    def __enter__(self):
        for end, name in enumerate(self.names):
            self.need(f'ip netns add {name}')
        self.need(f'ip link add qnl0 netns {self.names[0]} type veth peer name qnl1 netns {self.names[1]}')
        for end, name in enumerate(self.names):
            inside = f'ip netns exec {name}'
            self.need(f'{inside} ip addr add {NET}.{end + 1}/24 dev qnl{end}')
            self.need(f'{inside} ip link set lo up')
            self.need(f'{inside} ip link set qnl{end} up')
            self.slow_down(inside, end)
        agent = self.folder / 'agent'
        agent.write_text(AGENT.format(namespace=self.names[1]))
        agent.chmod(0o755)
        return self

    def need(self, command):
        if self.missing:
            return
        good, out = sh(command)
        self.missing = None if good else f'{command}: {out}'

    def slow_down(self, inside, end):
        base = f'{inside} tc qdisc add dev qnl{end}'
        if self.delay and not sh(f'{base} root netem rate {self.rate:.0f}bit delay {self.delay}ms limit 10000')[0]:
            self.delay = 0
            print(f'  no netem here: {self.names[end]} has no delay of its own')
        if not self.delay:
            self.need(f'{base} root tbf rate {self.rate:.0f}bit burst 16kb latency 50ms')

    def __exit__(self, *_):
        for name in self.names:
            sh(f'ip netns del {name}')

    @property
    def bandwidth(self):
        """Bytes of messages per second."""
        return self.rate / 8 * (MTU - HEADERS) / (MTU + FRAME)

    def latency(self):
        """Seconds of one way, half of what the fastest of some round trips takes."""
        here, there = (['ip', 'netns', 'exec', name, sys.executable, '-c'] for name in self.names)
        with subprocess.Popen([*there, ECHO.format(host=f'{NET}.2')], stdout=subprocess.PIPE) as echo:
            echo.stdout.readline()
            out = subprocess.run([*here, ASK.format(host=f'{NET}.2')], check=True, text=True, stdout=subprocess.PIPE)
            echo.kill()
        return float(out.stdout) / 2

    def command(self, command):
        """A rank at each end, on a core of its own."""
        settings = {'btl': 'self,tcp', 'btl_tcp_if_include': f'{NET}.0/24', 'oob_tcp_if_include': f'{NET}.0/24',
                    'plm_rsh_agent': self.folder / 'agent', 'plm_rsh_no_tree_spawn': '1'}
        keys = [part for key, value in settings.items() for part in ('--mca', key, str(value))]
        return ['ip', 'netns', 'exec', self.names[0], 'mpirun', *keys, '--host', f'{NET}.1:1,{NET}.2:1', '-n', '2',
                'sh', '-c', PINNED, 'sh', *map(str, command)]


def why_no_link():
    """Why there can be none; None: there can."""
    for program in ('ip', 'tc', 'mpirun'):
        if not shutil.which(program):
            return f'there is no {program}'
    good, out = sh('ip netns add quern-try && ip netns del quern-try')
    return None if good else f'no network namespaces: {out}'
