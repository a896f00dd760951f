# SPDX-License-Identifier: MIT
"""Trainings that have their cores to themselves, for members.py, and the proof of it: the processor time
of each thread by the core on which it ran, as /proc tells it."""
import json
import os
import pathlib
import statistics
import subprocess
import threading

CORES = sorted(os.sched_getaffinity(0))[:2]
TICK = os.sysconf('SC_CLK_TCK')
BEGUN = 0.2  # seconds that a thread must have computed to be a member's


def threads(pid):
    """Of a process: number of the thread -> (seconds computed, core on which it ran last)."""
    found = {}
    try:
        tasks = list(pathlib.Path(f'/proc/{pid}/task').glob('*'))
    except OSError:
        return found  # the process has ended
    for task in tasks:
        try:
            fields = (task / 'stat').read_text(encoding='ascii').rsplit(')', 1)[1].split()
        except OSError:
            continue  # it has ended
        found[int(task.name)] = ((int(fields[11]) + int(fields[12])) / TICK, int(fields[36]))
    return found


class Watch(threading.Thread):
    """Looks at the threads of processes until they end: pids() gives them. Of those in `pinned`, whose
    members are threads, the first one gets the first core, and the other one that computes the second."""

    def __init__(self, pids, pinned=()):
        super().__init__(daemon=True)
        self.pids, self.pinned = pids, set(pinned)
        self.spent, self.last = {}, {}  # (process, thread) -> {core: seconds}; seconds until now
        self.ended = threading.Event()

    def run(self):
        while not self.ended.wait(0.05):
            for pid in self.pids():
                self.look(pid, threads(pid))

    def look(self, pid, found):
        if pid in self.pinned:
            self.pin(pid, found)
        for thread, (seconds, core) in found.items():
            more = seconds - self.last.get((pid, thread), seconds)
            self.last[pid, thread] = seconds
            by_core = self.spent.setdefault((pid, thread), {})
            by_core[core] = by_core.get(core, 0) + more

    def pin(self, pid, found):
        others = sorted((seconds, thread) for thread, (seconds, _) in found.items() if thread != pid)
        if not others or others[-1][0] < BEGUN:
            return
        os.sched_setaffinity(pid, {CORES[0]})
        os.sched_setaffinity(others[-1][1], {CORES[1]})
        self.pinned.discard(pid)
        self.spent.clear()

    def told(self):
        """Of the threads that computed: {core: seconds}."""
        self.ended.set()
        self.join()
        return [by_core for by_core in self.spent.values() if sum(by_core.values()) > BEGUN]


def are_apart(told):
    """Whether each thread had one core, and the members two."""
    most = [max(by_core, key=by_core.get) for by_core in told]
    whole = all(by_core[core] >= 0.9 * sum(by_core.values()) for by_core, core in zip(told, most))
    return whole and set(most) == set(CORES)


class Busy:
    """Processes on a core that want all of it."""

    def __init__(self, count, core):
        self.processes = [subprocess.Popen(['taskset', '-c', str(core), 'sh', '-c', 'while :; do :; done'])
                          for _ in range(count)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()


def on_core(core, command):
    return ['taskset', '-c', str(core), *map(str, command)]


class Training:
    """A training under way; its figures go to a file."""

    def __init__(self, command, metrics, env):
        self.metrics = pathlib.Path(metrics)
        self.metrics.unlink(missing_ok=True)
        self.process = subprocess.Popen([*map(str, command)], env={**os.environ, **env}, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def end(self):
        """The lines of its figures."""
        out, _ = self.process.communicate()
        if self.process.returncode:
            raise SystemExit(f'{" ".join(map(str, self.process.args))}\n{out}')
        return [json.loads(line) for line in self.metrics.read_text().splitlines()]


def updates(lines):
    """Seconds of the updates that count: the first ones warm up and are not pinned yet."""
    seconds = [line['seconds'] for line in lines if 'step' in line]
    return seconds[max(2, len(seconds) // 4):]


def update_seconds(lines):
    """The median, which what else the machine does moves least."""
    return statistics.median(updates(lines))


def rate(lines):
    """Samples per second of a training."""
    return next(line['samples'] for line in lines if 'step' in line) / update_seconds(lines)


def run(trainings, pin=False, pids=None):
    """Lets trainings end together: [lines of figures], and what was seen of their threads, or of those of
    the processes that pids() gives."""
    own = [training.process.pid for training in trainings]
    watch = Watch(pids or (lambda: own), own if pin else ())
    watch.start()
    lines = [training.end() for training in trainings]
    return lines, watch.told()
