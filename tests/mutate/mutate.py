#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shows that the harness bites: plants one bug after another in the kernels and runs the checks of
every operator that launches a kernel with the bug, in the variants that do. Each of these operators
must notice it.

Usage: mutate.py CHECK_OPS KERNEL_PROGRAMS SOURCE_ROOT [--only STEM,...] [--jobs N] [--list]

Four kinds of bugs, at every site of every kernel file (sites.py):

    beta    an accumulation forgets what was there   ACC(X, p, i, beta, v) -> ST(X, p, i, v)
    index   an element is read one too far           LD(X, p, i) -> LD(X, p, (i) + 1)
    value   what is stored is 1 % too large          ST(X, p, i, v) -> ST(X, p, i, (v) * 1.01f)
    tail    the last element of a range is skipped   i < n -> i < n - 1

Stores into the control block, `now->f = v` and `+=`, get the first and the third kind, too.

A bug that an operator does not notice is a survivor. Survivors must stand in survivors.txt beside
this file with a reason; the run fails if one does not, if a line there names no survivor, and if a
kernel file or an operator with kernels gets no bug at all. CHECK_OPS is the harness's program,
KERNEL_PROGRAMS the one that lists what the operators launch. The kernels must pass without a bug
first. Noticed are a failed check, kernels that do not build, a crash and a run that does not end.
Ends with `N passed, N failed`.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import sites

# Not mutated: what every mutant goes through, and what no operator launches.
ELSEWHERE = {
    "activation.clh": "functions of one value; touches no memory",
    "type.clh": "its macros are what the bugs are made of",
    "bits.clh": "its macros are what the bugs are made of",
    "piece.clh": "its macros are what the bugs are made of",
    "tiled.clh": "touches local memory alone; a wrong sum is in all results of the products",
    "winograd.clh": "touches no memory; a wrong sign is in all that is made by it",
    "control.clh": "has no code",
    "correction.clh": "touches no memory; a wrong bit is in the parameters of flash_adamw",
    "math.clh": "tests/cl/math.c bounds the errors of its functions",
    "random.clh": "its values are compared with those of src/base/random.c",
    "ceiling.cl": "is launched by `quern bench` alone; writes what nobody reads",
    "flash_adamw.cl": "touches memory by functions of update.clh and moments8_step.clh alone",
    "stochastic.clh": "its macros are what the bugs are made of",
    "exp.clh": "touches no memory; a wrong power is in all results of softmax",
    "exp2.clh": "touches no memory; a wrong power is in all results of attention",
    "fma.clh": "touches no memory; check_ops_apart looks at its other way",
    "shuffle.clh": "moves values between registers and touches no memory",
    "tile.clh": "has no code",
    "tile_cpu.clh": "tests/cl/tile.c compares its products",
    "tile_cpu.cl": "is launched by the library when a device is opened; see tests/cl/tile.c",
    "tile_factor.clh": "touches no memory; tests/cl/tile.c compares its words",
    "tile_copied.clh": "tests/cl/tile.c plants swaps in what each lane holds",
    "limits.cl": "is launched by the library when a device is opened; see tests/cl/tile.c",
    "tile_copy.cl": "is launched by the library when a device is opened; see tests/cl/tile.c",
    "tile_fragment.clh": "has sizes alone",
    "tile_mma.clh": "tests/cl/tile.c plants swaps in what each lane holds",
    "tile_mfma.clh": "tests/cl/tile.c plants swaps in what each lane holds",
    "tile_rows.clh": "moves sums between lanes; a wrong one is in all rows of attention",
    "tile_wmma.clh": "tests/cl/tile.c plants swaps in what each lane holds",
    "tile_dpas.clh": "tests/cl/tile.c plants swaps in what each lane holds",
    "tile_emulated.clh": "tests/cl/tile.c compares its products",
    "tile.cl": "is launched by the library when a device is opened; see tests/cl/tile.c",
    "fill.cl": "is launched by memory, not by an operator; tests/cl/slab.c checks it",
}
COUNTS = re.compile(r"^(\d+) passed, (\d+) failed\Z", re.MULTILINE)


CASES = ("--small",), ()  # the quick ones first


class Unclear(Exception):
    """A run of the harness that says neither yes nor no."""


def is_empty(done):
    """Whether no case had any of the variants."""
    return done.stdout.rstrip().endswith("\n0 passed, 0 failed")


class Harness:
    """Runs the checks of operators, each in the variants that launch a kernel with the bug."""

    def __init__(self, check_ops, root, scratch):
        self.check_ops, self.kernels, self.scratch = check_ops, root / "cl_kernels", scratch
        self.limits = {}  # seconds by operator, variants and cases
        self.measuring = collections.defaultdict(threading.Lock)
        self.environment = dict(os.environ, QN_CACHE_DIR="", POCL_CACHE_DIR=str(scratch / "pocl"))
        (scratch / "pocl").mkdir()  # kernels that a bug leaves alone are compiled once

    def run(self, folder, op, variants, cases, limit=None):
        return subprocess.run([self.check_ops, op, "--stop", "--kernels", str(folder), *cases,
                               "--variants", ",".join(sorted(variants))],
                              env=self.environment, text=True, errors="replace",
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=limit)

    def limit(self, op, variants, cases):
        """Seconds for a run. The first call takes the time without a bug: all cases of an operator
        may take minutes, and few bugs get past the quick ones."""
        key = op, frozenset(variants), cases
        with self.measuring[key]:
            if key not in self.limits:
                start = time.monotonic()
                done = self.run(self.kernels, op, variants, cases)
                if done.returncode and not is_empty(done):
                    raise Unclear(f"{op} without a bug: {done.returncode}\n{done.stdout[-2000:]}")
                self.limits[key] = 60 + 5 * (time.monotonic() - start)
            return self.limits[key]

    def fails(self, folder, op, variants, cases):
        limit = self.limit(op, variants, cases)
        try:
            done = self.run(folder, op, variants, cases, limit)
        except subprocess.TimeoutExpired:
            return True
        if done.returncode <= 0:
            return done.returncode < 0
        if is_empty(done):
            return False
        counts = COUNTS.search(done.stdout.rstrip())
        said = re.search(r"^FAILED: |does not build", done.stdout, re.MULTILINE)
        if not (said and counts and int(counts[2]) > 0):
            raise Unclear(f"{op}: status {done.returncode}\n{done.stdout[-2000:]}")
        return True

    def notices(self, folder, op, variants):
        return any(self.fails(folder, op, variants, cases) for cases in CASES)

    def unmoved(self, number, bug):
        """The operators that do not notice the bug."""
        folder = self.scratch / str(number)
        shutil.copytree(self.kernels, folder)
        (folder / bug.path.relative_to(self.kernels)).write_text(bug.mutated)
        try:
            return [op for op in bug.ops if not self.notices(folder, op, bug.variants[op])]
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def allowed_survivors(path):
    """By (file, kind, operator, source line) the reason; see the head of survivors.txt."""
    allowed = {}
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            file, kind, ops, source, reason = (part.strip() for part in line.split(" | ", 4))
            allowed.update({(file, kind, op.strip(), source): reason for op in ops.split(",")})
    return allowed


def without_bug(root, bugs):
    """Kernel files, operators and sites that no run would look at."""
    files = {path.name for path in (root / "cl_kernels").rglob("*.cl*")} - set(ELSEWHERE)
    names = re.findall(r"^\s*X\((\w+)\)", (root / "src/op/list.h").read_text(), re.MULTILINE)
    ops = {op for op in names if ".view = true" not in (root / f"src/ops/{op}.c").read_text()}
    ops.discard("zero")  # launches fill.cl alone
    files -= {bug.path.name for bug in bugs}
    ops -= {op for bug in bugs for op in bug.ops}
    return [f"{name}: gets no bug" for name in sorted(files | ops)] + \
        [f"{bug}: no operator launches it" for bug in bugs if not bug.ops]


def check_baseline(harness, pool, bugs):
    """Whether the quick cases pass without a bug; the others are run so when a bug needs them."""
    def wrong_with(use):
        try:
            harness.limit(*use, CASES[0])
            return None
        except Unclear as error:
            return str(error)
    uses = {(op, frozenset(bug.variants[op])) for bug in bugs for op in bug.ops}
    wrong = list(filter(None, pool.map(wrong_with, uses)))
    passed = f"{len({op for op, _ in uses})} operators pass without a bug"
    print("\n".join(wrong) if wrong else passed, flush=True)
    return not wrong


def plant(harness, pool, bugs):
    """Tells of each bug as its result arrives; gives the survivors, (bug, operator), and errors."""
    survivors, errors = [], []
    running = {pool.submit(harness.unmoved, n, bug): bug for n, bug in enumerate(bugs)}
    for n, done in enumerate(concurrent.futures.as_completed(running), 1):
        bug = running[done]
        try:
            unmoved = done.result()
            said = f"survives {','.join(unmoved)}" if unmoved else "noticed"
            survivors += [(bug, op) for op in unmoved]
        except Unclear as error:
            said = f"unclear: {error}"
            errors.append(f"{bug}: {said}")
        print(f"{n}/{len(bugs)} {bug}: {said}", flush=True)
    return survivors, errors


def judge(survivors, allowed, whole):
    """Prints the survivors with their reasons; gives the number of those that have none, and of
    reasons without a survivor if the run was whole."""
    failed, unused = 0, set(allowed)
    for bug, op in sorted(survivors, key=lambda item: (str(item[0]), item[1])):
        key = (bug.path.name, bug.kind, op, bug.source)
        unused.discard(key)
        failed += key not in allowed
        print(f"survivor: {bug}: {op}: {allowed.get(key, 'no reason')}")
    for key in sorted(unused) if whole else []:
        print(f"survivors.txt: no longer survives: {' | '.join(key)}")
        failed += 1
    return failed


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("check_ops")
    parser.add_argument("kernel_programs")
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("--only", default="", help="files by their names without an ending")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--list", action="store_true", help="prints the bugs and plants none")
    return parser.parse_args()


def run(options, bugs):
    allowed = allowed_survivors(pathlib.Path(__file__).with_name("survivors.txt"))
    with tempfile.TemporaryDirectory(prefix="quern-mutate-") as scratch, \
            concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        harness = Harness(options.check_ops, options.root, pathlib.Path(scratch))
        if not check_baseline(harness, pool, bugs):
            return len(bugs)
        survivors, errors = plant(harness, pool, bugs)
    for error in errors:
        print(error)
    return len(errors) + judge(survivors, allowed, not options.only)


def main():
    options = parse()
    bugs = sites.bugs(options.root / "cl_kernels", options.kernel_programs, ELSEWHERE)
    wrong = [] if options.only else without_bug(options.root, bugs)
    if options.only:
        bugs = [bug for bug in bugs if bug.path.stem in options.only.split(",")]
    for line in wrong:
        print(line)
    if options.list:
        for bug in bugs:
            print(f"{bug}: {bug.source}  [{','.join(bug.ops)}]")
        print(f"{len(bugs)} bugs, {sum(len(bug.ops) for bug in bugs)} to be noticed")
        return 1 if wrong else 0
    failed = len(wrong) + run(options, bugs)
    print(f"{max(len(bugs) - failed, 0)} passed, {failed} failed")
    return 1 if failed or not bugs else 0


if __name__ == "__main__":
    sys.exit(main())
