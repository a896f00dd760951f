#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every operator of the public interface can be written in a graph file: forms.py ROOT.

Each function of include/quern/ops.h has a row in the table of src/form/forms.c, and each row one in
docs/graph-file.md. A function whose nodes another row writes is named there, too.
"""
import re
import sys
from pathlib import Path

FUNCTION = re.compile(r"QN_API\s+qn_tensor\s+qn_(\w+)\s*\(")
ROW = re.compile(r"^\s+(?:ROW|ROW_OF|LAYER)\(([a-z0-9_]*[a-z0-9]),", re.MULTILINE)
DOCUMENTED = re.compile(r"^\| `(\w+)\(", re.MULTILINE)


def main():
    root = Path(sys.argv[1])
    functions = set(FUNCTION.findall((root / "include/quern/ops.h").read_text()))
    rows = set(ROW.findall((root / "src/form/forms.c").read_text()))
    documented = set(DOCUMENTED.findall((root / "docs/graph-file.md").read_text()))
    wrong = [f"src/form/forms.c: no row for qn_{name}" for name in sorted(functions - rows)]
    wrong += [f"docs/graph-file.md: {name}: is missing" for name in sorted(rows - documented)]
    wrong += [f"docs/graph-file.md: {name}: is no operator" for name in sorted(documented - rows)]
    if len(functions) < 40:
        wrong.append(f"include/quern/ops.h: {len(functions)} functions alone were found")
    print("\n".join(wrong) or f"{len(functions)} operators")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
