#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The version script of each library names exactly the functions that its public headers declare, and
the shared library exports exactly these: symbols.py ROOT LIBRARY...; symbols.py ROOT --write remakes
the scripts after a change of the headers.
"""
import re
import subprocess
import sys
from pathlib import Path

# The library, its version script, the node there, and headers of its own: all others are libquern's.
LIBRARIES = {
    "quern": ("src/quern.map", "QUERN_0", None),
    "quern-mpi": ("src/mpi/quern-mpi.map", "QUERN_MPI_0", {"mpi"}),
}
DECLARED = re.compile(r"QN_API\s+[^;(]*?\b(qn_\w+)\s*\(")


def declared(root, headers):
    names = set()
    special = set().union(*(own or set() for _, _, own in LIBRARIES.values()))
    for path in (root / "include/quern").glob("*.h"):
        if (path.stem in headers) if headers else (path.stem not in special):
            text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
            names |= set(DECLARED.findall(text))
    return names


def listed(path):
    return set(re.findall(r"^\s+(qn_\w+);", path.read_text(), re.MULTILINE))


def exported(library, node):
    text = subprocess.run(["nm", "-D", "--defined-only", library], check=True, text=True,
                          capture_output=True).stdout
    names = {line.split()[-1].split("@")[0] for line in text.splitlines()}
    return names - {node}


def write(root):
    for script, node, headers in LIBRARIES.values():
        names = "".join(f"    {name};\n" for name in sorted(declared(root, headers)))
        (root / script).write_text(f"{node} {{\n  global:\n{names}  local:\n    *;\n}};\n")


def compare(what, names, other_what, other):
    wrong = [f"{name}: {what}, but not {other_what}" for name in sorted(names - other)]
    return wrong + [f"{name}: {other_what}, but not {what}" for name in sorted(other - names)]


def check(root, library):
    script, node, headers = LIBRARIES[Path(library).name.removeprefix("lib").split(".")[0]]
    names = listed(root / script)
    yield from compare("declared in include/quern", declared(root, headers), f"listed in {script}",
                       names)
    yield from compare(f"listed in {script}", names, "exported by the library",
                       exported(library, node))


def main():
    root = Path(sys.argv[1])
    if "--write" in sys.argv:
        write(root)
        return 0
    wrong = [line for library in sys.argv[2:] for line in check(root, library)]
    print("\n".join(wrong) if wrong else f"symbols: {len(sys.argv) - 2} libraries, nothing wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
