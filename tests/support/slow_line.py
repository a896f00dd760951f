# SPDX-License-Identifier: MIT
"""A slow line between two network namespaces: a thread of this program carries its packets, as few kernels
have netem. Each namespace is a machine of its own for mpirun."""
import collections
import ctypes
import fcntl
import os
import select
import shlex
import struct
import subprocess
import sys
import threading
import time

ADDRESSES = ['10.77.{}.1', '10.77.{}.2']
CLONE_NEWNET, TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x40000000, 0x400454ca, 1, 0x1000
MTU, HEADERS = 1500, 52  # IP, TCP with time stamps
PRIORITY = -10           # of the thread, before ranks that wait for it

# Programs of Python's for the far end and the near one: packets to and fro, and a stream of bytes.
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
SINK = """import socket, time
s = socket.socket(); s.bind(('{host}', 4712)); s.listen(); print(flush=True)
c, _ = s.accept(); have = 0
while have < {bytes} // 2: have += len(c.recv(1 << 16))
first, began = have, time.perf_counter()
while have < {bytes}: have += len(c.recv(1 << 16))
print((have - first) / (time.perf_counter() - began), flush=True)
"""
SOURCE = """import socket
s = socket.socket(); s.connect(('{host}', 4712)); s.sendall(bytes({bytes})); s.recv(1)
"""


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

    def __init__(self, rate, delay):
        super().__init__(daemon=True)
        self.rate, self.delay = rate, delay  # bits per second, seconds
        self.ends, self.ending, self.bytes = [], False, 0

    def run(self):
        try:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), PRIORITY)
        except OSError:  # it is not allowed
            pass
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
                free[side] = max(free[side], time.monotonic()) + 8 * len(packet) / self.rate
                under_way[side].append((free[side] + self.delay, packet))
                self.bytes += len(packet)


class Network:
    """Two namespaces with a slow line between them; `with` removes them. `folder`: for what mpirun starts its
    daemons with."""

    def __init__(self, rate, delay, folder):
        self.folder, self.line = folder, Line(rate, delay)

    def __enter__(self):
        self.names = [name_of(number) for number in (0, 1)]
        self.addresses = [address.format(os.getpid() % 250) for address in ADDRESSES]
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

    def agent(self):
        """Where there is AGENT ADDRESS COMMAND..., which runs the command on the second machine."""
        agent = self.folder / 'agent'
        command = ' '.join(map(shlex.quote, enter(self.names[1], 'sh', '-c')))
        agent.write_text(f'#!/bin/sh\nshift\nexec {command} "$*"\n')
        agent.chmod(0o755)
        return agent

    def mpirun(self, *command):
        """The command on both machines."""
        settings = {'plm_rsh_agent': self.agent(), 'plm_rsh_no_tree_spawn': '1', 'btl': 'self,tcp',
                    'btl_tcp_if_include': 'line', 'oob_tcp_if_include': 'line'}
        options = [word for item in settings.items() for word in ('--mca', *map(str, item))]
        hosts = ','.join(f'{address}:1' for address in self.addresses)
        return enter(self.names[0], 'mpirun', '--host', hosts, *options, *map(str, command))

    # --- what it is, by plain sockets ---

    def talk(self, far, near, **words):
        """What a program at the near end prints, or at the far end, once both have ended."""
        words = {'host': self.addresses[1], **words}
        programs = [enter(name, sys.executable, '-c', program.format(**words))
                    for name, program in zip(self.names, (near, far))]
        with subprocess.Popen(programs[1], stdout=subprocess.PIPE, text=True) as other:
            other.stdout.readline()
            out = subprocess.run(programs[0], check=True, text=True, stdout=subprocess.PIPE).stdout
            if not out:
                out = other.stdout.readline()
            other.kill()
        return float(out)

    def latency(self):
        """Seconds of one way, half of what the fastest of some round trips takes."""
        return self.talk(ECHO, ASK) / 2

    def carried(self, size=1 << 24):
        """Bytes of a stream that arrive in a second, once it flows."""
        return self.talk(SINK, SOURCE, bytes=size)

    @property
    def bandwidth(self):
        """The most bytes of messages per second."""
        return self.line.rate / 8 * (MTU - HEADERS) / MTU
