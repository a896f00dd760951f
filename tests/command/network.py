#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""network.py PROGRAM: two ranks with a slow network between them, 100 Mbit/s and 20 ms to get across, train
the same weights as two devices of one process. Each has a network namespace and a host name of its own,
and is started there as on another machine. Their line is a thread of this program, as few kernels have
netem. Status 77: namespaces are not allowed here, or there is no mpirun.
network.py enter NAME COMMAND...: runs the command on that machine; mpirun does so."""
import collections
import ctypes
import fcntl
import os
import select
import shutil
import struct
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ADDRESSES = ['10.77.{}.1', '10.77.{}.2']
UPDATES = 12
BITS_PER_SECOND, DELAY = 100e6, 0.02
CLONE_NEWNET, TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x40000000, 0x400454ca, 1, 0x1000


def name_of(number):
    return f'quern{os.getpid()}-{number}'


def ip(*args):
    subprocess.run(['ip', *args], check=True, capture_output=True, text=True)


def enter(namespace, *command):
    """The command, in that namespace, with its name as that of the host."""
    return ['ip', 'netns', 'exec', namespace, 'unshare', '--uts', 'sh', '-c',
            f'hostname {namespace} && exec "$@"', 'sh', *command]


def open_end(namespace):
    """The end of the line that is a network device of the namespace; what it sends is read from it."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open('/proc/self/ns/net', encoding='ascii') as here, \
            open(f'/run/netns/{namespace}', encoding='ascii') as there:
        if libc.setns(there.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), 'setns')
        try:
            end = os.open('/dev/net/tun', os.O_RDWR | os.O_NONBLOCK)
            fcntl.ioctl(end, TUNSETIFF, struct.pack('16sH22x', b'line', IFF_TUN | IFF_NO_PI))
        finally:
            libc.setns(here.fileno(), CLONE_NEWNET)
    return end


class Line(threading.Thread):
    """Carries packets from either end to the other: one after another, each for its bits, and then for the
    delay."""

    def __init__(self, ends):
        super().__init__(daemon=True)
        self.ends, self.ending, self.bytes = ends, False, 0

    def run(self):
        free, under_way = [0.0, 0.0], [collections.deque(), collections.deque()]
        while not self.ending:
            now = time.monotonic()
            for side in (0, 1):
                while under_way[side] and under_way[side][0][0] <= now:
                    try:
                        os.write(self.ends[1 - side], under_way[side].popleft()[1])
                    except OSError:  # a line may lose packets
                        pass
            due = min((queue[0][0] for queue in under_way if queue), default=now + 0.05)
            ready, _, _ = select.select(self.ends, [], [], max(0, due - time.monotonic()))
            for end in ready:
                side, packet = self.ends.index(end), os.read(end, 65536)
                free[side] = max(free[side], time.monotonic()) + 8 * len(packet) / BITS_PER_SECOND
                under_way[side].append((free[side] + DELAY, packet))
                self.bytes += len(packet)


class Network:
    """Two namespaces with a slow line between them; `with` removes them."""

    def __enter__(self):
        self.names = [name_of(number) for number in (0, 1)]
        self.addresses = [address.format(os.getpid() % 250) for address in ADDRESSES]
        self.line = Line([])
        try:
            for name, address in zip(self.names, self.addresses):
                ip('netns', 'add', name)
                self.line.ends.append(open_end(name))
                ip('-n', name, 'address', 'add', f'{address}/24', 'dev', 'line')
                for device in ('lo', 'line'):
                    ip('-n', name, 'link', 'set', device, 'up')
        except (subprocess.CalledProcessError, OSError):
            self.__exit__()
            raise
        self.line.start()
        return self

    def __exit__(self, *_):
        self.line.ending = True
        if self.line.is_alive():
            self.line.join()
        for end in self.line.ends:
            os.close(end)
        for name in self.names:
            subprocess.run(['ip', 'netns', 'delete', name], check=False, capture_output=True)


def write_agent(bench, network):
    """What mpirun starts its daemons with: AGENT ADDRESS COMMAND."""
    agent = bench.folder / 'agent'
    agent.write_text(f'#!/bin/sh\nshift\nexec {sys.executable} {os.path.abspath(__file__)} '
                     f'enter {network.names[1]} "$@"\n')
    agent.chmod(0o755)
    return agent


def mpirun(bench, network, *args):
    settings = {'plm_rsh_agent': write_agent(bench, network), 'btl': 'self,tcp', 'btl_tcp_if_include': 'line',
                'oob_tcp_if_include': 'line'}
    options = [word for item in settings.items() for word in ('--mca', *map(str, item))]
    forwarded = [word for name in ('OCL_ICD_VENDORS', 'POCL_DEVICES', 'QN_KERNELS', 'HOME') if name in os.environ
                 for word in ('-x', name)]
    command = ['mpirun', '--host', ','.join(network.addresses), *options, *forwarded, '-n', '2', bench.program]
    return enter(network.names[0], *command, *map(str, args))


def check_network(bench, network):
    args = (*PLAIN, '--steps', UPDATES)
    env = {name: value for name, value in SETTINGS.items() if name not in ('OMPI_MCA_plm_rsh_agent', 'OMPI_MCA_btl')}
    done = subprocess.run(mpirun(bench, network, 'train', 'fashion-mlp', *args, '--out', 'across', '--metrics',
                                 'across.json'), cwd=bench.folder, env={**os.environ, **env}, text=True,
                          capture_output=True, timeout=300, check=False)
    bench.expect(done.returncode == 0 and not done.stderr, f'{done.returncode}: {done.stderr}')
    bench.good('train', 'fashion-mlp', *args, '--out', 'within', *ONE, *ONE)
    bench.expect(digest(bench, 'across') == digest(bench, 'within'), 'other bits across the network')
    members = lines(bench, 'across.json')[-1]['summary']['members']
    sent = sum(m['bytes_sent'] for m in members)
    bench.expect(min(m['waited_seconds'] for m in members) > UPDATES * DELAY, f'nobody waited: {members}')
    bench.expect(network.line.bytes > sent, f'{sent} bytes sent, {network.line.bytes} of them on the line')


def main():
    if sys.argv[1] == 'enter':
        words = ' '.join(sys.argv[3:])
        command = enter(sys.argv[2], 'sh', '-c', words)
        os.execvp(command[0], command)
    if not shutil.which('mpirun'):
        print('skipped: there is no mpirun')
        return 77
    os.environ.update(DEVICES)
    try:
        with Network() as network, Bench(sys.argv[1]) as bench:
            check_network(bench, network)
            bench.end()
    except (subprocess.CalledProcessError, OSError) as error:
        print(f'skipped: no namespaces with a network here: {error} {getattr(error, "stderr", "")}')
        return 77
    return 0


if __name__ == '__main__':
    if sys.argv[1] != 'enter':
        sys.path.insert(0, os.path.join(HERE, '../mpi'))
        from members import DEVICES, ONE
        from ranks import PLAIN
        from run import SETTINGS
        from runs import digest, lines
        from support import Bench
    sys.exit(main())
