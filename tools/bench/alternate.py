# SPDX-License-Identifier: MIT
"""Times of several sides that hold on a busy machine, for compare.py.

Sides take turns, a fraction of a second each, so that whatever else runs disturbs all of them. Of
each round the fastest and the median count. A row is repeated until the fastest three rounds of each
side agree, or until it has had enough; then it is marked. Ratios are of the fastest.
"""
import collections
import json
import queue
import statistics
import subprocess
import threading

ROUNDS, MOST_ROUNDS = 3, 9  # of a row: at least, and where its rounds do not agree
AGREE = 3                   # rounds that have to
SPREAD = 1.3                # of those: the slowest over the fastest

Sample = collections.namedtuple('Sample', 'fastest median')  # seconds of one round


class Times:
    """What one side took for one case, by rounds."""

    def __init__(self):
        self.rounds = []

    @property
    def fastest(self):
        return min((s.fastest for s in self.rounds), default=None)

    @property
    def median(self):
        return statistics.median(s.median for s in self.rounds) if self.rounds else None

    @property
    def spread(self):
        """The third fastest round over the fastest; 1: no rounds."""
        first = sorted(s.fastest for s in self.rounds)[:AGREE]
        return first[-1] / first[0] if first else 1

    @property
    def doubtful(self):
        return self.spread > SPREAD


class Table:
    """Times by side and case."""

    def __init__(self):
        self.times = {}

    def of(self, side, key):
        return self.times.setdefault((side.name, key), Times())

    def add(self, side, samples):
        """`samples` are by case; None: the side has no answer."""
        for key, sample in (samples or {}).items():
            if sample:
                self.of(side, key).rounds.append(Sample(*sample))

    def doubtful(self, sides, keys):
        return any(self.of(side, key).doubtful for side in sides for key in keys)


def alternate(table, work, sides, rounds=ROUNDS, most=MOST_ROUNDS):
    """Times one work on all sides in turns. work.cases are by key; side.time(work) gives samples by
    key. What cannot be timed there is left out from then on."""
    able = list(sides)
    for number in range(max(rounds, most)):
        if number >= rounds and not table.doubtful(able, work.cases):
            break
        for side in list(able):
            samples = side.time(work)
            table.add(side, samples)
            if not samples:
                able.remove(side)


class Peer:
    """A library in a process of its own, which is asked case by case (peers.py)."""

    def __init__(self, name, command, patience, **options):
        self.name, self.version, self.missing, self.patience = name, None, None, patience
        try:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.PIPE, text=True, **options)
        except OSError as error:
            self.missing = str(error)
            return
        self.answers, self.errors = queue.Queue(), []
        self.readers = [threading.Thread(target=self.read, args=of, daemon=True) for of in (
            (self.answers.put, self.process.stdout), (self.errors.append, self.process.stderr))]
        for reader in self.readers:
            reader.start()
        first = self.answer()
        self.version = first['version'] if first else None

    def read(self, take, pipe):
        with pipe:
            for line in pipe:
                take(line)
        if pipe is self.process.stdout:
            take(None)

    def answer(self):
        try:
            line = self.answers.get(timeout=self.patience)
        except queue.Empty:
            self.end(f'no answer within {self.patience} s')
            return None
        if line is None:
            self.readers[1].join()
            self.end(self.errors[-1].strip() if self.errors else 'it ended')
            return None
        return json.loads(line)

    def end(self, reason):
        self.missing = self.missing or reason
        self.process.kill()
        self.process.wait()
        for reader in self.readers:
            reader.join()
        try:
            self.process.stdin.close()
        except OSError:
            pass  # it ended with a case on its way

    def ask(self, case):
        if self.missing:
            return None
        try:
            self.process.stdin.write(json.dumps(case) + '\n')
            self.process.stdin.flush()
        except OSError:
            pass  # it ended, and answer() says why
        return self.answer()

    def time(self, work):
        """Samples by key, as far as the library has the case."""
        samples = {key: self.ask(case) for key, case in work.cases.items()}
        return {key: sample for key, sample in samples.items() if sample}

    def close(self):
        if not self.missing:
            self.end('closed')
