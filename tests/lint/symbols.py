#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The version script names exactly the functions that the public headers declare, and the shared
library exports exactly these: symbols.py ROOT LIBRARY; symbols.py ROOT --write remakes the
script after a change of the headers.
"""
import re
import subprocess
import sys
from pathlib import Path

NODE = "QUERN_0"
DECLARED = re.compile(r"QN_API\s+[^;(]*?\b(qn_\w+)\s*\(")


def declared(root):
    names = set()
    for path in (root / "include/quern").glob("*.h"):
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)
        names |= set(DECLARED.findall(text))
    return names


def listed(root):
    return set(re.findall(r"^\s+(qn_\w+);", (root / "src/quern.map").read_text(), re.MULTILINE))


def exported(library):
    text = subprocess.run(["nm", "-D", "--defined-only", library], check=True, text=True,
                          capture_output=True).stdout
    names = {line.split()[-1].split("@")[0] for line in text.splitlines()}
    return names - {NODE}


def write(root):
    names = "".join(f"    {name};\n" for name in sorted(declared(root)))
    (root / "src/quern.map").write_text(f"{NODE} {{\n  global:\n{names}  local:\n    *;\n}};\n")


def compare(what, names, other_what, other):
    wrong = [f"{name}: {what}, but not {other_what}" for name in sorted(names - other)]
    return wrong + [f"{name}: {other_what}, but not {what}" for name in sorted(other - names)]


def main():
    root = Path(sys.argv[1])
    if "--write" in sys.argv:
        write(root)
        return 0
    wrong = compare("declared in include/quern", declared(root), "listed in src/quern.map",
                    listed(root))
    wrong += compare("listed in src/quern.map", listed(root), "exported by the library",
                     exported(sys.argv[2]))
    print("\n".join(wrong) if wrong else f"symbols: {len(listed(root))} exported, nothing wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
