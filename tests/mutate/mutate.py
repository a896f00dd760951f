#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shows that the harness bites: plants one bug after another in the kernels and runs the checks of the
operators that use them.

Usage: mutate.py CHECK_OPS SOURCE_ROOT [--only STEM,...] [--jobs N] [--list]

Four kinds of bugs, at every site of every kernel file:

    beta    an accumulation forgets what was there       ACC(X, p, i, beta, v) -> ST(X, p, i, v)
    index   an element is read one too far               LD(X, p, i)           -> LD(X, p, (i) + 1)
    value   what is stored is 1 % too large              ST(X, p, i, v)        -> ST(X, p, i, (v) * 1.01f)
    tail    the last element of a range is skipped       i < n                 -> i < n - 1

A bug that no check notices is a survivor. Survivors must stand in survivors.txt beside this file with a
reason; the run fails if one does not, and if a line there names no survivor. CHECK_OPS is the harness's
program. Kernels that fail to build count as noticed. Ends with `N passed, N failed`.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

CALL = re.compile(r"\b(ACCV?|STV?|LDV?|LDI)\(")
RANGE = re.compile(r"(?<![<>=])(<|>=) ([a-z][\w.]*(?:->\w+)?)(?![\w(\[*])")
TIMEOUT = 900


def arguments(text, start):
    """The arguments of the call whose opening parenthesis ends at `start`, and where it ends."""
    depth, parts, begin = 1, [], start
    for at in range(start, len(text)):
        c = text[at]
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
            if depth == 0:
                return parts + [text[begin:at]], at + 1
        elif c == "," and depth == 1:
            parts.append(text[begin:at])
            begin = at + 1
    return None, start


def code_only(text):
    """The text with comments and preprocessor lines blanked, of the same length."""
    blank = lambda match: re.sub(r"[^\n]", " ", match.group())
    text = re.sub(r"/\*.*?\*/|//[^\n]*", blank, text, flags=re.S)
    return re.sub(r"(?m)^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, text)


def call_mutants(text, code):
    for match in CALL.finditer(code):
        name, (args, end) = match.group(1), arguments(code, match.end())
        args = args and split_like(text, match.end(), args)
        if not args:
            continue
        replace = lambda new: text[:match.start()] + new + text[end:]
        if name.startswith("ACC") and len(args) == 5:
            kept = args[:3] + args[4:]
            yield "beta", match.start(), replace(f"{name.replace('ACC', 'ST')}({','.join(kept)})")
        if name.startswith("LD") and len(args) == 3:
            yield "index", match.start(), replace(f"{name}({args[0]},{args[1]}, ({args[2]}) + 1)")
        elif len(args) in (4, 5):
            scaled = args[:-1] + [f" ({args[-1]}) * 1.01f"]
            yield "value", match.start(), replace(f"{name}({','.join(scaled)})")


def split_like(text, start, args):
    """The same arguments taken from the text with its comments."""
    parts, at = [], start
    for arg in args:
        parts.append(text[at:at + len(arg)])
        at += len(arg) + 1
    return parts


def range_mutants(text, code):
    for match in RANGE.finditer(code):
        line = code[code.rfind("\n", 0, match.start()) + 1:code.find("\n", match.start())]
        if not re.search(r"\b(for|if|while)\b|&&|\|\||\?", line):
            continue
        new = f"{match.group(1)} {match.group(2)} - 1"
        yield "tail", match.start(), text[:match.start()] + new + text[match.end():]


def mutants(path):
    text = path.read_text()
    code = code_only(text)
    for kind, at, mutated in [*call_mutants(text, code), *range_mutants(text, code)]:
        line = text.count("\n", 0, at) + 1
        yield kind, line, text.splitlines()[line - 1].strip(), mutated


def sources_of(root, op):
    """src/ops/OP.c and the files it shares with other operators."""
    seen, queue = set(), [f"{op}.c"]
    while queue:
        name = queue.pop()
        path = root / "src/ops" / name
        if name in seen or not path.exists():
            continue
        seen.add(name)
        for header in re.findall(r'#include "ops/(\w+)\.h"', path.read_text()):
            queue.append(f"{header}.c")
    return [root / "src/ops" / name for name in seen]


def users_of_kernels(root):
    """By kernel file: the operators that launch it or include it."""
    kernels = root / "cl_kernels"
    stems = {path.stem: path for path in kernels.glob("*.cl")}
    ops = re.findall(r"X\((\w+)\)\s*\\", (root / "src/op/list.h").read_text())
    users = {}
    for op in ops:
        own = root / "src/ops" / f"{op}.c"
        texts = [path.read_text() for path in sources_of(root, op)]
        for stem in {s for text in texts for s in re.findall(r'"(\w+)"', text)} & set(stems):
            shared = f'"{stem}"' not in own.read_text()
            users.setdefault(stems[stem], []).append((shared, op))
    for library in (kernels / "lib").glob("*.clh"):
        for path in list(users):
            if path.suffix == ".cl" and f'"lib/{library.name}"' in path.read_text():
                users.setdefault(library, []).extend(users[path])
    return {path: [op for _, op in sorted(set(found))] for path, found in users.items()}


# The macros that every mutant goes through, and what all kernels share: their own checks are others.
SHARED = {"type.clh", "control.clh", "random.clh"}


class Run:
    def __init__(self, check_ops, root):
        self.check_ops, self.root = check_ops, root
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="quern-mutate-"))
        (self.scratch / "pocl").mkdir()  # kernels that a bug leaves alone are compiled once

    def noticed(self, path, mutated, ops, number):
        folder = self.scratch / str(number)
        shutil.copytree(self.root / "cl_kernels", folder)
        (folder / path.relative_to(self.root / "cl_kernels")).write_text(mutated)
        try:
            return any(self.fails(folder, ops, small) for small in (True, False))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def fails(self, folder, ops, small):
        command = [self.check_ops, ",".join(ops), "--stop", "--kernels", str(folder)]
        environment = dict(os.environ, QN_CACHE_DIR=str(self.scratch / "binaries"),
                           POCL_CACHE_DIR=str(self.scratch / "pocl"))
        try:
            result = subprocess.run(command + ["--small"] * small, env=environment,
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                    timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            return True
        return result.returncode != 0


def allowed_survivors(path):
    """Lines `FILE | KIND | SOURCE LINE | REASON`."""
    allowed = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        if line.strip() and not line.startswith("#"):
            file, kind, source, reason = (part.strip() for part in line.split(" | ", 3))
            allowed[(file, kind, source)] = reason
    return allowed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("check_ops")
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--list", action="store_true", help="prints the bugs and plants none")
    options = parser.parse_args()
    only = set(filter(None, options.only.split(",")))
    work = []
    for path, ops in sorted(users_of_kernels(options.root).items()):
        if path.name in SHARED or (only and path.stem not in only):
            continue
        work += [(path, ops, *mutant) for mutant in mutants(path)]
    if options.list:
        for path, ops, kind, line, source, _ in work:
            print(f"{path.name}:{line}: {kind}: {source}  [{','.join(ops)}]")
        print(f"{len(work)} bugs")
        return 0
    run = Run(options.check_ops, options.root)
    allowed = allowed_survivors(pathlib.Path(__file__).with_name("survivors.txt"))
    unused, failed = set(allowed), 0
    try:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            results = pool.map(lambda item: run.noticed(item[1][0], item[1][5], item[1][1], item[0]),
                               enumerate(work))
            for (path, _, kind, line, source, _), noticed in zip(work, results):
                key = (path.name, kind, source)
                if noticed:
                    continue
                unused.discard(key)
                reason = allowed.get(key)
                failed += reason is None
                print(f"survivor: {path.name}:{line}: {kind}: {source}: {reason or 'no reason'}",
                      flush=True)
    finally:
        shutil.rmtree(run.scratch, ignore_errors=True)
    for key in sorted(unused) if not only else []:
        print(f"survivors.txt: no longer survives: {' | '.join(key)}")
        failed += 1
    print(f"{len(work) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
